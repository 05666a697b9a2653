//! The window: what it shows, and the solutions it waits for.

use std::collections::VecDeque;
use std::error::Error;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use eframe::egui::{self, CentralPanel, ComboBox, Spinner, Ui, ViewportCommand, vec2};
use lapidary::{Result, Select};

use crate::frames::Frames;
use crate::picture;
use crate::solver::{LIMIT, Solution, Solver};

/// Orders that the window offers.
const ORDERS: [usize; 6] = [256, 1024, 2048, 4096, 8192, 16384];
/// Number of solutions that are enqueued at the same time. With two, the device has work while the window receives a solution.
const IN_FLIGHT: usize = 2;
/// Number of frames that a picture of the window shows at least.
const PICTURE_FRAMES: usize = 60;

type Pending = Pin<Box<dyn Future<Output = Result<Solution>> + Send>>;

/// The solutions that the window has received since it last began to solve.
struct Series {
    start: Instant,
    /// Number of solutions after the first one.
    count: usize,
    last: Solution,
}

/// The state of the window.
pub struct App {
    select: Select,
    order: usize,
    /// The thread that opens a solver.
    opening: Option<JoinHandle<Result<Solver>>>,
    solver: Option<Solver>,
    is_solving: bool,
    pending: VecDeque<Pending>,
    series: Option<Series>,
    /// Number of solutions since the device was opened.
    solved: usize,
    error: Option<String>,
    frames: Frames,
    picture: Option<PathBuf>,
    /// Receives the result of writing the picture.
    drawn: Option<Receiver<std::io::Result<()>>>,
}

impl App {
    /// Makes a thread open a device of the selection. When the device is open, the window begins to solve systems of order `order`.
    pub fn new(select: Select, order: usize) -> Self {
        let mut app = App {
            select,
            order,
            opening: None,
            solver: None,
            is_solving: true,
            pending: VecDeque::new(),
            series: None,
            solved: 0,
            error: None,
            frames: Frames::default(),
            picture: None,
            drawn: None,
        };
        app.open();
        app
    }

    /// Makes the window write a picture of itself as PNG after the first solutions, and close.
    pub fn with_picture(mut self, file: PathBuf) -> Self {
        self.picture = Some(file);
        self
    }

    /// Begins or stops to solve, and forgets the times of the frames.
    pub fn solve(&mut self, is_solving: bool) {
        self.is_solving = is_solving;
        self.series = None;
        self.frames.clear();
    }

    /// Order of the system that the device holds, if it is open.
    pub fn order(&self) -> Option<usize> {
        self.solver.as_ref().map(Solver::order)
    }

    /// The last solution, if there is one.
    pub fn last(&self) -> Option<Solution> {
        self.series.as_ref().map(|series| series.last)
    }

    /// Number of solutions since the device was opened.
    pub fn solved(&self) -> usize {
        self.solved
    }

    /// Whether a picture is wanted and not yet written.
    pub fn is_drawing(&self) -> bool {
        self.picture.is_some() || self.drawn.is_some()
    }

    /// Whether the device has not finished all that the window has enqueued.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Times of the last frames.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Message of the error that has stopped the window from solving.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Makes a thread open a solver of the current order. The thread also drops the old solver, because a driver may wait for the device
    /// before it frees device memory.
    fn open(&mut self) {
        let (old, select, order) = (self.solver.take(), self.select.clone(), self.order);
        self.pending.clear();
        (self.series, self.solved, self.error) = (None, 0, None);
        let before = self.opening.take();
        self.opening = Some(thread::spawn(move || {
            drop((before.map(JoinHandle::join), old));
            Solver::open(&select, order)
        }));
    }

    /// Takes the solver from the thread that has opened it, receives finished solutions, and enqueues further ones. The window polls the
    /// futures in each frame, so that the futures need no waker.
    fn advance(&mut self) -> Result<(), Box<dyn Error>> {
        if let Some(opening) = self.opening.take_if(|opening| opening.is_finished()) {
            self.solver = Some(opening.join().map_err(|_| "the thread that opens the device has panicked")??);
            self.frames.clear();
        }
        let mut context = Context::from_waker(Waker::noop());
        while let Some(Poll::Ready(solution)) = self.pending.front_mut().map(|first| first.as_mut().poll(&mut context)) {
            self.pending.pop_front();
            self.receive(solution?);
        }
        if let Some(solver) = self.solver.as_mut().filter(|_| self.is_solving) {
            while self.pending.len() < IN_FLIGHT {
                self.pending.push_back(Box::pin(solver.enqueue()?));
            }
        }
        Ok(())
    }

    fn receive(&mut self, solution: Solution) {
        self.solved += 1;
        match &mut self.series {
            Some(series) => (series.count, series.last) = (series.count + 1, solution),
            None => self.series = Some(Series { start: solution.at, count: 0, last: solution }),
        }
    }

    /// Requests the picture if the window shows enough frames, and closes the window when the picture is written.
    fn draw_picture(&mut self, ctx: &egui::Context) {
        let is_ready = self.error.is_some() || self.solved > 1 && self.frames.count() >= PICTURE_FRAMES;
        if let Some(file) = self.picture.take_if(|_| is_ready) {
            let (sender, receiver) = channel();
            ctx.request_screenshot(move |pixels| {
                let _ = sender.send(picture::write(&file, &pixels));
            });
            self.drawn = Some(receiver);
        }
        match self.drawn.as_ref().map(Receiver::try_recv) {
            None | Some(Err(TryRecvError::Empty)) => {}
            Some(drawn) => {
                let error = drawn.map_or(Some("the window system has given no picture".to_owned()), |drawn| {
                    drawn.err().map(|error| error.to_string())
                });
                self.error = self.error.take().or(error);
                self.drawn = None;
                ctx.send_viewport_cmd(ViewportCommand::Close);
            }
        }
    }

    fn controls(&mut self, ui: &mut Ui) {
        ui.horizontal(|ui| {
            let mut order = self.order;
            ComboBox::from_label("unknowns").selected_text(order.to_string()).show_ui(ui, |ui| {
                for choice in ORDERS {
                    ui.selectable_value(&mut order, choice, choice.to_string());
                }
            });
            if order != self.order {
                self.order = order;
                self.open();
            }
            let action = match (&self.error, self.is_solving) {
                (Some(_), _) => "Try again",
                (None, true) => "Stop",
                (None, false) => "Solve",
            };
            if ui.button(action).clicked() {
                match self.error {
                    Some(_) => self.open(),
                    None => self.solve(!self.is_solving),
                }
            }
            if self.opening.is_some() || !self.pending.is_empty() {
                ui.add(Spinner::new());
            }
        });
    }

    fn status(&self) -> String {
        let device = self.solver.as_ref().map_or("", Solver::device);
        match (&self.error, &self.series) {
            (Some(error), _) => format!("error: {error}"),
            (None, _) if self.opening.is_some() => "opening the device and making the matrix".to_owned(),
            (None, None) => device.to_owned(),
            (None, Some(Series { start, count, last })) => {
                let n = self.order as f64;
                // NaN if there is only one solution
                let seconds = (last.at - *start).as_secs_f64() / *count as f64;
                let rate = 2.0 / 3.0 * n * n * n / seconds / 1e9;
                let rate =
                    if seconds.is_nan() { String::new() } else { format!(", {:.1} ms each, {rate:.0} GFLOP/s", 1e3 * seconds) };
                let verdict = if last.residual < LIMIT { "below" } else { "NOT below" };
                format!("{device}: {} solved{rate}; scaled residual {:.2}, {verdict} {LIMIT}", self.solved, last.residual)
            }
        }
    }

    /// Shows a frame of the window, and asks for the next.
    pub fn show(&mut self, ui: &mut Ui) {
        self.frames.begin(Instant::now());
        if self.error.is_none()
            && let Err(error) = self.advance()
        {
            // the other futures of the failed stream would return the same error
            self.pending.clear();
            self.error = Some(error.to_string());
        }
        CentralPanel::default().show(ui, |ui| {
            ui.heading("Systems of equations, solved while the window is drawn");
            self.controls(ui);
            ui.label(self.status());
            let [half, most, all] = [50, 99, 100].map(|percent| milliseconds(self.frames.percentile(percent)));
            ui.label(format!(
                "time of a frame: {half} median, {most} at the 99th percentile, {all} longest; lines at 60 and 30 per second"
            ));
            self.frames.plot(ui, vec2(ui.available_width(), 160.0));
        });
        self.draw_picture(ui.ctx());
        ui.ctx().request_repaint();
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", 1e3 * time.as_secs_f64())
}

impl Drop for App {
    /// Waits for the thread that opens a device, so that the process does not end while the thread calls a driver.
    fn drop(&mut self) {
        if let Some(opening) = self.opening.take() {
            let _ = opening.join();
        }
    }
}
