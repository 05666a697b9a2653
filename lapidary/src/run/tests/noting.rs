//! A device for tests of the order of requests, and of calls in which a request fails.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use lapidary_core::{
    BufferRect, DType, Device, DeviceBuffer, DeviceFacts, Error, ErrorKind, HostRect, Instruction, Operand, Pending, Result, Token,
    Work,
};

/// A device that writes each launch, each submission and each wait to a log. A request fails if its log entry is one of `failures`.
#[derive(Clone, Debug)]
pub(super) struct Noting {
    facts: DeviceFacts,
    pub log: Arc<Mutex<Vec<String>>>,
    failures: &'static [&'static str],
}

impl Noting {
    pub fn new(failures: &'static [&'static str]) -> Self {
        let mut facts = DeviceFacts::new("noting:0");
        facts.dtypes = vec![DType::F64];
        Noting { facts, log: Arc::default(), failures }
    }

    fn note(&self, entry: String) -> Result<()> {
        let failed = self.failures.contains(&entry.as_str());
        let error = Error::new(ErrorKind::DeviceFailed, "noting", entry.clone());
        self.log.lock().unwrap().push(entry);
        if failed { Err(error) } else { Ok(()) }
    }
}

impl Device for Noting {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn alloc(&self, _: usize) -> Result<DeviceBuffer> {
        Ok(DeviceBuffer::new(()))
    }
    unsafe fn write(&self, _: HostRect, _: BufferRect<'_>) -> Result<()> {
        Ok(())
    }
    unsafe fn read(&self, _: BufferRect<'_>, _: HostRect) -> Result<()> {
        Ok(())
    }
    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        self.note(format!("launch {}", instruction.name()))
    }
    unsafe fn submit(&self, work: Work<'_>, _: &[&Token]) -> Result<Token> {
        let Work::Run { instruction, .. } = work else { panic!("columns are moved by blocking transfers") };
        self.note(format!("submit {}", instruction.name()))?;
        Ok(Token::new(Noted(self.clone(), instruction.name())))
    }
}

/// Handle of an instruction that a device has accepted.
#[derive(Debug)]
struct Noted(Noting, &'static str);

impl Pending for Noted {
    fn poll(&self) -> Poll<Result<()>> {
        Poll::Pending
    }
    fn wait(&self) -> Result<()> {
        self.0.note(format!("wait {}", self.1))
    }
}
