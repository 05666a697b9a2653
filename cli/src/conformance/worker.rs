//! The worker process: runs the trials and reports each step, so that the watching process knows which trial was running if the
//! worker process ends early.

use lapidary_conformance::expectation;
use lapidary_conformance::grades::grades;
use lapidary_conformance::report::GRADES;
use lapidary_conformance::suite::properties;
use lapidary_conformance::{Grader, Scope, Subject};

use super::message::{Job, Message};
use crate::failure::Result;
use crate::worker::{Inbox, send};

/// Runs the trials of a job on a subject, then measures the grades.
pub fn work<S: Subject + 'static>(subject: &S, scope: Scope, orders: &Inbox<Job>) -> Result<()> {
    let identity = subject.identity();
    send(&Message::Opened(identity.clone()));
    let job = orders.next()?;
    let grader = Grader::new(subject, &identity, scope, &expectation::known());
    let mut tried = job.tried;
    for property in properties::<S>() {
        let name = property.full_name();
        if job.trials.contains(&name) {
            send(&Message::Began(name));
            let trial = grader.try_on(subject, &property);
            send(&Message::Tried(Box::new(trial.clone())));
            tried.push(trial);
        }
    }
    send(&Message::Began(GRADES.to_owned()));
    send(&Message::Graded(grades(subject, &tried)));
    Ok(())
}
