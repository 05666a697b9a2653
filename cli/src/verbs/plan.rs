//! stub
#[derive(clap::Args, Debug)]
pub struct Args {}
pub fn run(_: &Args) -> crate::failure::Result<()> { let _ = crate::trace::chrome(&[]); Ok(()) }
