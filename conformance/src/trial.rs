//! A running trial: the subject that it grades, the number and size of its cases, and the figures that its checks have recorded.
//!
//! Every check records its worst ratio in the [`Ledger`], even if it passes, so that a report shows the worst ratio of each check
//! beside its bound. Only the ledger holds figures; functions pass it on.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::bounds::{self, Bound};
use crate::cases::Case;
use crate::failure::{Failure, Worst};
use crate::report::Figure;
use crate::{Scope, failure};

/// A property that is being tried on a subject.
#[derive(Debug)]
pub struct Trial<'a, S: ?Sized> {
    /// Who is graded.
    pub subject: &'a S,
    /// How much is tried.
    pub scope: &'a Scope,
    /// What was seen.
    pub ledger: &'a Ledger,
}

// derived, these would ask for `S: Clone`
impl<S: ?Sized> Clone for Trial<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: ?Sized> Copy for Trial<'_, S> {}

impl<'a, S: ?Sized> Trial<'a, S> {
    /// The same trial of another subject.
    #[must_use]
    pub fn of<'b, R: ?Sized>(self, subject: &'b R) -> Trial<'b, R>
    where
        'a: 'b,
    {
        Trial { subject, scope: self.scope, ledger: self.ledger }
    }

    /// The same trial in another scope.
    #[must_use]
    pub fn within(self, scope: &'a Scope) -> Self {
        Trial { scope, ..self }
    }

    /// Says that the property does not apply, and why.
    ///
    /// # Errors
    /// Never: it reads as the end of a check.
    pub fn skip(&self, why: impl Into<String>) -> Result<(), Failure> {
        self.ledger.0.borrow_mut().skipped = Some(why.into());
        Ok(())
    }

    /// Begins a case.
    pub fn case(&self, case: &impl Case) -> Evidence<'a> {
        self.ledger.evidence(case.flags(), case.size())
    }
}

/// What a trial has seen: the worst figure of each check, by flags and size.
#[derive(Debug, Default)]
pub struct Ledger(RefCell<Entries>);

#[derive(Debug, Default)]
struct Entries {
    cases: usize,
    skipped: Option<String>,
    worst: BTreeMap<(&'static str, String, usize), Figure>,
}

impl Ledger {
    /// Begins a case with flags and a size that are not those of a [`Case`].
    pub fn evidence(&self, flags: impl Into<String>, size: usize) -> Evidence<'_> {
        self.0.borrow_mut().cases += 1;
        Evidence { ledger: self, flags: flags.into(), size }
    }

    /// Why the trial was skipped, which is forgotten here.
    pub(crate) fn take_skipped(&self) -> Option<String> {
        self.0.borrow_mut().skipped.take()
    }

    /// The worst figures so far.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        self.0.borrow().worst.values().cloned().collect()
    }

    /// Cases that were begun, why the trial was skipped if it was, and the figures.
    #[must_use]
    pub fn close(self) -> (usize, Option<String>, Vec<Figure>) {
        let Entries { cases, skipped, worst } = self.0.into_inner();
        (cases, skipped, worst.into_values().collect())
    }
}

/// Where the figures of one case go.
#[derive(Debug)]
pub struct Evidence<'a> {
    ledger: &'a Ledger,
    flags: String,
    size: usize,
}

impl Evidence<'_> {
    /// Records a ratio, and whether it is within its bound.
    ///
    /// # Errors
    /// It is not, or it is NaN.
    pub fn within(&self, check: &'static str, bound: Bound, ratio: f64) -> Result<(), Failure> {
        self.record(check, bound, ratio);
        failure::within(check, bound, ratio)
    }

    /// Records the worst of many ratios, and whether it is within its bound.
    ///
    /// # Errors
    /// It is not; the failure names the place.
    pub fn worst(&self, check: &'static str, bound: Bound, worst: Worst) -> Result<(), Failure> {
        self.record(check, bound, worst.ratio());
        worst.within(check, bound)
    }

    /// Records that nothing may differ, and whether that is so (bound 5).
    ///
    /// # Errors
    /// That of the comparison.
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
