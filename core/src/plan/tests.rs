//! Tests of plans: a plan prints as algebra, and registers of similar sizes take the same amount of memory.

use super::{Plan, RegisterInfo, Task};
use crate::command::{Command, Effects, Queue};
use crate::enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
use crate::instruction::{Instruction, Reg, Region, Swaps};
use crate::scalar::DType;
use crate::value::Value;

/// A plan with one task that contains every unbatched instruction in all forms that print differently. The shapes of the operands
/// do not agree, because the tests print this plan and never run it.
fn plan() -> Plan {
    let mut plan = Plan::new("test", DType::F64);
    let a = plan.input("A", (4, 4), Layout::ColMajor);
    let b = plan.output("B", (4, 9), Layout::RowMajor);
    let [ipiv, info] = [("ipiv", 4), ("info", 1)].map(|(name, rows)| plan.indices(name, rows, true));
    plan.task("B", Region { row: 0, col: 3, rows: 4, cols: 5 });
    let (a, b) = (plan.ld(a, &(0..4), &(0..4)), plan.ld(b, &(0..4), &(3..8)));
    let (ipiv, info) = (plan.window(ipiv, &(0..4), &(0..1)), plan.window(info, &(0..1), &(0..1)));
    let pad = plan.scratch(4, 4);
    let ops = [(Op::NoTrans, Op::Trans), (Op::ConjTrans, Op::Conj)];
    for ((op_a, op_b), (alpha, beta)) in ops.into_iter().zip([(-1.0, 1.0), (2.0, 0.0)]) {
        let (alpha, beta) = (Value::F64(alpha), Value::F64(beta));
        plan.exec(Instruction::Gemm { alpha, op_a, a: a.sub(1, 2, 2, 2), op_b, b: pad, beta, c: b });
    }
    plan.exec(Instruction::Gemm {
        alpha: Value::F64(1.0),
        op_a: Op::NoTrans,
        a,
        op_b: Op::NoTrans,
        b: a,
        beta: Value::F64(-1.0),
        c: pad,
    });
    let (op, b_right) = (Op::Trans, b.sub(0, 1, 4, 4));
    let (left, right) = (Side::Left, Side::Right);
    plan.exec(Instruction::Trsm {
        mode: TrsmMode::Substitution,
        side: left,
        uplo: Uplo::Lower,
        op,
        diag: Diag::Unit,
        alpha: Value::F64(1.0),
        a,
        b,
    });
    plan.exec(Instruction::Trsm {
        mode: TrsmMode::Inverted,
        side: right,
        uplo: Uplo::Upper,
        op,
        diag: Diag::NonUnit,
        alpha: Value::F64(2.0),
        a,
        b: b_right,
    });
    plan.exec(Instruction::Getrf { pivoting: true, first_row: 0, a: b, ipiv, info });
    plan.exec(Instruction::Getrf { pivoting: false, first_row: 0, a: b, ipiv, info });
    for (side, forward) in [(left, true), (left, false), (right, true), (right, false)] {
        plan.exec(Instruction::Laswp { swaps: Swaps { side, forward, first_row: 0 }, a: b, ipiv });
    }
    plan.exec(Instruction::Copy { a, b: pad });
    plan.exec(Instruction::Scale { beta: Value::F64(0.0), c: b });
    plan.exec(Instruction::Scale { beta: Value::F64(-1.0), c: b });
    plan.mark(Queue::Ld);
    plan.bar(Queue::St);
    plan.st(b);
    plan
}

/// A plan with all batched instructions. Each operand of the plan contains two matrices.
fn batches() -> Plan {
    let mut plan = Plan::new("batches", DType::F64);
    let (a, ipiv) = (plan.output("A", (2, 4), Layout::ColMajor), plan.indices("ipiv", 4, true));
    plan.task("A", Region::whole(2, 4));
    let (a, ipiv) = (plan.ld(a, &(0..2), &(0..4)), plan.window(ipiv, &(0..4), &(0..1)));
    let info = ipiv.sub(0, 0, 2, 1);
    let (alpha, beta, count) = (Value::F64(-1.0), Value::F64(0.0), 2);
    plan.exec(Instruction::GemmBatched { count, alpha, op_a: Op::Trans, a, op_b: Op::NoTrans, b: a, beta, c: a });
    for pivoting in [true, false] {
        plan.exec(Instruction::GetrfBatched { count, pivoting, a, ipiv, info });
    }
    plan.exec(Instruction::GetrsBatched { count, op: Op::Trans, lu: a, ipiv, b: a });
    plan.exec(Instruction::ZeroPivots { count, lu: a, info });
    plan
}

#[test]
fn batches_print_as_the_algebra_of_each_matrix() {
    let plan = batches();
    let printed: Vec<String> = (1..6).map(|command| plan.describe(command)).collect();
    let expected = [
        "EXEC gemm_batched r0 r0 r0  2 × (A[0:2, 0:4] ← −A[0:2, 0:4]ᵀ·A[0:2, 0:4])",
        "EXEC getrf_batched r0 r1 r1  2 × (P·L·U = A[0:2, 0:4], P → ipiv[0:4, 0:1])",
        "EXEC getrf_batched r0 r1 r1  2 × (L·U = A[0:2, 0:4])",
        "EXEC getrs_batched r0 r1 r0  2 × (A[0:2, 0:4] ← (P(ipiv[0:4, 0:1])·L₁(A[0:2, 0:4])·U(A[0:2, 0:4]))ᵀ⁻¹·A[0:2, 0:4])",
        "EXEC zero_pivots r0 r1    2 × (ipiv[0:2, 0:1] ← first zero of diag(A[0:2, 0:4]))",
    ];
    assert_eq!(printed, expected);
}

#[test]
fn a_plan_prints_as_algebra() {
    let printed = plan().to_string();
    assert_eq!(printed, include_str!("algebra.txt"), "\n{printed}");
    let bytes = 19 * size_of::<Command>() + 5 * size_of::<RegisterInfo>() + size_of::<Task>();
    assert_eq!(plan().bytes(), bytes);
}

#[test]
fn memory_is_that_of_the_largest_register_or_a_half_or_a_quarter_of_it() {
    let mut plan = Plan::new("test", DType::F64);
    plan.task("V", Region::whole(1, 1));
    let sizes = [(10, 10), (10, 8), (51, 1), (50, 1), (1, 25), (0, 3)];
    sizes.iter().for_each(|&(rows, cols)| _ = plan.scratch(rows, cols));
    let footprints: Vec<_> = (0..6).map(|reg| plan.registers().footprint(Reg(reg))).collect();
    assert_eq!(footprints, [800, 800, 800, 400, 200, 0]);
    assert!(plan.registers().len() == 6 && !plan.registers().is_empty());
    assert!(Plan::new("test", DType::F64).registers().is_empty());
}

/// The task of the tested plan has two registers whose windows share a column of A. The second register is loaded either before
/// or after an instruction writes the first register.
#[test]
fn a_command_that_reads_old_elements_is_found() {
    let found = |loaded_before: bool, stored: bool, column: usize| {
        let mut plan = Plan::new("test", DType::F64);
        let a = plan.output("A", (4, 4), Layout::ColMajor);
        plan.task("A", Region::whole(4, 4));
        let first = plan.ld(a, &(0..4), &(0..2));
        let before = loaded_before.then(|| plan.ld(a, &(0..4), &(1..3)));
        plan.exec(Instruction::Scale { beta: Value::F64(2.0), c: first });
        if stored {
            plan.st(first);
        }
        let second = before.unwrap_or_else(|| plan.ld(a, &(0..4), &(1..3)));
        let to = plan.scratch(4, 1);
        plan.exec(Instruction::Copy { a: second.sub(0, column, 4, 1), b: to });
        plan.stale_read().map(|id| (id, plan.commands()[id as usize].queue()))
    };
    assert_eq!(found(true, false, 0), Some((3, Queue::Exec)));
    assert_eq!(found(true, true, 0), Some((4, Queue::Exec)));
    assert_eq!(found(false, false, 0), Some((2, Queue::Ld)));
    assert_eq!(found(false, true, 0), None);
    // no command has written the column of A that the `Copy` reads
    assert_eq!(found(true, true, 1), None);
}
