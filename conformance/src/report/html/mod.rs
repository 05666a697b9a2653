//! The report of a run as an HTML page. The page is one file without references to other files, so that users can print it and
//! attach it to a bug report.
//!
//! `view` converts a [`Report`] into texts in the order of the page. Templates put these texts into the page and escape every
//! value. This module draws the plots itself, because the plots must take their colours from the style of the page (light, dark or
//! printed).

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

/// Creates the page of one report.
///
/// # Errors
/// The function fails only if a template does not match the values that this module passes to it.
pub fn page(report: &Report) -> Result<String, minijinja::Error> {
    pages(std::slice::from_ref(report))
}

/// Creates a page that shows several reports side by side.
///
/// # Errors
/// The function fails only if a template does not match the values that this module passes to it.
pub fn pages(reports: &[Report]) -> Result<String, minijinja::Error> {
    render("page.html", include_str!("page.html"), Page::new(reports)?)
}

/// Fills a template with values. The template escapes the values if its name ends in `.html`.
fn render(name: &'static str, template: &'static str, view: impl Serialize) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_template(name, template)?;
    environment.get_template(name)?.render(view)
}
