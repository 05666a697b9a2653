//! Tests of the HTML page of a report. The tests parse the page as XML and examine its elements.

use std::collections::HashSet;

use roxmltree::{Document, Node, ParsingOptions};

use super::pages;
use crate::report::{FORMAT, FailureReport, Figure, Grade, Identity, Mode, Report, Settings, TrialReport, Verdict};

const NASTY: &str = "<script>alert('&')</script>\"";

fn figure(check: &str, (bound, flags, size): (u32, &str, usize), (ratio, limit): (f64, f64)) -> Figure {
    Figure { bound, check: check.into(), size, flags: flags.into(), ratio, limit }
}

fn trial(dtype: &str, property: &str, verdict: Verdict, figures: Vec<Figure>) -> TrialReport {
    TrialReport {
        name: format!("{dtype}::gemm::{property}"),
        dtype: dtype.into(),
        routine: "gemm".into(),
        property: property.into(),
        about: format!("about {property}"),
        verdict,
        why: String::new(),
        seconds: 0.25,
        cases: 40,
        figures,
        failure: None,
    }
}

fn failing(trial: TrialReport, flags: &str) -> TrialReport {
    let failure = FailureReport {
        check: "gemm: class".into(),
        bound: None,
        detail: format!("expected 6, got {NASTY}"),
        at: Some((2, 3)),
        ratio: f64::NAN,
        limit: f64::NAN,
        case: "gemm NN m=1 n=1 k=130".into(),
        flags: flags.into(),
    };
    TrialReport { failure: Some(failure), ..trial }
}

fn report(name: &str, trials: Vec<TrialReport>) -> Report {
    let grade = |name: &str, verdict: &str| Grade {
        failed: false,
        name: name.into(),
        value: "0.51".into(),
        verdict: verdict.into(),
        explanation: "what it means".into(),
    };
    Report {
        build: String::new(),
        begun: None,
        beginnings: 0,
        format: FORMAT,
        suite: "0.1.0".into(),
        subject: Identity { name: name.into(), device: NASTY.into(), ..Identity::default() },
        mode: Mode::Quick,
        seed: 7,
        filter: None,
        settings: Settings::default(),
        trials,
        grades: vec![grade("f64: growth of the error with k", "A")],
    }
}

/// A report of a subject that passes one trial and fails another.
fn sample() -> Report {
    let check = "gemm: componentwise";
    let figures = vec![
        figure(check, (1, "NN", 16), (1e-16, 4e-15)),
        figure(check, (1, "TN", 130), (2e-15, 3e-14)),
        figure(check, (1, "TN", 64), (0.0, 1.5e-14)),
        figure("gemm: exact integers", (5, "NT", 9), (0.0, 0.0)),
    ];
    let over = vec![figure(check, (1, "NT", 32), (f64::INFINITY, 8e-15)), figure(check, (1, "CN", 33), (2.4e-14, 8.2e-15))];
    let random = trial("f64", "random", Verdict::Passed, figures);
    report("cpu:0", vec![random, failing(trial("f64", "alpha_zero", Verdict::Failed, over), "NC")])
}

/// Parses the page of `reports`, which must be well-formed XML, and passes it to `look`.
fn with_page<R>(reports: &[Report], look: impl FnOnce(&Document<'_>) -> R) -> R {
    let page = pages(reports).unwrap();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    look(&Document::parse_with_options(&page, options).unwrap_or_else(|error| panic!("{error} in\n{page}")))
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

fn all<'a>(page: &'a Document<'_>, tag: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    page.descendants().filter(move |node| node.tag_name().name() == tag)
}

fn with_class<'a>(page: &'a Document<'_>, class: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    page.descendants().filter(move |node| node.attribute("class").is_some_and(|classes| classes.split(' ').any(|c| c == class)))
}

/// Style and text of the cell in row `row` and column `flags` of the table of flags.
fn cell(page: &Document<'_>, row: usize, flags: &str) -> (String, String) {
    let table = with_class(page, "matrix").find(|table| text(*table).contains("flags")).unwrap();
    let rows: Vec<Node<'_, '_>> = table.descendants().filter(|node| node.tag_name().name() == "tr").collect();
    let cells = |row: Node<'_, '_>| -> Vec<(String, String)> {
        let elements = row.children().filter(Node::is_element);
        elements.map(|cell| (cell.attribute("class").unwrap_or_default().to_owned(), text(cell).trim().to_owned())).collect()
    };
    let at = cells(rows[0]).iter().position(|(_, name)| name == flags).unwrap();
    cells(rows[row + 1])[at].clone()
}

#[test]
fn the_page_needs_nothing_from_outside() {
    with_page(&[sample(), sample()], |page| {
        let attributes = || page.descendants().flat_map(|node| node.attributes());
        let outside = attributes().filter(|a| ["src", "href", "srcset", "action", "data"].contains(&a.name()));
        assert!(outside.clone().count() > 0 && outside.clone().all(|a| a.value().starts_with('#')));
        let ids: Vec<&str> = attributes().filter(|a| a.name() == "id").map(|a| a.value()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{ids:?}");
        let named = attributes().filter(|a| a.name() == "aria-labelledby").flat_map(|a| a.value().split(' ').collect::<Vec<_>>());
        assert!(outside.map(|a| &a.value()[1..]).chain(named).all(|id| ids.contains(&id)), "{ids:?}");
        let style = text(all(page, "style").next().unwrap());
        assert!(!style.contains("url(") && !style.contains("@import") && style.contains("prefers-color-scheme: dark"));
    });
}

#[test]
fn what_a_device_calls_itself_is_text() {
    with_page(&[sample()], |page| {
        assert_eq!(all(page, "script").count(), 0);
        assert!(with_class(page, "subjects").any(|table| text(table).contains(NASTY)));
        assert!(with_class(page, "failure").any(|failure| text(failure).contains(NASTY)));
    });
}

#[test]
fn the_verdict_and_the_failure_stand_at_the_top() {
    with_page(&[sample()], |page| {
        let verdict = text(with_class(page, "verdict").next().unwrap());
        assert_eq!(verdict, "✘ 1 trial went wrong: 1 passed, 1 failed");
        let failure = text(with_class(page, "failure").next().unwrap());
        for part in [
            "f64::gemm::alpha_zero",
            "gemm: class",
            "row 2, column 3",
            "gemm NN m=1 n=1 k=130",
            "lapidary conformance --device cpu:0 --quick --seed 7 --filter f64::gemm::alpha_zero",
        ] {
            assert!(failure.contains(part), "{part} in {failure}");
        }
    });
    let fine = report("cpu:0", vec![trial("f64", "random", Verdict::Passed, Vec::new())]);
    with_page(&[fine], |page| {
        assert_eq!(text(with_class(page, "verdict").next().unwrap()), "✔ conforms: 1 passed");
        assert_eq!(with_class(page, "failure").count(), 0);
    });
    let skipped = |property| trial("f64", property, Verdict::Skipped, Vec::new());
    with_page(&[report("cpu:0", vec![skipped("random"), skipped("large")])], |page| {
        let verdict = with_class(page, "verdict").next().unwrap();
        assert_eq!(text(verdict), "– nothing applied: 2 skipped");
        assert_eq!(verdict.attribute("class"), Some("verdict none"));
    });
    with_page(&[report("cpu:0", Vec::new())], |page| {
        assert!(text(with_class(page, "verdict").next().unwrap()).contains("nothing was tried"));
    });
}

#[test]
fn grades_stand_beside_one_another() {
    let other = Report { grades: Vec::new(), ..sample() };
    with_page(&[sample(), other], |page| {
        let rows: Vec<Vec<String>> = with_class(page, "grades")
            .flat_map(|table| table.descendants().filter(|node| node.tag_name().name() == "tr"))
            .map(|row| row.children().filter(Node::is_element).map(text).collect())
            .collect();
        assert_eq!(rows, [["Grade", "A", "B"], ["f64: growth of the error with kwhat it means", "A 0.51", "–"]]);
    });
}

/// Style and text of each cell of the first table on the page, without the headings.
fn overview(reports: &[Report]) -> Vec<Vec<(String, String)>> {
    with_page(reports, |page| {
        let rows = with_class(page, "matrix").next().unwrap().descendants().filter(|node| node.tag_name().name() == "tr");
        let cells = |row: Node<'_, '_>| -> Vec<(String, String)> {
            let cells = row.children().filter(|node| node.tag_name().name() == "td");
            cells.map(|cell| (cell.attribute("class").unwrap().to_owned(), text(cell).trim().to_owned())).collect()
        };
        rows.skip(1).map(cells).collect()
    })
}

#[test]
fn the_page_opens_with_routines_and_precisions() {
    let single = |verdict| trial("f32", "random", verdict, vec![figure("gemm: componentwise", (1, "NN", 8), (1e-8, 1e-6))]);
    let laswp = TrialReport { routine: "laswp".into(), ..trial("f64", "random", Verdict::Skipped, Vec::new()) };
    let other = report("cpu:1", vec![single(Verdict::Passed), laswp]);
    let cell = |class: &str, text: &str| (class.to_owned(), text.to_owned());
    // the columns of the table: report A in f64, report B in f32, report B in f64
    let rows = [
        vec![cell("bad", "✘ 1, ∞"), cell("good", "✔ 1, 1 %"), cell("none", "not tried")],
        vec![cell("none", "not tried"), cell("none", "not tried"), cell("none", "– 1")],
    ];
    assert_eq!(overview(&[sample(), other]), rows);
    let unexpected = report("cpu:1", vec![single(Verdict::UnexpectedlyPassed), single(Verdict::Passed)]);
    assert_eq!(overview(&[unexpected]), [[cell("bad", "‼ 1, 1 %")]]);
}

#[test]
fn exact_grades_are_one_line() {
    let grade = |name: &str, verdict: &str| Grade { name: name.into(), verdict: verdict.into(), ..sample().grades.remove(0) };
    let with = |verdict| Report { grades: vec![grade("rows", "exact"), grade("info", verdict)], ..sample() };
    let rows = |reports: &[Report]| {
        with_page(reports, |page| {
            let named = with_class(page, "exact").next().map(text);
            let table = with_class(page, "grades").next().unwrap();
            (named, table.descendants().filter(|node| node.tag_name().name() == "tr").count() - 1)
        })
    };
    let line = |names: &str| Some(format!("Exact, where nothing may differ: {names}."));
    assert_eq!(rows(&[with("exact")]), (line("rows; info"), 0));
    assert_eq!(rows(&[with("exact"), with("not exact")]), (line("rows"), 1));
}

#[test]
fn flags_that_failed_are_told_from_those_that_passed() {
    with_page(&[sample()], |page| {
        let cells = ["NN", "TN", "CN", "NT", "NC"].map(|flags| cell(page, 0, flags));
        let cells = cells.each_ref().map(|(class, text)| (&class[..], &text[..]));
        // the ratios of the five cells: 1e-16 of 4e-15; 2e-15 of 3e-14; 2.4e-14 of 8.2e-15; infinite; no ratio, since the check has
        // no bound
        assert_eq!(cells, [("good", "✔ 2 %"), ("good", "✔ 7 %"), ("bad", "✘ 293 %"), ("bad", "✘ ∞"), ("bad", "✘")]);
    });
}

#[test]
fn a_known_failure_is_neither_good_nor_bad() {
    let known = failing(trial("f32", "pivots", Verdict::Expected, Vec::new()), "NN");
    let known = TrialReport { why: "divides by reciprocals".into(), ..known };
    let skipped = TrialReport { why: "no such routine".into(), ..trial("f32", "inverted", Verdict::Skipped, Vec::new()) };
    with_page(&[report("cpu:0", vec![known, skipped])], |page| {
        assert_eq!(text(with_class(page, "verdict").next().unwrap()), "✔ conforms: 1 known failure, 1 skipped");
        assert_eq!(cell(page, 0, "NN").0, "known");
        assert!(text(with_class(page, "failure").next().unwrap()).contains("divides by reciprocals"));
        let trials: Vec<String> = with_class(page, "trial").map(text).collect();
        assert!(trials[1].contains("– skipped") && trials[1].contains("no such routine"), "{trials:?}");
    });
}

#[test]
fn the_bound_and_the_errors_stand_where_they_should() {
    with_page(&[sample()], |page| {
        let plots: Vec<Node<'_, '_>> = with_class(page, "plot").collect();
        assert_eq!(plots.len(), 1, "an exact check has no bound to draw");
        let limits: Vec<(f64, f64)> = plots[0]
            .descendants()
            .find(|node| node.tag_name().name() == "polyline")
            .and_then(|line| line.attribute("points"))
            .map(|points| points.split(' ').map(pair).collect())
            .unwrap();
        let points: Vec<(Node<'_, '_>, (f64, f64))> = plots[0]
            .descendants()
            .filter_map(|node| Some((node, pair(node.attribute("transform")?.strip_prefix("translate(")?.strip_suffix(')')?))))
            .collect();
        assert_eq!((limits.len(), points.len()), (5, 5), "sizes 16, 32, 33, 64 and 130");
        for (&limit, (node, point)) in limits.iter().zip(&points) {
            assert!((limit.0 - point.0).abs() < 1e-9, "the sizes agree");
            let over = node.attribute("class").unwrap().contains("over");
            // in SVG, a point further up has a smaller y coordinate
            assert_eq!(over, point.1 < limit.1, "{limit:?} {point:?}");
        }
        assert!(limits.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let says = text(all(page, "figcaption").next().unwrap());
        assert_eq!(says, "f64: worst ∞ of the bound, at size 32, NT");
    });
}

#[test]
fn limits_that_no_axis_reaches_do_not_stop_the_page() {
    let check = "gemm: componentwise";
    let of = |size, limit| figure(check, (1, "NN", size), (1e-16, limit));
    let figures = vec![of(4, f64::INFINITY), of(8, f64::NAN), of(16, 4e-15)];
    with_page(&[report("cpu:0", vec![trial("f64", "random", Verdict::Passed, figures)])], |page| {
        let points = page.descendants().filter(|node| node.attribute("transform").is_some()).count();
        assert_eq!(points, 1, "finite limits alone are drawn");
    });
    with_page(&[report("cpu:0", vec![trial("f64", "random", Verdict::Passed, vec![of(4, 1.5e308)])])], |page| {
        assert_eq!(with_class(page, "plot").count(), 1);
    });
}

fn pair(text: &str) -> (f64, f64) {
    let (x, y) = text.split_once([',', ' ']).unwrap();
    (x.parse().unwrap(), y.parse().unwrap())
}

#[test]
fn several_reports_stand_side_by_side() {
    let other = Report { subject: Identity { name: "blas:a.so#fortran".into(), ..Identity::default() }, ..sample() };
    let only = trial("f32", "random", Verdict::Passed, vec![figure("gemm: componentwise", (1, "NN", 8), (1e-8, 1e-6))]);
    let other = Report { trials: vec![only, other.trials[0].clone()], ..other };
    with_page(&[sample(), other], |page| {
        let verdicts: Vec<String> = with_class(page, "verdict").map(text).collect();
        assert!(verdicts[0].starts_with("A ✘") && verdicts[1].starts_with("B ✔"), "{verdicts:?}");
        assert!(text(with_class(page, "subjects").next().unwrap()).contains("--subject 'blas:a.so#fortran'"));
        // the rows of the table: report A in f64, report B in f32, report B in f64
        let nn: Vec<String> = (0..3).map(|row| cell(page, row, "NN").1).collect();
        assert_eq!(nn, ["✔ 2 %", "✔ 1 %", "✔ 2 %"]);
        assert_eq!(cell(page, 1, "NC"), ("none".to_owned(), "not tried".to_owned()));
        assert_eq!(with_class(page, "plot").count(), 2, "one for each precision");
        let double = text(all(page, "figcaption").last().unwrap());
        assert!(double.contains("A: worst ∞") && double.contains("B: worst 7 %"), "{double}");
    });
}
