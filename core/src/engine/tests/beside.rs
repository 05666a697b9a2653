//! Tests the conditions that the engine passes to a device with an instruction: the error bound of products, and the panel of LU that another
//! kernel queue of the device factors meanwhile.

use std::sync::Mutex;

use super::*;
use crate::command::{Conditions, PanelShape};
use crate::device::{BufferRect, Work};
use crate::enums::Accuracy;
use crate::token::Token;

const PANEL: PanelShape = PanelShape { rows: 9, cols: 4 };

/// A device that works in place. For each instruction, it records the conditions that the engine names in `Work::Run`.
#[derive(Debug)]
struct Listener(DeviceFacts, Arc<Mutex<Vec<Conditions>>>);

impl Device for Listener {
    fn facts(&self) -> &DeviceFacts {
        &self.0
    }
    fn alloc(&self, _: usize) -> Result<DeviceBuffer> {
        unreachable!("the device works in place")
    }
    unsafe fn write(&self, _: HostRect, _: BufferRect<'_>) -> Result<()> {
        unreachable!("the device works in place")
    }
    unsafe fn read(&self, _: BufferRect<'_>, _: HostRect) -> Result<()> {
        unreachable!("the device works in place")
    }
    unsafe fn launch(&self, _: &Instruction<Operand<'_>>) -> Result<()> {
        unreachable!("the engine submits all work")
    }
    unsafe fn submit(&self, work: Work<'_>, _: &[&Token]) -> Result<Token> {
        let Work::Run { conditions, .. } = work else { unreachable!("the device works in place") };
        lock(&self.1).push(conditions);
        Ok(Token::DONE)
    }
}

/// Runs a plan of two tasks, the second of which runs beside a panel. Returns the panels of which the device learns.
fn learned(queues: usize, accuracy: Accuracy) -> Vec<Option<PanelShape>> {
    let mut plan = Plan::new("scale", DType::F64).with_accuracy(accuracy);
    let c = plan.output("A", (4, 8), Layout::ColMajor);
    for (cols, rows) in [(0..4, None), (4..8, Some(PANEL))] {
        plan.task("A", Region { row: 0, col: cols.start, rows: 4, cols: 4 });
        let tile = plan.ld(c, &(0..4), &cols);
        plan.exec_beside_panel(Instruction::Scale { beta: Value::F64(2.0), c: tile }, rows);
        plan.st(tile);
    }
    let heard = Arc::new(Mutex::new(Vec::new()));
    let facts = DeviceFacts { host_memory: true, queues, ..DeviceFacts::new("listener:0") };
    let runtime = runtime(Listener(facts, Arc::clone(&heard)));
    let mut data = vec![0.0_f64; 32];
    let bindings = [MatMut::col_major(&mut data, 4, 8).unwrap().raw()];
    let schedule = Schedule::new(plan, vec![reach(0, runtime.facts(), &bindings)]).unwrap();
    // SAFETY: the device accesses no memory.
    unsafe { run(&LanePool::default(), &[&runtime], &schedule, &bindings, Watch::default()).unwrap() };
    let heard = lock(&heard);
    assert!(heard.iter().all(|conditions| conditions.accuracy == accuracy));
    let mut panels: Vec<_> = heard.iter().map(|conditions| conditions.beside_panel).collect();
    panels.sort_unstable();
    panels
}

#[test]
fn only_a_device_with_two_queues_learns_of_a_panel() {
    for accuracy in [Accuracy::Componentwise, Accuracy::Normwise] {
        assert_eq!(learned(2, accuracy), [None, Some(PANEL)]);
        assert_eq!(learned(1, accuracy), [None, None]);
    }
}
