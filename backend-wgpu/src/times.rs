//! The times of kernels, from timestamps that the device writes before and after each kernel.

use lapidary_core::{Error, ErrorKind, KernelTime, Result};

use crate::queue::{Queue, Submission};

/// Maximum number of kernels whose times are kept, which take 48 MiB.
const MAX_TIMES: usize = 1 << 20;

/// Size of a timestamp in bytes.
const STAMP: u64 = size_of::<u64>() as u64;

/// A launch of a kernel. `span` holds the timestamps at its start and its end.
#[derive(Clone, Copy, Debug)]
struct Launch {
    label: Label,
    span: [u64; 2],
}

/// The names of a kernel and of the operation for which it runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Label {
    pub kernel: &'static str,
    pub operation: &'static str,
}

/// Queries for the timestamps of the kernels that are submitted together.
#[derive(Debug)]
pub(crate) struct Queries {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    readable: wgpu::Buffer,
    count: u32,
}

impl Queries {
    /// Makes the queries for `kernels` kernels.
    pub fn new(device: &wgpu::Device, kernels: usize) -> Self {
        let count = 2 * u32::try_from(kernels).expect("a pass has few kernels");
        let set = device.create_query_set(&wgpu::QuerySetDescriptor { label: None, ty: wgpu::QueryType::Timestamp, count });
        let buffer = |usage| {
            let size = u64::from(count) * STAMP;
            device.create_buffer(&wgpu::BufferDescriptor { label: Some("times"), size, usage, mapped_at_creation: false })
        };
        let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        Queries { set, resolved, readable: buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST), count }
    }

    /// Returns the timestamps that the pass of kernel number `kernel` writes.
    pub fn of(&self, kernel: u32) -> wgpu::ComputePassTimestampWrites<'_> {
        wgpu::ComputePassTimestampWrites {
            query_set: &self.set,
            beginning_of_pass_write_index: Some(2 * kernel),
            end_of_pass_write_index: Some(2 * kernel + 1),
        }
    }

    /// Adds the commands that copy the timestamps to memory that the host can read.
    pub fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        encoder.resolve_query_set(&self.set, 0..self.count, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.readable, 0, self.resolved.size());
    }

    /// Waits for the submission with these queries, and returns the timestamps.
    fn read(&self, queue: &Queue, submission: &Submission) -> Result<Vec<u64>> {
        queue.map(&self.readable, wgpu::MapMode::Read, self.readable.size(), submission)?;
        let mapped = self.readable.get_mapped_range(..).map_err(|error| queue.unmapped(&error))?;
        Ok(mapped.chunks_exact(size_of::<u64>()).map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))).collect())
    }
}

/// The launches of the kernels of one device since their times were taken.
#[derive(Debug)]
pub(crate) struct Times {
    pub operation: &'static str,
    /// Submissions whose timestamps have not been read.
    submitted: Vec<(Vec<Label>, Queries, Submission)>,
    /// The launches before those of `submitted`. An error if there were too many; no more times are recorded then.
    known: Result<Vec<Launch>>,
}

impl Default for Times {
    fn default() -> Self {
        Times { operation: "", submitted: Vec::new(), known: Ok(Vec::new()) }
    }
}

impl Times {
    /// Records the launches of a submission.
    pub fn add(&mut self, labels: Vec<Label>, queries: Queries, submission: Submission) {
        self.submitted.push((labels, queries, submission));
    }

    /// Waits for the recorded submissions and reads their timestamps. Each instruction ends with this call, so that few queries exist at a
    /// time.
    pub fn settle(&mut self, queue: &Queue) -> Result<()> {
        for (labels, queries, submission) in std::mem::take(&mut self.submitted) {
            self.store(labels, &queries.read(queue, &submission)?);
        }
        Ok(())
    }

    /// Stores two timestamps for each launch of `labels`.
    fn store(&mut self, labels: Vec<Label>, stamps: &[u64]) {
        let Ok(known) = &mut self.known else { return };
        if known.len() + labels.len() > MAX_TIMES {
            self.known = Err(too_many());
            return;
        }
        // a kernel does not end before it starts, whatever the driver reports
        let spans = stamps.chunks_exact(2).map(|span| [span[0], span[1].max(span[0])]);
        known.extend(labels.into_iter().zip(spans).map(|(label, span)| Launch { label, span }));
    }

    /// Removes the times, and returns them in the order in which the kernels started. A timestamp counts `period` nanoseconds.
    pub fn take(&mut self, period: f32) -> Result<Vec<KernelTime>> {
        let mut launches = std::mem::replace(&mut self.known, Ok(Vec::new()))?;
        launches.sort_by_key(|launch| launch.span);
        let first = launches.first().map_or(0, |launch| launch.span[0]);
        let time = |Launch { label: Label { kernel, operation }, span }: Launch| {
            let [start, end] = span.map(|stamp| (stamp - first) as f64 * f64::from(period) / 1e9);
            KernelTime::new(kernel, operation, start, end)
        };
        Ok(launches.into_iter().map(time).collect())
    }
}

fn too_many() -> Error {
    let message = format!("the device has run more than {MAX_TIMES} kernels: take their times more often");
    Error::new(ErrorKind::Unsupported, "take_kernel_times", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(kernels: &[&'static str]) -> Vec<Label> {
        kernels.iter().map(|kernel| Label { kernel, operation: "getrf" }).collect()
    }

    #[test]
    fn times_are_seconds_since_the_first_start_and_no_kernel_ends_before_it_starts() {
        let mut times = Times::default();
        times.store(labels(&["b", "c"]), &[1500, 2500, 3000, 2000]);
        times.store(labels(&["a"]), &[1000, 1250]);
        let time = |kernel, start, end| KernelTime::new(kernel, "getrf", start, end);
        // a timestamp of this test counts two seconds
        let expected = [time("a", 0.0, 500.0), time("b", 1000.0, 3000.0), time("c", 4000.0, 4000.0)];
        assert_eq!(times.take(2e9).unwrap(), expected);
        assert_eq!(times.take(1.0).unwrap(), []);
    }

    #[test]
    fn too_many_times_are_an_error_once() {
        let mut times = Times::default();
        times.store(labels(&["a"; MAX_TIMES]), &[1; 2 * MAX_TIMES]);
        times.store(labels(&["b"]), &[2, 3]);
        times.store(labels(&["c"]), &[4, 5]);
        assert!(times.take(1.0).unwrap_err().to_string().contains("take their times more often"));
        assert_eq!(times.take(1.0).unwrap(), []);
    }
}
