//! Gives other tasks of the page their turn during long loops.

use std::time::Duration;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;
use web_time::Instant;

/// Time for which a loop runs before the page gets its turn. A page that is busy for less than 50 ms feels responsive.
const TURN: Duration = Duration::from_millis(16);

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(call: &Function, milliseconds: i32);
}

/// The turns of one long loop.
#[derive(Debug)]
pub(crate) struct Turns(Instant);

impl Turns {
    /// Begins the first turn.
    pub fn new() -> Self {
        Turns(Instant::now())
    }

    /// Lets the page handle its events, if the loop has run for the time of a turn.
    pub async fn pause(&mut self) {
        if self.0.elapsed() >= TURN {
            pause().await;
            self.0 = Instant::now();
        }
    }
}

/// Lets the page handle its events and draw.
pub(crate) async fn pause() {
    let turn = Promise::new(&mut |resolve, _| set_timeout(&resolve, 0));
    // the promise is never rejected
    let _ = JsFuture::from(turn).await;
}
