//! Calls as values, to explain which devices take part in a call.

use lapidary_core::algorithms::{Problem, gemm, getrf, getrs, laswp, trsm};
use lapidary_core::{Gemm, Getrf, Getrs, Laswp, RawMat, Result, Scalar, Trsm};

use crate::machine::{Machine, column, read_column};
use crate::price::{Explanation, HostCall, Priced, Reason};
use crate::run::Planner;

/// The arguments of a routine, for which [`Machine::explain`] explains the choice of devices.
pub trait Call: sealed::Call {}

mod sealed {
    use super::{Problem, RawMat, Result};

    pub trait Call {
        /// Returns the problem in normal form, and the memory of its matrices.
        fn normal_form(self) -> Result<(Problem, Vec<RawMat>)>;
    }
}

impl<T: Scalar> Call for Gemm<'_, T> {}
impl<T: Scalar> sealed::Call for Gemm<'_, T> {
    fn normal_form(self) -> Result<(Problem, Vec<RawMat>)> {
        let (problem, memory) = gemm::normalise(&self.check()?);
        Ok((Problem::Gemm(problem), memory.into()))
    }
}

impl<T: Scalar> Call for Trsm<'_, T> {}
impl<T: Scalar> sealed::Call for Trsm<'_, T> {
    fn normal_form(self) -> Result<(Problem, Vec<RawMat>)> {
        let (problem, memory) = trsm::normalise(&self.check()?);
        Ok((Problem::Trsm(problem), memory.into()))
    }
}

impl<T: Scalar> Call for Getrf<'_, T> {}
impl<T: Scalar> sealed::Call for Getrf<'_, T> {
    fn normal_form(self) -> Result<(Problem, Vec<RawMat>)> {
        let args = self.check()?;
        let problem = getrf::Problem::new(&args);
        let args = args.into_inner();
        let memory = vec![args.a.raw(), column(args.ipiv)?, column(&mut [0])?];
        Ok((Problem::Getrf { problem, nb: None }, memory))
    }
}

impl<T: Scalar> Call for Getrs<'_, T> {}
impl<T: Scalar> sealed::Call for Getrs<'_, T> {
    fn normal_form(self) -> Result<(Problem, Vec<RawMat>)> {
        let args = self.check()?;
        let (problem, [lu, b]) = getrs::normalise(&args);
        Ok((Problem::Getrs(problem), vec![lu, read_column(args.ipiv)?, b]))
    }
}

impl<T: Scalar> Call for Laswp<'_, T> {}
impl<T: Scalar> sealed::Call for Laswp<'_, T> {
    fn normal_form(self) -> Result<(Problem, Vec<RawMat>)> {
        let args = self.check()?;
        let (problem, a) = laswp::normalise(&args);
        Ok((Problem::Laswp(problem), vec![a, read_column(args.ipiv)?]))
    }
}

impl Machine {
    /// Explains which devices would take part in a call now, without running the call. The method does not accept batched calls. If
    /// the machine chooses devices by price, `explain` first measures the speeds of devices that have not been measured yet.
    /// Measuring a device takes some seconds, but is done only once for each driver version.
    ///
    /// ```
    /// use lapidary::{Gemm, Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (a, mut c) = (vec![1.0; 500 * 500], vec![0.0; 500 * 500]);
    /// let a = MatRef::col_major(&a, 500, 500)?;
    /// println!("{}", machine.explain(Gemm::new(a, a, MatMut::col_major(&mut c, 500, 500)?))?);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The arguments do not agree, or no device supports their element type.
    pub fn explain(&self, call: impl Call) -> Result<Explanation> {
        let (problem, memory) = call.normal_form()?;
        let (problem, resident) = (self.with_panels(problem), self.resident_device(problem.operation(), &memory)?);
        let (dtype, operation) = (problem.dtype(), problem.operation());
        let capable = match resident {
            Some(device) => self.capable_devices(dtype, operation, &[device])?,
            None => self.devices_for_host(dtype, operation)?,
        };
        let host = HostCall { machine: self, problem: &problem, memory: &memory, capable: &capable };
        let reason = if resident.is_some() { Reason::Resident } else { self.reason(&host) };
        let explained = self.pricing().filter(|_| reason == Reason::Price).map(|pricing| pricing.explain(&host));
        let (priced, is_cached) = explained.unzip();
        let reason = if is_cached == Some(true) { Reason::Cached } else { reason };
        Ok(self.explanation(&host, reason, priced.as_ref()))
    }

    /// Returns the devices that would run a problem on matrices in host memory now.
    pub(crate) fn devices_of(&self, problem: &Problem, memory: &[RawMat]) -> Result<Vec<usize>> {
        let capable = self.devices_for_host(problem.dtype(), problem.operation())?;
        let host = HostCall { machine: self, problem, memory, capable: &capable };
        let reason = self.reason(&host);
        let priced = self.pricing().filter(|_| reason == Reason::Price).map(|pricing| pricing.explain(&host).0);
        let run = priced.as_ref().and_then(Priced::begin);
        Ok(run.map_or_else(|| host.devices_without_prices(reason), |run| run.devices))
    }

    /// From now on, all handles of the machine call `tell` with an explanation before each call on host matrices. A machine that
    /// has a function `tell` prices each call on host matrices, instead of reusing a cached choice of devices. A solve with factors
    /// that a device keeps is not priced, since the solve runs on that device. `tell` is called neither for small calls nor for
    /// lists that the CPU runs as one sequence of kernels. `tell` must not call the machine. If `explained` is called more than
    /// once, the machine keeps the first function `tell`.
    ///
    /// ```
    /// use lapidary::{Gemm, Machine, MatMut, MatRef, Select};
    /// let machine = Machine::open(&Select::all())?.explained(|explanation| eprintln!("{explanation}"));
    /// let (a, mut c) = (vec![1.0; 300 * 300], vec![0.0; 300 * 300]);
    /// let a = MatRef::col_major(&a, 300, 300)?;
    /// machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, 300, 300)?))?; // prints the devices of the product
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    #[must_use]
    pub fn explained(self, tell: impl Fn(&Explanation) + Send + Sync + 'static) -> Self {
        self.listen(Box::new(tell));
        self
    }

    pub(crate) fn explanation(&self, call: &HostCall<'_>, reason: Reason, priced: Option<&Priced>) -> Explanation {
        let considered = priced.map_or_else(Vec::new, |priced| priced.sets(self.runtimes()));
        let is_trial = reason != Reason::Cached && priced.is_some_and(Priced::is_trial);
        let reason = if is_trial { Reason::Trial } else { reason };
        let reason = if reason == Reason::Price && considered.is_empty() { Reason::Unmeasured } else { reason };
        let HostCall { problem, memory, capable, .. } = *call;
        let planner = Planner { machine: self, problem, memory, devices: capable, resident: false };
        let taking_part = if reason == Reason::Selected { planner.taking_part() } else { capable.to_vec() };
        let reason = if taking_part.len() < capable.len() { Reason::Faster } else { reason };
        let is_one = matches!(reason, Reason::Small | Reason::Unmeasured);
        let named = if is_one { call.devices_without_prices(reason) } else { taking_part };
        let names = || named.iter().map(|&device| self.runtimes()[device].facts().name.clone()).collect();
        let devices = considered.first().map_or_else(names, |set| set.devices.clone());
        let (routine, dtype) = (call.problem.operation(), call.problem.dtype());
        let sizes: String = call.problem.sizes().iter().map(|(name, size)| format!(" {name}={size}")).collect();
        Explanation { call: format!("{routine} {dtype}{sizes}"), devices, reason, considered }
    }
}
