//! A device that computes nothing and records what it is asked.
//!
//! Plans and schedules are tried on it without a driver: in which order things
//! happened, how much memory was held at once, what a failure leaves behind.

use crate::device::{Device, DeviceBuffer, HostRect, Operand};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::DeviceFacts;
use crate::instruction::Instruction;
use crate::scalar::DType;
use crate::sync::{Arc, Mutex, lock};

/// What a null device was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Memory of so many bytes.
    Alloc(usize),
    /// A rectangle of rows × columns into a register.
    Write(usize, usize),
    /// A rectangle of rows × columns out of a register.
    Read(usize, usize),
    /// A kernel by name.
    Launch(&'static str),
}

/// The record of a null device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Requests in the order of their arrival.
    pub requests: Vec<Request>,
    /// Bytes held now.
    pub held: usize,
    /// Most bytes held at once.
    pub most: usize,
}

/// A device that records.
#[derive(Debug)]
pub struct NullDevice {
    facts: DeviceFacts,
    record: Arc<Mutex<Record>>,
    /// The request that fails, counted from 0, and how.
    failure: Option<(usize, ErrorKind)>,
    /// Bytes that it really has.
    real: usize,
}

/// Memory of a null device: its size.
#[derive(Debug)]
struct NullBuffer {
    bytes: usize,
    record: Arc<Mutex<Record>>,
}

impl Drop for NullBuffer {
    fn drop(&mut self) {
        lock(&self.record).held -= self.bytes;
    }
}

impl NullDevice {
    /// A device limited to `memory` bytes; without a limit it "works" in place.
    #[must_use]
    pub fn new(memory: Option<usize>) -> Self {
        let facts = DeviceFacts {
            description: "records what it is asked".to_owned(),
            dtypes: vec![DType::F32, DType::F64],
            memory,
            host_memory: memory.is_none(),
            ..DeviceFacts::new("null:0")
        };
        NullDevice { facts, record: Arc::new(Mutex::new(Record::default())), failure: None, real: usize::MAX }
    }

    /// The same device, so fast by its own account.
    #[must_use]
    pub fn with_flops(mut self, flops: f64) -> Self {
        self.facts.rates.flops = flops;
        self
    }

    /// The same device with `queues` queues of kernels.
    #[must_use]
    pub fn with_queues(mut self, queues: usize) -> Self {
        self.facts.queues = queues;
        self
    }

    /// The same device, failing at its `request`-th request.
    #[must_use]
    pub fn failing_at(self, request: usize) -> Self {
        NullDevice { failure: Some((request, ErrorKind::DeviceFailed)), ..self }
    }

    /// The same device, without memory for its `request`-th request.
    #[must_use]
    pub fn short_at(self, request: usize) -> Self {
        NullDevice { failure: Some((request, ErrorKind::OutOfMemory)), ..self }
    }

    /// The same device, which does not state its memory.
    #[must_use]
    pub fn without_stated_memory(mut self) -> Self {
        self.facts.memory = None;
        self
    }

    /// The same device, gone at its `request`-th request.
    #[must_use]
    pub fn lost_at(self, request: usize) -> Self {
        NullDevice { failure: Some((request, ErrorKind::DeviceLost)), ..self }
    }

    /// The same device with less memory than it says: it refuses what exceeds `bytes`.
    #[must_use]
    pub fn with_only(self, bytes: usize) -> Self {
        NullDevice { real: bytes, ..self }
    }

    /// What was asked so far.
    #[must_use]
    pub fn record(&self) -> Record {
        lock(&self.record).clone()
    }

    fn note(&self, request: Request) -> Result<()> {
        let mut record = lock(&self.record);
        record.requests.push(request);
        match self.failure {
            Some((at, kind)) if at == record.requests.len() - 1 => Err(Error::new(kind, "null", "told to fail")),
            Some(_) | None => Ok(()),
        }
    }
}

impl Device for NullDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.note(Request::Alloc(bytes))?;
        let mut record = lock(&self.record);
        if record.held + bytes > self.real {
            return Err(Error::new(ErrorKind::OutOfMemory, "null", format!("{bytes} bytes are more than are left")));
        }
        record.held += bytes;
        record.most = record.most.max(record.held);
        Ok(DeviceBuffer::new(NullBuffer { bytes, record: Arc::clone(&self.record) }))
    }

    unsafe fn write(&self, from: HostRect, _: &DeviceBuffer) -> Result<()> {
        self.note(Request::Write(from.rows, from.cols))
    }

    unsafe fn read(&self, _: &DeviceBuffer, to: HostRect) -> Result<()> {
        self.note(Request::Read(to.rows, to.cols))
    }

    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        self.note(Request::Launch(instruction.name()))
    }
}
