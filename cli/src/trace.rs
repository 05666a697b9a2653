//! Writes timelines in Chrome's trace format, for Perfetto or chrome://tracing, or as SVG pictures.

use std::collections::BTreeSet;
use std::path::Path;

use lapidary::{CacheCounts, KernelTime, Queue, TraceEvent};
use serde_json::{Value, json};

use crate::bench::kernels::Profile;
use crate::bench::timeline::{self, Timeline};
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
    /// Kind of the command, which decides its colour.
    pub kind: String,
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
        json!({ "ph": "X", "name": event.label, "cat": event.kind, "pid": event.device, "tid": tid, "ts": ts, "dur": dur })
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
pub fn cache_counts(CacheCounts { hits, misses, rejected, .. }: CacheCounts) -> Value {
    json!({ "hits": hits, "misses": misses, "rejected": rejected })
}

/// Writes the trace of a run of the machine: a picture if the file name ends in `.svg`, else a JSON document for the viewer.
pub fn save(path: &Path, title: &str, run: &[TraceEvent], cache: CacheCounts) -> Result<()> {
    if run.is_empty() {
        let reason = "the call was one kernel on the caller's thread, and a trace draws calls on larger matrices";
        note(&format!("lapidary: note: {} is not written: {reason}", path.display()));
        return Ok(());
    }
    let begin = run.iter().map(|event| event.start).fold(f64::INFINITY, f64::min);
    let event = |event: &TraceEvent| Event {
        device: event.lane.device,
        queue: lane(&event.device, event.lane.queue, event.lane.number),
        label: event.label.clone(),
        kind: event.lane.queue.to_string(),
        start: event.start - begin,
        end: event.end - begin,
    };
    let events: Vec<Event> = run.iter().map(event).collect();
    let CacheCounts { hits, misses, rejected, .. } = cache;
    let title = match hits + misses + rejected {
        0 => title.to_owned(),
        _ => format!("{title}; programs: {hits} kept, {misses} compiled, {rejected} damaged"),
    };
    let of_rows: BTreeSet<(usize, &str, &str)> = events.iter().map(|e| (e.device, e.queue.as_str(), e.kind.as_str())).collect();
    let mut kinds: Vec<&str> = Vec::new();
    for (_, _, kind) in of_rows {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    write(path, &title, (&kinds, false), &events, json!({ "program_cache": cache_counts(cache) }))
}

/// Writes the kernels of a call as [`save`] writes commands. `device` is the name of the device. The colour of a kernel shows its group.
pub fn save_kernels(path: &Path, title: &str, device: &str, profile: &Profile) -> Result<()> {
    let event = |time: &KernelTime| Event {
        device: 0,
        queue: lane(device, Queue::Exec, time.queue),
        label: time.kernel.to_owned(),
        kind: profile.group(time).to_owned(),
        start: time.start,
        end: time.end,
    };
    let events: Vec<Event> = profile.times().iter().map(event).collect();
    write(path, title, (&profile.groups(), true), &events, json!({ "clock": "device" }))
}

/// Name of a queue of a device.
fn lane(device: &str, queue: Queue, number: usize) -> String {
    if number == 0 { format!("{device} {queue}") } else { format!("{device} {queue} {number}") }
}

/// Writes events as a picture with the kinds in the order of their colours, and with a legend if `has_legend` is set; or as a JSON
/// document with `other` data.
fn write(path: &Path, title: &str, (kinds, has_legend): (&[&str], bool), events: &[Event], other: Value) -> Result<()> {
    if path.extension().is_some_and(|extension| extension == "json") {
        let mut document = chrome(events);
        document["otherData"] = other;
        return save_json(path, &document);
    }
    let rows: BTreeSet<(usize, &String)> = events.iter().map(|event| (event.device, &event.queue)).collect();
    let rows: Vec<String> = rows.into_iter().map(|(_, row)| row.clone()).collect();
    let row_of = |event: &Event| rows.iter().position(|row| *row == event.queue).unwrap_or(0);
    let bars: Vec<(usize, Event)> = events.iter().map(|event| (row_of(event), event.clone())).collect();
    let text = timeline::svg(&Timeline { title, rows: &rows, kinds, has_legend }, &bars)?;
    atomic::write_text(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_complete_events_in_microseconds() {
        let queue = "load".to_owned();
        let trace = chrome(&[Event { device: 1, queue, label: "LD r0".to_owned(), kind: "LD".to_owned(), start: 1e-3, end: 3e-3 }]);
        let event = &trace["traceEvents"][2];
        assert_eq!((&event["ph"], &event["pid"], &event["cat"]), (&json!("X"), &json!(1), &json!("LD")));
        assert_eq!((event["ts"].as_f64(), event["dur"].as_f64()), (Some(1000.0), Some(2000.0)));
        assert_eq!(trace["traceEvents"][1]["args"]["name"], "load");
    }
}
