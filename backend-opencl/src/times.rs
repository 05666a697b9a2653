//! The times of kernels, from the events of their launches.

use std::collections::VecDeque;

use cl3::event::{CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START, get_event_profiling_info};
use cl3::info_type::InfoType;
use lapidary_core::{Error, ErrorKind, KernelTime, Result};

use crate::buffer::Event;
use crate::conv::failed;
use crate::queue::wait;

/// Maximum number of events that are kept. Before another launch, the oldest event is waited for, replaced by its times and released.
/// The queues then still hold more kernels than the device runs during the wait.
const MAX_EVENTS: usize = 1024;

/// Maximum number of kernels whose times are kept, which take 56 MiB.
const MAX_TIMES: usize = 1 << 20;

/// A launch of a kernel. `span` is the event of the launch, or the start and the end of the kernel in nanoseconds of the device's clock.
#[derive(Debug)]
struct Launch<S> {
    kernel: &'static str,
    operation: &'static str,
    queue: usize,
    span: S,
}

/// The launches of the kernels of one device since their times were taken.
#[derive(Debug)]
pub(crate) struct Times {
    operation: &'static str,
    /// The launches whose events are kept, the oldest first.
    events: VecDeque<Launch<Event>>,
    /// The launches before `events`. An error if their times are not known or too many; no more times are recorded then.
    known: Result<Vec<Launch<[u64; 2]>>>,
}

impl Default for Times {
    fn default() -> Self {
        Times { operation: "", events: VecDeque::new(), known: Ok(Vec::new()) }
    }
}

impl Times {
    /// Stores the name of the operation for which the next kernels are launched.
    pub fn begin(&mut self, operation: &'static str) {
        self.operation = operation;
    }

    /// Records a launch.
    pub fn add(&mut self, kernel: &'static str, queue: usize, event: Event) {
        if self.known.is_err() {
            return;
        }
        while self.events.len() >= MAX_EVENTS {
            self.settle_oldest();
        }
        self.events.push_back(Launch { kernel, operation: self.operation, queue, span: event });
    }

    /// Replaces the oldest event by its times.
    fn settle_oldest(&mut self) {
        let Some(Launch { kernel, operation, queue, span }) = self.events.pop_front() else { return };
        if let Ok(known) = &mut self.known {
            match span_of(&span) {
                Ok(_) if known.len() >= MAX_TIMES => self.known = Err(too_many()),
                Ok(span) => known.push(Launch { kernel, operation, queue, span }),
                Err(error) => self.known = Err(error.with("kernel", kernel)),
            }
        }
    }

    /// Waits for all kernels, and removes their times, and returns them in the order in which the kernels started.
    pub fn take(&mut self) -> Result<Vec<KernelTime>> {
        while !self.events.is_empty() {
            self.settle_oldest();
        }
        let mut launches = std::mem::replace(&mut self.known, Ok(Vec::new()))?;
        launches.sort_by_key(|launch| launch.span);
        let first = launches.first().map_or(0, |launch| launch.span[0]);
        // some drivers return the same time for all kernels
        if launches.len() > 1 && launches.iter().all(|launch| launch.span[0] == first) {
            let message = "the driver reports that all kernels started at the same time, so that no times are known";
            return Err(Error::new(ErrorKind::Unsupported, "take_kernel_times", message));
        }
        let time = |Launch { kernel, operation, queue, span }: Launch<[u64; 2]>| {
            let [start, end] = span.map(|nanoseconds| (nanoseconds - first) as f64 * 1e-9);
            let mut time = KernelTime::new(kernel, operation, start, end);
            time.queue = queue;
            time
        };
        Ok(launches.into_iter().map(time).collect())
    }
}

fn too_many() -> Error {
    let message = format!("the device has run more than {MAX_TIMES} kernels: take their times more often");
    Error::new(ErrorKind::Unsupported, "take_kernel_times", message)
}

/// The start and the end of a kernel in nanoseconds of the device's clock. Waits for the kernel.
fn span_of(event: &Event) -> Result<[u64; 2]> {
    wait(event)?;
    let time = |which| {
        let time = get_event_profiling_info(event.0, which).map(InfoType::to_ulong);
        time.map_err(|code| failed("clGetEventProfilingInfo", code))
    };
    let start = time(CL_PROFILING_COMMAND_START)?;
    // a kernel does not end before it starts, whatever the driver reports
    Ok([start, time(CL_PROFILING_COMMAND_END)?.max(start)])
}

#[cfg(test)]
mod tests {
    use cl3::event::{CL_COMPLETE, create_user_event, set_user_event_status};

    use super::*;
    use crate::program::tests::device;
    use crate::queue::Queue;

    #[test]
    fn old_events_become_times_before_there_are_too_many() {
        let Some((found, context)) = device() else { return };
        let (queue, mut times) = (Queue::timed(&context, &found).unwrap(), Times::default());
        times.begin("getrf");
        for _ in 0..MAX_EVENTS + 3 {
            times.add("a", 1, queue.end().unwrap());
        }
        assert_eq!((times.events.len(), times.known.as_ref().unwrap().len()), (MAX_EVENTS, 3));
        let taken = times.take().unwrap();
        assert_eq!((taken.len(), taken[0].start), (MAX_EVENTS + 3, 0.0));
        assert!(taken.iter().all(|time| (time.kernel, time.operation, time.queue) == ("a", "getrf", 1) && time.start <= time.end));
        assert!(taken.is_sorted_by(|one, other| one.start <= other.start));
        assert_eq!(times.take().unwrap(), []);
    }

    #[test]
    fn times_that_are_too_many_or_unknown_are_an_error_once() {
        let Some((found, context)) = device() else { return };
        let (queue, mut times) = (Queue::timed(&context, &found).unwrap(), Times::default());
        let launch = || Launch { kernel: "a", operation: "gemm", queue: 0, span: [5, 7] };
        times.known = Ok((0..MAX_TIMES).map(|_| launch()).collect());
        times.add("b", 0, queue.end().unwrap());
        assert!(times.take().unwrap_err().to_string().contains("take their times more often"));
        assert_eq!(times.take().unwrap(), []);
        times.known = Ok(vec![launch(), launch()]);
        assert!(times.take().unwrap_err().to_string().contains("all kernels started at the same time"));
        times.known = Ok(vec![launch()]);
        assert_eq!(times.take().unwrap().len(), 1);
        // the driver knows no time of an event that belongs to no queue
        let event = Event(create_user_event(context.0).unwrap());
        set_user_event_status(event.0, CL_COMPLETE).unwrap();
        times.add("b", 0, event);
        times.add("c", 0, queue.end().unwrap());
        let error = times.take().unwrap_err().to_string();
        assert!(error.contains("clGetEventProfilingInfo") && error.contains("kernel: b"), "{error}");
        assert_eq!(times.take().unwrap(), []);
    }
}
