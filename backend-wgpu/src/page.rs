//! What the host allows on a page of a browser: no thread may wait, since the only thread of the page also receives the answers
//! of the device. The module `process` has the same items for a process.

use lapidary_core::{Error, ErrorKind, Result};
use wasm_bindgen_futures::spawn_local;

use crate::conv::caught_first;
use crate::queue::Refusal;

/// Whether a thread may wait for the device.
pub(crate) const MAY_WAIT: bool = false;

/// The reason why there is no adapter.
pub(crate) const NO_ADAPTER: &str = "this browser has no WebGPU, or gives this page no adapter; WebGPU also needs a secure origin: \
     https, or http on localhost";

/// Returns an error, because a page must not wait.
pub(crate) fn block_on<F: Future>(operation: &'static str, _: F) -> Result<F::Output> {
    let message = "a page must not wait for the browser: use `WgpuDevice::request` and `.await`";
    Err(Error::new(ErrorKind::Unsupported, operation, message))
}

/// Pops error scopes in the reverse order of their creation. The browser reports the errors later: the first error goes to
/// `refusal`, and no error is returned.
pub(crate) fn pop(operation: &'static str, scopes: Vec<wgpu::ErrorScopeGuard>, refusal: &Refusal) -> Vec<wgpu::Error> {
    let refusal = refusal.clone();
    let popped: Vec<_> = scopes.into_iter().rev().map(wgpu::ErrorScopeGuard::pop).collect();
    spawn_local(async move {
        let mut errors = Vec::new();
        for scope in popped {
            errors.extend(scope.await);
        }
        if let Some(error) = caught_first(operation, &errors) {
            refusal.set(error);
        }
    });
    Vec::new()
}

/// Calls `tell` when all work that was submitted so far has ended, and after the browser has reported the errors of this work.
/// Error scopes report in the order in which they are popped, and the browser may report an error of a submission after its end.
/// An empty error scope therefore marks the point up to which all errors have been reported.
pub(crate) fn when_done(device: &wgpu::Device, queue: &wgpu::Queue, tell: impl FnOnce() + Send + 'static) {
    let device = device.clone();
    queue.on_submitted_work_done(move || {
        let reported = device.push_error_scope(wgpu::ErrorFilter::Validation).pop();
        spawn_local(async move {
            reported.await;
            tell();
        });
    });
}
