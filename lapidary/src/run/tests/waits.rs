//! Tests of calls on devices for which the host may not wait.

use lapidary_core::null::NullDevice;
use lapidary_core::{ErrorKind, MatRef};

use super::{product, record};
use crate::open::boxed;
use crate::{Machine, Settings};

#[test]
fn a_call_that_would_wait_for_a_device_of_a_page_is_refused_before_it_begins() {
    let (outcome, _, requests) = product(NullDevice::new(Some(1 << 20)).with_waits(false));
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), requests), (ErrorKind::Unsupported, Vec::new()));
    let text = error.to_string();
    assert!(text.contains("use a stream") && text.contains("outputs: as they were") && text.contains("null:0"), "{text}");
    // the transfer of an upload is the backend's call, so that only the calls on the uploaded matrices are refused here
    let machine = Machine::of(vec![boxed(NullDevice::new(Some(1 << 20)).with_waits(false))], &Settings::default());
    let mut a = machine.upload(MatRef::col_major(&[1.0; 4], 2, 2).unwrap()).unwrap();
    let before = record(&machine, 0);
    let error = machine.getrf(a.view_mut()).map(drop).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("outputs: as they were"), "{error}");
    assert_eq!(record(&machine, 0).requests, before.requests);
}
