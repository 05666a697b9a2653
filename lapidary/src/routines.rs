//! The routines of a machine.

use lapidary_core::algorithms::{Problem, gemm, getrf, getrs, laswp, trsm};
use lapidary_core::{
    Accuracy, Error, Gemm, Getrf, Getrs, Info, Laswp, Layout, MatMut, Outputs, Result, Routine, Scalar, Trsm, flops,
};

use crate::copy::DeviceCopy;
use crate::lu::{Factors, Lu, check_system};
use crate::machine::{Machine, column, read_column};
use crate::singular::singular;

impl Machine {
    /// Computes the product `C ← α·op(A)·op(B) + β·C`.
    ///
    /// ```
    /// use lapidary::{Gemm, Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (a, b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 1.0]); // column-major
    /// let mut c = [10.0, 10.0];
    /// let product = Gemm::new(MatRef::col_major(&a, 2, 2)?, MatRef::col_major(&b, 2, 1)?, MatMut::col_major(&mut c, 2, 1)?);
    /// machine.gemm(product.alpha(2.0).trans_a().beta(0.5))?; // C ← 2·Aᵀ·B + C/2
    /// assert_eq!(c, [11.0, 19.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes do not agree, or a device failed.
    pub fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let (problem, memory) = gemm::normalise(&args.check().map_err(Error::untouched)?);
        if problem.is_empty() {
            return Ok(());
        }
        let (m, n, k) = (problem.m, problem.n, problem.k);
        if let Some(runtime) = self.device_for_small_call(T::DTYPE, flops::gemm(m, n, k), &memory) {
            // SAFETY: the checked `args` borrow the operands' host memory during the launch, mutably where the kernel writes.
            return unsafe { runtime.launch(&problem.instruction(memory)) };
        }
        self.run(&Problem::Gemm(problem), &memory)
    }

    /// Solves a triangular system: `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹` for a triangular A.
    ///
    /// ```
    /// use lapidary::{Diag, Machine, MatMut, MatRef, Select, Trsm, Uplo};
    /// let machine = Machine::open(&Select::all())?;
    /// let a = [2.0, 7.0, 1.0, 4.0]; // column-major; the upper triangle is read: 2·x + y = 8, 4·y = 8
    /// let mut b = [8.0, 8.0];
    /// machine.trsm(Trsm::new(MatRef::col_major(&a, 2, 2)?, MatMut::col_major(&mut b, 2, 1)?).uplo(Uplo::Upper))?;
    /// assert_eq!(b, [3.0, 2.0]);
    /// // the lower triangle, with ones on the diagonal: x = 3, 7·x + y = 2
    /// machine.trsm(Trsm::new(MatRef::col_major(&a, 2, 2)?, MatMut::col_major(&mut b, 2, 1)?).diag(Diag::Unit))?;
    /// assert_eq!(b, [3.0, -19.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The shapes do not agree, or a device failed.
    pub fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let (problem, memory) = trsm::normalise(&args.check().map_err(Error::untouched)?);
        if problem.is_empty() {
            return Ok(());
        }
        let (order, nrhs) = (problem.order(), problem.nrhs());
        let small_call = self.device_for_small_call(T::DTYPE, flops::trsm(order, nrhs), &memory);
        if let Some(runtime) = small_call {
            // SAFETY: the checked `args` borrow the operands' host memory during the launch, mutably where the kernel writes.
            return unsafe { runtime.launch(&problem.instruction(memory)) };
        }
        self.run(&Problem::Trsm(problem), &memory)
    }

    /// Factors `A = P·L·U` in place. The returned [`Info`] holds the index of the first pivot that is exactly zero, if any. A
    /// zero pivot is not an error; the factorisation is completed. [`Machine::getrs`] solves with the factors.
    ///
    /// ```
    /// use lapidary::{Getrf, Getrs, Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (mut a, mut ipiv, mut x) = ([0.0, 2.0, 4.0, 1.0], [0; 2], [4.0, 3.0]);
    /// let info = machine.getrf_into(Getrf::new(MatMut::col_major(&mut a, 2, 2)?, &mut ipiv))?;
    /// info.check()?; // no pivot is zero
    /// assert_eq!((a, ipiv), ([2.0, 0.0, 1.0, 4.0], [1, 1])); // rows 0 and 1 were exchanged
    /// machine.getrs(Getrs::new(MatRef::col_major(&a, 2, 2)?, &ipiv, MatMut::col_major(&mut x, 2, 1)?))?;
    /// assert_eq!(x, [1.0, 1.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The arguments do not agree, or a device failed.
    pub fn getrf_into<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<Info> {
        self.factor(args, 0).map(|(info, _)| info)
    }

    /// Factors as [`Machine::getrf_into`] does, and also returns the copy of the factors that a device keeps. The copy is `None`
    /// unless devices held the whole matrix during the call. The first `factored` columns of A hold factors already, and the first elements of
    /// `ipiv` their pivots. If there are such columns, A lies on a device.
    pub(crate) fn factor<T: Scalar>(&self, args: Getrf<'_, T>, factored: usize) -> Result<(Info, Option<DeviceCopy>)> {
        let args = args.check().map_err(Error::untouched)?;
        let problem = getrf::Problem { factored, ..getrf::Problem::new(&args) };
        if problem.order() == 0 {
            return Ok((Info::default(), None));
        }
        let mut info = 0_i32;
        let args = args.into_inner();
        let memory = [args.a.raw(), column(args.ipiv)?, column(std::slice::from_mut(&mut info))?];
        let flops = flops::getrf(problem.m, problem.n);
        let copy = match self.device_for_small_call(T::DTYPE, flops, &memory).filter(|_| problem.layout == Layout::ColMajor) {
            // SAFETY: the checked `args` borrow the operands' host memory during the launch, mutably where the kernel writes.
            Some(runtime) => unsafe { runtime.launch(&problem.instruction(memory)).map(|()| None)? },
            None => self.run_and_keep(&Problem::Getrf { problem, nb: self.settings().nb }, &memory)?,
        };
        // no solve uses factors with a pivot of zero
        Ok((Info::new(usize::try_from(info).expect("info counts rows")), copy.filter(|_| info == 0)))
    }

    /// Factors `A = P·L·U` in place and returns an [`Lu`] that solves systems with these factors. [`Machine::getrf_owned`] factors a
    /// matrix that the result owns.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, Op, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (mut a, mut x, mut y) = ([4.0, 0.0, 2.0, 1.0], [6.0, 1.0], [4.0, 3.0]);
    /// let lu = machine.getrf(MatMut::col_major(&mut a, 2, 2)?)?;
    /// lu.solve(MatMut::col_major(&mut x, 2, 1)?)?; // A·x = (6, 1)
    /// lu.solve_with(Op::Trans, MatMut::col_major(&mut y, 2, 1)?)?; // Aᵀ·y = (4, 3)
    /// assert_eq!((x, y), ([1.0, 1.0], [1.0, 1.0]));
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// A has more rows than `i32` can count, or a device failed.
    pub fn getrf<'a, T: Scalar>(&self, a: MatMut<'a, T>) -> Result<Lu<'a, T>> {
        self.getrf_with(Accuracy::default(), a)
    }

    /// Factors as [`Machine::getrf`] does, with products of the given accuracy.
    pub(crate) fn getrf_with<'a, T: Scalar>(&self, accuracy: Accuracy, mut a: MatMut<'a, T>) -> Result<Lu<'a, T>> {
        let mut ipiv = vec![0; a.rows().min(a.cols())];
        let (info, copy) = self.factor(Getrf::new(a.reborrow(), &mut ipiv).accuracy(accuracy), 0)?;
        Ok(Lu { machine: self.clone(), factors: Factors::Borrowed(a), copy, ipiv, info: info.get() })
    }

    /// Solves a system from the factors of A: `B ← op(A)⁻¹·B`. The factors may come from [`Machine::getrf_into`] (see the example
    /// there) or from another library; row indices in `ipiv` are 0-based.
    ///
    /// ```
    /// use lapidary::{Getrs, Machine, MatMut, MatRef, Op, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let factors = [4.0, 0.5, 2.0, 3.0]; // L = [1 0; 0.5 1], U = [4 2; 0 3]: A = [4 2; 2 4]
    /// let mut x = [6.0, 6.0];
    /// let solve = Getrs::new(MatRef::col_major(&factors, 2, 2)?, &[0, 1], MatMut::col_major(&mut x, 2, 1)?);
    /// machine.getrs(solve.op(Op::Trans))?;
    /// assert_eq!(x, [1.0, 1.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot is exactly zero; B is not changed. Another error is
    /// returned if the arguments do not agree or a device failed.
    pub fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        self.require_pivots(Routine::Getrs.name(), args.lu)?;
        self.solve_with_pivots(args.into_inner(), None)
    }

    /// Solves as [`Machine::getrs`] does, for factors without zero pivots. `copy` is a device's copy of the factors, if any.
    pub(crate) fn solve_with_pivots<T: Scalar>(&self, args: Getrs<'_, T>, copy: Option<&DeviceCopy>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        let (problem, [lu, b]) = getrs::normalise(&args);
        if problem.is_empty() {
            return Ok(());
        }
        let (n, nrhs) = problem.size();
        let memory = [lu, read_column(args.ipiv)?, b];
        if let Some(runtime) = self.device_for_small_call(T::DTYPE, flops::getrs(n, nrhs), &memory) {
            // SAFETY: the checked `args` borrow the operands' host memory during the launch, mutably where the kernel writes.
            return problem.instructions(memory).iter().try_for_each(|step| unsafe { runtime.launch(step) });
        }
        let mut args = args.into_inner();
        let problem = Problem::Getrs(problem);
        match copy.and_then(|copy| copy.solve(&problem, &mut args)) {
            Some(solved) => solved,
            None => self.run(&problem, &memory),
        }
    }

    /// Exchanges row `i` of A with row `ipiv[i]`, for all `i` in ascending or descending order.
    ///
    /// ```
    /// use lapidary::{Laswp, Machine, MatMut, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (mut a, ipiv) = ([1.0, 2.0, 3.0], [2, 2, 2]);
    /// machine.laswp(Laswp::new(MatMut::col_major(&mut a, 3, 1)?, &ipiv))?;
    /// assert_eq!(a, [3.0, 1.0, 2.0]);
    /// machine.laswp(Laswp::new(MatMut::col_major(&mut a, 3, 1)?, &ipiv).backward())?; // undoes the exchanges
    /// assert_eq!(a, [1.0, 2.0, 3.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The arguments do not agree, or a device failed.
    pub fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        let args = args.check().map_err(Error::untouched)?;
        let (problem, a) = laswp::normalise(&args);
        if problem.is_empty() {
            return Ok(());
        }
        let memory = [a, read_column(args.ipiv)?];
        self.run(&Problem::Laswp(problem), &memory)
    }

    /// Solves A·X = B: `B ← A⁻¹·B`. The factors of A replace A.
    ///
    /// ```
    /// use lapidary::{ErrorKind, Machine, MatMut, Outputs, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (mut a, mut x) = ([4.0, 0.0, 2.0, 1.0], [6.0, 1.0]);
    /// let lu = machine.gesv(MatMut::col_major(&mut a, 2, 2)?, MatMut::col_major(&mut x, 2, 1)?)?;
    /// assert_eq!((x, lu.info()), ([1.0, 1.0], 0));
    ///
    /// let (mut singular, mut b) = ([1.0, 2.0, 2.0, 4.0], [1.0, 1.0]);
    /// let error = machine.gesv(MatMut::col_major(&mut singular, 2, 2)?, MatMut::col_major(&mut b, 2, 1)?).unwrap_err();
    /// assert_eq!((error.kind(), error.outputs()), (ErrorKind::Singular { pivot: 2 }, Some(Outputs::FactorsInA)));
    /// assert_eq!(b, [1.0, 1.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular) if a pivot is exactly zero; A then holds its factors, and B is not
    /// changed. Another error is returned if A is not square, A and B differ in the number of rows, or a device failed.
    pub fn gesv<'a, T: Scalar>(&self, a: MatMut<'a, T>, b: MatMut<'_, T>) -> Result<Lu<'a, T>> {
        check_system(Routine::Gesv.name(), &a.as_ref(), b.rows()).map_err(Error::untouched)?;
        let lu = self.getrf(a)?;
        if lu.info() != 0 {
            return Err(singular(Routine::Gesv.name(), lu.info(), Outputs::FactorsInA));
        }
        lu.solve(b).map_err(|error| match error.outputs() {
            Some(Outputs::Unchanged) => error.with_outputs(Outputs::FactorsInA),
            _ => error.with_outputs(Outputs::FactorsInAPartlyWrittenB),
        })?;
        Ok(lu)
    }
}
