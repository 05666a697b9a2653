//! The times of the last frames, as numbers and as a plot.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use eframe::egui::{Color32, Mesh, Rect, Sense, Ui, Vec2, pos2, vec2};

/// Number of frames that are kept: ten seconds at 60 frames per second.
const KEPT: usize = 600;
/// Frame time at the top of the plot.
const TOP: Duration = Duration::from_millis(50);
/// Frame times at 60 and at 30 frames per second, where the plot has lines.
const LINES: [Duration; 2] = [Duration::from_micros(16_667), Duration::from_micros(33_333)];

/// Colour of bars up to the line of 30 frames per second.
const IN_TIME: Color32 = Color32::from_rgb(88, 150, 204);
/// Colour of bars above this line.
const LATE: Color32 = Color32::from_rgb(214, 94, 60);

/// The times between the beginnings of the last frames.
#[derive(Debug, Default)]
pub struct Frames {
    last: Option<Instant>,
    times: VecDeque<Duration>,
}

impl Frames {
    /// Records that a frame begins.
    pub fn begin(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            self.times.push_back(now - last);
        }
        if self.times.len() > KEPT {
            self.times.pop_front();
        }
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        *self = Frames::default();
    }

    /// Number of frame times that are kept.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Returns the frame time that `percent` of the frames do not exceed (the nearest rank), or zero without frames.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted: Vec<Duration> = self.times.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Draws a bar for each frame time, the newest on the right, over the lines of 60 and 30 frames per second.
    pub fn plot(&self, ui: &mut Ui, size: Vec2) {
        let (response, painter) = ui.allocate_painter(size, Sense::hover());
        let area = response.rect;
        let height = |time: Duration| area.height() * (time.as_secs_f32() / TOP.as_secs_f32()).min(1.0);
        let width = area.width() / KEPT as f32;
        let mut bars = Mesh::default();
        painter.rect_filled(area, 2.0, ui.visuals().extreme_bg_color);
        for (at, time) in self.times.iter().rev().enumerate() {
            let right = area.right() - at as f32 * width;
            let bar = Rect::from_min_max(pos2(right - width, area.bottom() - height(*time)), pos2(right, area.bottom()));
            bars.add_colored_rect(bar, if *time > LINES[1] { LATE } else { IN_TIME });
        }
        painter.add(bars);
        for line in LINES {
            let left = area.left_bottom() - vec2(0.0, height(line));
            painter.line_segment([left, left + vec2(area.width(), 0.0)], ui.visuals().widgets.noninteractive.bg_stroke);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks_of_the_last_frames() {
        let (mut frames, start) = (Frames::default(), Instant::now());
        assert_eq!(frames.percentile(99), Duration::ZERO);
        // frame k takes k ms, for k from 1 to 700; the times of frames 101 to 700 are kept
        let mut now = start;
        frames.begin(now);
        for k in 1..=700 {
            now += Duration::from_millis(k);
            frames.begin(now);
        }
        assert_eq!(frames.count(), KEPT);
        assert_eq!([1, 50, 99, 100].map(|percent| frames.percentile(percent).as_millis()), [106, 400, 694, 700]);
        frames.clear();
        assert_eq!((frames.count(), frames.percentile(50)), (0, Duration::ZERO));
    }
}
