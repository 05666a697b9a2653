//! A running trial: the subject, the scope, and the figures that its checks have recorded.
//!
//! Every check records its worst ratio in the [`Ledger`], even if the check passes, so that a report can show the worst ratio of
//! each check beside the limit of its bound.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::bounds::{self, Bound};
use crate::cases::Case;
use crate::failure::{Failure, Worst};
use crate::report::Figure;
use crate::{Scope, failure};

/// A trial that is running: it tests a property on a subject.
#[derive(Debug)]
pub struct Trial<'a, S: ?Sized> {
    /// The subject on which the property is tested.
    pub subject: &'a S,
    /// Sizes and number of the cases of the trial.
    pub scope: &'a Scope,
    /// The ledger that records the figures.
    pub ledger: &'a Ledger,
}

// a derived `Clone` would require `S: Clone`
impl<S: ?Sized> Clone for Trial<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: ?Sized> Copy for Trial<'_, S> {}

impl<'a, S: ?Sized> Trial<'a, S> {
    /// This trial with another subject.
    #[must_use]
    pub fn of<'b, R: ?Sized>(self, subject: &'b R) -> Trial<'b, R>
    where
        'a: 'b,
    {
        Trial { subject, scope: self.scope, ledger: self.ledger }
    }

    /// This trial with another scope.
    #[must_use]
    pub fn within(self, scope: &'a Scope) -> Self {
        Trial { scope, ..self }
    }

    /// Records that the property does not apply, for the reason `why`.
    ///
    /// # Errors
    /// The function never returns an error. The type of the function is the result type of a check, so that a check can return
    /// `trial.skip(why)`.
    pub fn skip(&self, why: impl Into<String>) -> Result<(), Failure> {
        self.ledger.0.borrow_mut().skipped = Some(why.into());
        Ok(())
    }

    /// Begins a case: counts it, and returns the recorder of the case's figures.
    pub fn case(&self, case: &impl Case) -> Evidence<'a> {
        self.ledger.evidence(case.flags(), case.size())
    }
}

/// The worst figures of a trial: one figure for each check, combination of flags, and size.
#[derive(Debug, Default)]
pub struct Ledger(RefCell<Entries>);

#[derive(Debug, Default)]
struct Entries {
    cases: usize,
    skipped: Option<String>,
    worst: BTreeMap<(&'static str, String, usize), Figure>,
}

impl Ledger {
    /// Begins a case with the given flags and size, which need not come from a [`Case`].
    pub fn evidence(&self, flags: impl Into<String>, size: usize) -> Evidence<'_> {
        self.0.borrow_mut().cases += 1;
        Evidence { ledger: self, flags: flags.into(), size }
    }

    /// Removes the reason for which the trial was skipped from the ledger and returns it. `None` if the trial was not skipped.
    pub(crate) fn take_skipped(&self) -> Option<String> {
        self.0.borrow_mut().skipped.take()
    }

    /// Returns the worst figures that were recorded so far.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        self.0.borrow().worst.values().cloned().collect()
    }

    /// Returns the number of cases, the reason for which the trial was skipped (if it was), and the figures.
    #[must_use]
    pub fn close(self) -> (usize, Option<String>, Vec<Figure>) {
        let Entries { cases, skipped, worst } = self.0.into_inner();
        (cases, skipped, worst.into_values().collect())
    }
}

/// Records the figures of one case.
#[derive(Debug)]
pub struct Evidence<'a> {
    ledger: &'a Ledger,
    flags: String,
    size: usize,
}

impl Evidence<'_> {
    /// Records a ratio and compares it with the limit of `bound`.
    ///
    /// # Errors
    /// The ratio exceeds the bound or is NaN.
    pub fn within(&self, check: &'static str, bound: Bound, ratio: f64) -> Result<(), Failure> {
        self.record(check, bound, ratio);
        failure::within(check, bound, ratio)
    }

    /// Records the largest of several ratios and compares it with the limit of `bound`.
    ///
    /// # Errors
    /// The largest ratio exceeds the bound. The failure names its row and column.
    pub fn worst(&self, check: &'static str, bound: Bound, worst: Worst) -> Result<(), Failure> {
        self.record(check, bound, worst.ratio());
        worst.within(check, bound)
    }

    /// Records the result of a comparison that allows no difference (bound 5), and returns this result.
    ///
    /// # Errors
    /// The comparison returned an error.
    pub fn exact(&self, check: &'static str, compared: Result<(), Failure>) -> Result<(), Failure> {
        self.record(check, bounds::exact(), if compared.is_ok() { 0.0 } else { f64::INFINITY });
        compared
    }

    fn record(&self, check: &'static str, bound: Bound, ratio: f64) {
        let Evidence { size, .. } = *self;
        let figure =
            Figure { bound: bound.number, check: check.to_owned(), size, flags: self.flags.clone(), ratio, limit: bound.limit };
        let key = (check, self.flags.clone(), size.next_power_of_two());
        let mut entries = self.ledger.0.borrow_mut();
        let worst = entries.worst.entry(key).or_insert_with(|| figure.clone());
        if figure.used() > worst.used() {
            *worst = figure;
        }
    }
}
