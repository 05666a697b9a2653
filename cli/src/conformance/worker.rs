//! The worker process: runs the trials and reports each step, so that the watching process knows which trial was running if the
//! worker process ends early.

use lapidary_conformance::expectation;
use lapidary_conformance::grades::grades;
use lapidary_conformance::report::GRADES;
use lapidary_conformance::suite::properties;
use lapidary_conformance::{Grader, Scope, Subject};

use super::message::{JobReceiver, Message};
use crate::failure::Result;

/// Runs the trials of a job on a subject, then measures the grades.
pub fn work<S: Subject + 'static>(subject: &S, scope: Scope, orders: &JobReceiver) -> Result<()> {
    let identity = subject.identity();
    Message::Opened(identity.clone()).send();
    let job = orders.job()?;
    let grader = Grader::new(subject, &identity, scope, &expectation::known());
    let mut tried = job.tried;
    for property in properties::<S>() {
        let name = property.full_name();
        if job.trials.contains(&name) {
            Message::Began(name).send();
            let trial = grader.try_on(subject, &property);
            Message::Tried(Box::new(trial.clone())).send();
            tried.push(trial);
        }
    }
    Message::Began(GRADES.to_owned()).send();
    Message::Graded(grades(subject, &tried)).send();
    Ok(())
}
