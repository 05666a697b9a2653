//! The report as a page: one file that needs nothing else, to be read, printed and
//! attached to a bug report.
//!
//! The walk is [`Report`] → [`view`] (what stands where, as text) → templates, which
//! escape every value. Pictures are drawn here and not by a library, since they take
//! their colours from the page: light, dark or printed.

mod matrix;
mod plot;
mod scale;
#[cfg(test)]
mod tests;
mod text;
mod view;

use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::Report;
use view::Page;

/// A page of one report.
///
/// # Errors
/// Never, unless a template is at odds with what is put into it.
pub fn page(report: &Report) -> Result<String, minijinja::Error> {
    pages(std::slice::from_ref(report))
}

/// A page of several reports beside one another.
///
/// # Errors
/// Never, unless a template is at odds with what is put into it.
pub fn pages(reports: &[Report]) -> Result<String, minijinja::Error> {
    render("page.html", include_str!("page.html"), Page::new(reports)?)
}

/// A template whose name ends in `.html` escapes what is put into it.
fn render(name: &'static str, template: &'static str, view: impl Serialize) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_template(name, template)?;
    environment.get_template(name)?.render(view)
}
