//! Finds out whether the workgroups of a device may wait for one another. No API reports whether workgroups may wait for one
//! another, so a small program, the probe, tests it on the device.

use std::thread::sleep;
use std::time::Duration;

use lapidary_core::{Instant, ProgramCache, Result};

use crate::device::COHERENT;
use crate::queue::{Queue, Submission};

/// WGSL source of the probe.
const TEXT: &str = include_str!("probe.wgsl");
/// Number of workgroups of the probe. The probe has as many workgroups as a panel has strips at most, because each strip of a
/// panel has one workgroup.
const GROUPS: u32 = 256;
/// Number of invocations per workgroup of the probe. The constant `ITEMS` in the WGSL source of the probe has the same value.
const ITEMS: u32 = 64;
/// Maximum time of a wait for the end of the probe. The probe ends in far less time if workgroups may wait, and a delay of two
/// seconds is bearable if a workgroup hangs.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two polls for the end of the probe.
const PAUSE: Duration = Duration::from_micros(100);

/// Returns whether a workgroup may wait for a workgroup that began before it. Two conditions must hold: during the wait the
/// preceding workgroup makes progress, and the waiting workgroup then sees the values that the preceding workgroup wrote. The
/// probe runs only if `disk` holds no answer for the device, and `disk` stores the answer. If the probe times out or fails, the
/// function returns false and stores no answer, so that the probe runs again when the device is opened again. In a browser no device
/// has the feature that the probe needs, so that the probe does not run.
pub(crate) fn groups_may_wait(queue: &Queue, disk: &ProgramCache) -> bool {
    queue.device().features().contains(COHERENT) && ask_once(queue, disk, TEXT)
}

/// Returns the answer of the probe that `disk` holds. If `disk` holds no answer, the function runs the probe `text` and stores
/// its answer in `disk`.
fn ask_once(queue: &Queue, disk: &ProgramCache, text: &str) -> bool {
    let key = key(queue, text);
    if let Some(answer) = load(disk, &key) {
        return answer;
    }
    let answer = ask(queue, text, PATIENCE).ok().flatten();
    if let Some(answer) = answer {
        disk.store(&key, &[answer.into()]);
    }
    answer.unwrap_or(false)
}

/// Returns the key under which the answer of the probe is stored. The key contains everything that may change the answer: the
/// device, its driver and the text of the probe.
fn key(queue: &Queue, text: &str) -> String {
    format!("probe of waits\n{}\n{text}", queue.identity())
}

/// Returns the answer of the probe that is stored in `disk` under `key`, or `None` if there is no valid answer.
fn load(disk: &ProgramCache, key: &str) -> Option<bool> {
    if !disk.keeps() {
        return None;
    }
    match disk.load(key)?[..] {
        [0] => Some(false),
        [1] => Some(true),
        _ => {
            disk.reject();
            None
        }
    }
}

/// Runs the probe `text`. Returns whether every invocation of the probe saw the expected signal and the expected number, or
/// `None` if the probe does not end within `patience`.
fn ask(queue: &Queue, text: &str, patience: Duration) -> Result<Option<bool>> {
    let (answers, submission) = queue.guarded("probe", |device| submit(queue, device, text))?;
    let start = Instant::now();
    loop {
        // the time is compared first, so that without patience there is no answer, however fast the device is
        if start.elapsed() >= patience || queue.lost().is_some() {
            return Ok(None);
        }
        if queue.is_done(&submission) {
            break;
        }
        sleep(PAUSE);
    }
    queue.map(&answers, wgpu::MapMode::Read, answers.size(), &submission)?;
    queue.guarded("probe", |_| {
        let mapped = answers.get_mapped_range(..).map_err(|error| queue.unmapped(&error))?;
        Ok(Some(mapped.chunks_exact(size_of::<u32>()).all(|answer| answer.iter().any(|&byte| byte != 0))))
    })?
}

/// Submits the probe, and then a copy of the results of the probe to a buffer that can be mapped. Returns the buffer that can be
/// mapped, and a handle to the submission.
fn submit(queue: &Queue, device: &wgpu::Device, text: &str) -> (wgpu::Buffer, Submission) {
    use wgpu::BufferUsages as Usages;
    let bytes = u64::from(GROUPS * ITEMS) * size_of::<u32>() as u64;
    let buffer = |label, size, usage| {
        device.create_buffer(&wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false })
    };
    let turns = buffer("turns", 2 * size_of::<u32>() as u64, Usages::STORAGE);
    let notes = buffer("notes", bytes, Usages::STORAGE);
    let seen = buffer("seen", bytes, Usages::STORAGE | Usages::COPY_SRC);
    let answers = buffer("answers", bytes, Usages::MAP_READ | Usages::COPY_DST);
    let source = wgpu::ShaderSource::Wgsl(text.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("probe"), source });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("probe"),
        layout: None,
        module: &module,
        entry_point: Some("probe"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let entries: Vec<_> = (0..)
        .zip([&turns, &notes, &seen])
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
        .collect();
    let layout = pipeline.get_bind_group_layout(0);
    let bound = device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some("probe"), layout: &layout, entries: &entries });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("probe") });
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &bound, &[]);
    pass.dispatch_workgroups(GROUPS, 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&seen, 0, &answers, 0, bytes);
    (answers, queue.submit(encoder))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::device::{WgpuDevice, required_features};

    /// Opens every adapter with the feature [`COHERENT`]. Returns the names of the drivers and the queues. On SwiftShader the
    /// answer of the probe is yes, because SwiftShader runs each workgroup to its end before the next workgroup begins.
    fn queues() -> Vec<(String, Queue)> {
        let able = crate::list().devices.into_iter().filter(|found| found.adapter.features().contains(COHERENT));
        let open = |adapter: &wgpu::Adapter| {
            let required_features = required_features(adapter);
            let wanted = wgpu::DeviceDescriptor { required_features, ..Default::default() };
            let (device, queue) = pollster::block_on(adapter.request_device(&wanted)).unwrap();
            Queue::new(device, queue)
        };
        let queues: Vec<_> = able.map(|found| (found.info.driver.clone(), open(&found.adapter))).collect();
        assert!(!queues.is_empty() || std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_none(), "no adapter is coherent");
        queues
    }

    /// Returns the WGSL source of the probe with `part` replaced by `instead`.
    fn changed(part: &str, instead: &str) -> String {
        assert!(TEXT.contains(part), "{part}");
        TEXT.replace(part, instead)
    }

    /// Returns the WGSL source of a probe in which no workgroup signals.
    fn silent() -> String {
        changed("atomicStore(&turns[1], own + 1u);", "")
    }

    #[test]
    fn the_answer_is_yes_where_groups_go_on_and_no_where_nobody_signals_or_nothing_is_seen() {
        for (driver, queue) in queues() {
            // in this probe workgroups wait longer, because the operating system may suspend the workgroup for which another
            // workgroup waits
            let patient = changed("LOOKS = 32768u", "LOOKS = 0x10000000u");
            let one_silent = changed("if (t == 0u) { atomicStore", "if (t == 0u && own != 100u) { atomicStore");
            let old = changed("let note = notes[before];", "let note = early * 0u;");
            for (what, text, expected) in [
                ("as it is", TEXT, None),
                ("patient", &patient, ["NVIDIA", "SwiftShader driver"].contains(&driver.as_str()).then_some(true)),
                ("nobody signals", &silent(), Some(false)),
                ("one does not signal", &one_silent, Some(false)),
                ("an old number", &old, Some(false)),
            ] {
                let start = Instant::now();
                // a slow CPU may need longer than `PATIENCE` for the probe
                let answer = ask(&queue, text, 30 * PATIENCE).unwrap();
                println!("{driver}, {what}: {answer:?} after {:?}", start.elapsed());
                assert!(answer.is_some() && (expected.is_none() || answer == expected), "{driver}, {what}: {answer:?}");
            }
            assert_eq!(ask(&queue, TEXT, Duration::ZERO).unwrap(), None, "{driver}: no time for an answer");
            assert!(queue.lost().is_none(), "a device that took too long is not lost");
            assert!(ask(&queue, "no program", PATIENCE).is_err());
        }
    }

    #[test]
    fn the_answer_is_kept_and_a_damaged_one_is_asked_for_again() {
        let folder = std::env::temp_dir().join(format!("lapidary-probe-{}", std::process::id()));
        for (driver, queue) in queues() {
            let (text, disk) = (silent(), ProgramCache::new(Some(folder.clone())));
            let opened = || {
                let disk = ProgramCache::new(Some(folder.clone()));
                let answer = ask_once(&queue, &disk, &text);
                let counts = disk.counts();
                (answer, [counts.hits, counts.misses, counts.rejected])
            };
            assert_eq!([opened(), opened()], [(false, [0, 1, 0]), (false, [1, 0, 0])], "{driver}");
            // the stored answer is returned, so the probe has not run
            let key = key(&queue, &text);
            disk.store(&key, &[1]);
            assert_eq!(opened(), (true, [1, 0, 0]), "{driver}");
            // each stored value is a valid entry of the cache, but neither yes nor no
            for kept in [&[2][..], &[], &[1, 1]] {
                disk.store(&key, kept);
                assert_eq!([opened(), opened()], [(false, [0, 0, 1]), (false, [1, 0, 0])], "{driver}: {kept:?}");
            }
            // changes one byte, so that the entry of the cache is damaged
            let path = &disk.entries()[0].path;
            let mut bytes = fs::read(path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(path, bytes).unwrap();
            assert_eq!([opened(), opened()], [(false, [0, 0, 1]), (false, [1, 0, 0])], "{driver}: damaged");
            disk.clear().unwrap();
        }
        let _ = fs::remove_dir(&folder);
    }

    #[test]
    fn devices_are_asked_when_they_are_opened_and_processors_are_not() {
        let folder = std::env::temp_dir().join(format!("lapidary-opened-{}", std::process::id()));
        for (index, found) in crate::list().devices.iter().enumerate() {
            let disk = Arc::new(ProgramCache::new(Some(folder.clone())));
            WgpuDevice::open(index, None, Arc::clone(&disk)).unwrap();
            let asked = disk.entries().iter().any(|entry| entry.key.as_ref().is_some_and(|key| key.ends_with(TEXT)));
            assert_eq!(asked, !found.is_cpu && found.adapter.features().contains(COHERENT), "{}", found.info.name);
            disk.clear().unwrap();
        }
        let _ = fs::remove_dir(&folder);
    }

    #[test]
    fn a_device_that_was_made_without_coherent_memory_is_not_asked() {
        let Some(queue) = crate::program::tests::queue() else { return };
        assert!(!groups_may_wait(&queue, &ProgramCache::new(None)));
    }
}
