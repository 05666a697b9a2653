//! What the host allows in a process: a thread may wait for the device. The module `page` has the same items for a browser.

use lapidary_core::Result;

use crate::queue::Refusal;

/// Whether a thread may wait for the device.
pub(crate) const MAY_WAIT: bool = true;

/// The reason why there is no adapter.
pub(crate) const NO_ADAPTER: &str = "there is no adapter: no driver of Vulkan, Metal or DX12 has one";

/// Waits for the result of `future`.
#[expect(clippy::unnecessary_wraps, reason = "in a browser, this function fails")]
pub(crate) fn block_on<F: Future>(_: &'static str, future: F) -> Result<F::Output> {
    Ok(pollster::block_on(future))
}

/// Pops error scopes in the reverse order of their creation, and returns the errors that they caught. wgpu returns the error of a
/// popped scope without delay.
pub(crate) fn pop(_: &'static str, scopes: Vec<wgpu::ErrorScopeGuard>, _: &Refusal) -> Vec<wgpu::Error> {
    scopes.into_iter().rev().filter_map(|scope| pollster::block_on(scope.pop())).collect()
}

/// Calls `tell` when all work that was submitted so far has ended.
pub(crate) fn when_done(_: &wgpu::Device, queue: &wgpu::Queue, tell: impl FnOnce() + Send + 'static) {
    queue.on_submitted_work_done(tell);
}
