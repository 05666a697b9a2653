//! A device that computes nothing and records the calls that it receives.
//!
//! Tests run plans and schedules on a null device without a driver. The record of the device shows the order of the calls and how
//! much memory was allocated at the same time. A test can make one call of the device fail, and check the state after the
//! failure.

use crate::device::{BufferRect, Device, DeviceBuffer, HostRect, Operand};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::DeviceFacts;
use crate::instruction::Instruction;
use crate::scalar::DType;
use crate::sync::{Arc, Mutex, lock};

/// A call that a null device received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Allocation of a buffer. The field is the size of the buffer in bytes.
    Alloc(usize),
    /// Transfer of a rectangle from host memory into a buffer. The fields are the numbers of rows and columns.
    Write(usize, usize),
    /// Transfer of a rectangle from a buffer into host memory. The fields are the numbers of rows and columns.
    Read(usize, usize),
    /// Launch of a kernel. The field is the name of the kernel.
    Launch(&'static str),
}

/// The calls that a null device received, and the memory that it allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The calls that the device received, in the order of their arrival.
    pub requests: Vec<Request>,
    /// Number of bytes that are allocated now.
    pub held: usize,
    /// Largest number of bytes that were allocated at the same time.
    pub most: usize,
}

/// A device that computes nothing and records the calls that it receives.
#[derive(Debug)]
pub struct NullDevice {
    facts: DeviceFacts,
    record: Arc<Mutex<Record>>,
    /// The index, counted from 0, of the call that fails, and the kind of the error that this call returns.
    failure: Option<(usize, ErrorKind)>,
    /// Number of bytes that can really be allocated. [`DeviceFacts::memory`] may state a larger number.
    real: usize,
}

/// A buffer of a null device: it has a size, but no memory.
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
    /// A null device with a memory limit of `memory` bytes. A null device without a memory limit reports that it works on host
    /// memory in place.
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

    /// Sets whether calls may wait for the device, as [`DeviceFacts::host_may_wait`] does.
    #[must_use]
    pub fn with_waits(mut self, host_may_wait: bool) -> Self {
        self.facts.host_may_wait = host_may_wait;
        self
    }

    /// Sets the model of the device.
    #[must_use]
    pub fn with_model(mut self, model: &str) -> Self {
        self.facts.identity.model = model.to_owned();
        self
    }

    /// Sets the speed in the device's facts to `flops` floating-point operations per second.
    #[must_use]
    pub fn with_flops(mut self, flops: f64) -> Self {
        self.facts.rates.flops = flops;
        self
    }

    /// Sets the number of kernel queues in the device's facts.
    #[must_use]
    pub fn with_queues(mut self, queues: usize) -> Self {
        self.facts.queues = queues;
        self
    }

    /// Makes the call with index `request`, counted from 0, fail with [`ErrorKind::DeviceFailed`].
    #[must_use]
    pub fn failing_at(self, request: usize) -> Self {
        NullDevice { failure: Some((request, ErrorKind::DeviceFailed)), ..self }
    }

    /// Makes the call with index `request`, counted from 0, fail with [`ErrorKind::OutOfMemory`].
    #[must_use]
    pub fn out_of_memory_at(self, request: usize) -> Self {
        NullDevice { failure: Some((request, ErrorKind::OutOfMemory)), ..self }
    }

    /// Removes the size of the memory from the device's facts.
    #[must_use]
    pub fn without_stated_memory(mut self) -> Self {
        self.facts.memory = None;
        self
    }

    /// Makes the call with index `request`, counted from 0, fail with [`ErrorKind::DeviceLost`].
    #[must_use]
    pub fn lost_at(self, request: usize) -> Self {
        NullDevice { failure: Some((request, ErrorKind::DeviceLost)), ..self }
    }

    /// Makes an allocation fail if the total of the allocated memory would exceed `bytes`, even if the facts of the device state
    /// more memory.
    #[must_use]
    pub fn with_only(self, bytes: usize) -> Self {
        NullDevice { real: bytes, ..self }
    }

    /// A copy of the record of all calls that the device has received so far.
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

    unsafe fn write(&self, from: HostRect, _: BufferRect<'_>) -> Result<()> {
        self.note(Request::Write(from.rows, from.cols))
    }

    unsafe fn read(&self, _: BufferRect<'_>, to: HostRect) -> Result<()> {
        self.note(Request::Read(to.rows, to.cols))
    }

    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        self.note(Request::Launch(instruction.name()))
    }
}
