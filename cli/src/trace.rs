//! Chrome's trace format: a timeline to look at in Perfetto or chrome://tracing.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// One bar of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Index of the device: a process in the viewer.
    pub device: usize,
    /// Name of the queue: a thread in the viewer.
    pub queue: String,
    /// What runs.
    pub label: String,
    /// Begin, in seconds.
    pub start: f64,
    /// End, in seconds.
    pub end: f64,
}

/// The events as a document for the viewer, whose unit is the microsecond.
pub fn chrome(events: &[Event]) -> Value {
    let queues: BTreeSet<(usize, &str)> = events.iter().map(|e| (e.device, e.queue.as_str())).collect();
    let queues: Vec<_> = queues.into_iter().collect();
    let mut list: Vec<Value> = Vec::new();
    for (tid, (device, queue)) in queues.iter().enumerate() {
        let process = json!({ "name": format!("device {device}") });
        list.push(json!({ "ph": "M", "name": "process_name", "pid": device, "args": process }));
        list.push(json!({ "ph": "M", "name": "thread_name", "pid": device, "tid": tid, "args": { "name": queue } }));
    }
    list.extend(events.iter().map(|event| {
        let tid = queues.iter().position(|queue| *queue == (event.device, event.queue.as_str()));
        let (ts, dur) = (event.start * 1e6, (event.end - event.start) * 1e6);
        json!({ "ph": "X", "name": event.label, "pid": event.device, "tid": tid, "ts": ts, "dur": dur })
    }));
    json!({ "displayTimeUnit": "ms", "traceEvents": list })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_complete_events_in_microseconds() {
        let queue = "load".to_owned();
        let trace = chrome(&[Event { device: 1, queue, label: "LD r0".to_owned(), start: 1e-3, end: 3e-3 }]);
        let event = &trace["traceEvents"][2];
        assert_eq!((&event["ph"], &event["pid"]), (&json!("X"), &json!(1)));
        assert_eq!((event["ts"].as_f64(), event["dur"].as_f64()), (Some(1000.0), Some(2000.0)));
        assert_eq!(trace["traceEvents"][1]["args"]["name"], "load");
    }
}
