//! Which kernels an instruction becomes.

use std::sync::Arc;

use lapidary_core::{DType, Instruction, Result};

use super::enqueue;
use crate::call::{Call, Choices, Target, View};
use crate::params::Limits;
use crate::program::{STRIPS, STRIPS_THAT_WAIT};
use crate::scratch::Purpose;

/// Keeps the names of kernels with their work-items in place of running them.
struct Recorder {
    choices: Choices,
    launched: Vec<(&'static str, usize)>,
}

impl Target for Recorder {
    type Buffer = ();

    fn choices(&self) -> &Choices {
        &self.choices
    }

    unsafe fn launch(&mut self, call: &Call<'_, '_, ()>) -> Result<()> {
        self.launched.push((call.kernel, call.global[0]));
        Ok(())
    }

    fn scratch(&mut self, _: Purpose, _: usize) -> Result<Arc<()>> {
        Ok(Arc::new(()))
    }
}

/// The kernels of an LU.
fn lu(choices: Choices, rows: usize, cols: usize) -> Vec<(&'static str, usize)> {
    let view = |rows, cols| View { buffer: &(), at: 0, ld: rows, rows, cols };
    let [a, ipiv, info] = [view(rows, cols), view(cols, 1), view(1, 1)];
    let instruction = Instruction::Getrf { pivoting: true, first_row: 0, a, ipiv, info };
    let mut recorder = Recorder { choices, launched: Vec::new() };
    // SAFETY: nothing runs.
    unsafe { enqueue(&mut recorder, DType::F32, &instruction).unwrap() };
    recorder.launched
}

#[test]
fn strips_wait_where_groups_may_and_are_launched_one_by_one_elsewhere() {
    let limits = Limits { work_group: 1024, local_memory: 48 << 10, groups: 65_535, buffer: 1 << 30 };
    let launched = Choices::vectors(&limits).unwrap();
    let waiting = Choices { waits: true, ..launched };
    let [narrow, wide] = [waiting, launched].map(|choices| choices.strips(DType::F32, 1000).unwrap());
    let (items, height) = (wide.items, wide.height());
    let all = [("enter_strips", height), ("getrf_strips", 3 * items), ("leave_strips", height)];
    assert_eq!(lu(waiting, 1000, 3 * narrow.width), all);
    // the first step has nothing to eliminate, the others bring those to the right up to date
    let steps = [items, 2 * items, items].map(|items| ("getrf_strip", items));
    assert_eq!(lu(launched, 1000, 3 * wide.width), [&all[..1], &steps, &all[2..]].concat());
}

#[test]
fn a_panel_has_as_many_strips_as_a_launch_takes() {
    let limits = Limits { work_group: 1024, local_memory: 48 << 10, groups: 65_535, buffer: 1 << 30 };
    for (waits, most) in [(false, STRIPS), (true, STRIPS_THAT_WAIT)] {
        let choices = Choices { waits, ..Choices::vectors(&limits).unwrap() };
        let params = choices.strips(DType::F32, 2000).unwrap();
        let entered = |cols| lu(choices, 2000, cols).iter().filter(|(kernel, _)| *kernel == "enter_strips").count();
        assert_eq!([entered(most * params.width), entered(most * params.width + 1)], [1, 2], "waits: {waits}");
    }
}
