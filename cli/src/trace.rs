//! Writes timelines in Chrome's trace format, for Perfetto or chrome://tracing, or as SVG pictures.

use std::collections::BTreeSet;
use std::path::Path;

use lapidary::{CacheCounts, TraceEvent};
use serde_json::{Value, json};

use crate::bench::timeline;
use crate::failure::{Failure, Result};
use crate::io::atomic;
use crate::report::{note, save_json};

/// A command on a timeline, drawn as a bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Index of the device, which the viewer shows as a process.
    pub device: usize,
    /// Name of the queue, which the viewer shows as a thread.
    pub queue: String,
    /// Name of the command.
    pub label: String,
    /// Start time in seconds.
    pub start: f64,
    /// End time in seconds.
    pub end: f64,
}

/// Converts events to a JSON document in Chrome's trace format, with times in microseconds.
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

/// Refuses a file name that ends neither in `.svg` nor in `.json`.
pub fn check_path(path: &Path) -> Result<()> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg" | "json") => Ok(()),
        Some(_) | None => Err(Failure::file(path, "a trace is a picture or a document, name a file that ends in .svg or .json")),
    }
}

/// The counts of a program cache as JSON: programs that were found, compiled anew, or rejected as damaged.
pub fn cache_counts(CacheCounts { hits, misses, rejected }: CacheCounts) -> Value {
    json!({ "hits": hits, "misses": misses, "rejected": rejected })
}

/// Writes the trace of a run of the machine: a picture if the file name ends in `.svg`, else a JSON document for the viewer.
pub fn save(path: &Path, title: &str, run: &[TraceEvent], cache: CacheCounts) -> Result<()> {
    if run.is_empty() {
        note("lapidary: --trace has nothing to draw: the call was one kernel on the caller's thread; take a larger size");
        return Ok(());
    }
    let begin = run.iter().map(|event| event.start).fold(f64::INFINITY, f64::min);
    let event = |event: &TraceEvent| Event {
        device: event.lane.device,
        queue: match event.lane.number {
            0 => format!("{} {}", event.device, event.lane.queue),
            number => format!("{} {} {number}", event.device, event.lane.queue),
        },
        label: event.label.clone(),
        start: event.start - begin,
        end: event.end - begin,
    };
    let events: Vec<Event> = run.iter().map(event).collect();
    if path.extension().is_some_and(|extension| extension == "json") {
        let mut document = chrome(&events);
        document["otherData"] = json!({ "program_cache": cache_counts(cache) });
        return save_json(path, &document);
    }
    let rows: BTreeSet<(usize, String, String)> =
        run.iter().zip(&events).map(|(e, event)| (event.device, event.queue.clone(), e.lane.queue.to_string())).collect();
    let rows: Vec<(String, String)> = rows.into_iter().map(|(_, row, queue)| (row, queue)).collect();
    let row_of = |event: &Event| rows.iter().position(|(row, _)| *row == event.queue).unwrap_or(0);
    let bars: Vec<(usize, Event)> = events.iter().map(|event| (row_of(event), event.clone())).collect();
    let CacheCounts { hits, misses, rejected } = cache;
    let title = match hits + misses + rejected {
        0 => title.to_owned(),
        _ => format!("{title}; programs: {hits} kept, {misses} compiled, {rejected} damaged"),
    };
    let text = timeline::svg(&title, &rows, &bars)?;
    atomic::write_text(path, &text)
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
