//! The report as JSON text.

use super::{FORMAT, Report};

impl Report {
    /// Writes the report as JSON.
    ///
    /// # Panics
    /// `to_json` never panics, since every field of a report can be written as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("no map has keys that are no text") + "\n"
    }

    /// Reads a report from JSON.
    ///
    /// # Errors
    /// The text is not a report, or its version of the file format differs from [`FORMAT`].
    pub fn from_json(text: &str) -> Result<Report, String> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match value["format"].as_u64() {
            Some(format) if format == u64::from(FORMAT) => serde_json::from_value(value).map_err(|error| error.to_string()),
            Some(format) => Err(format!("a report of format {format}; this suite reads format {FORMAT}")),
            None => Err("not a report of the conformance suite: it names no format".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::report::{FORMAT, Figure, Identity, Mode, Report, Settings, TrialReport, Verdict};

    fn report() -> Report {
        let figure = Figure {
            bound: 1,
            check: "gemm: componentwise".to_owned(),
            size: 17,
            flags: "NT".to_owned(),
            ratio: f64::INFINITY,
            limit: 4.0e-15,
        };
        let trial = TrialReport {
            name: "f64::gemm::random".to_owned(),
            dtype: "f64".to_owned(),
            routine: "gemm".to_owned(),
            property: "random".to_owned(),
            about: String::new(),
            verdict: Verdict::Failed,
            why: String::new(),
            seconds: 0.5,
            cases: 3,
            figures: vec![figure],
            failure: None,
        };
        Report {
            format: FORMAT,
            suite: "0".to_owned(),
            build: String::new(),
            begun: None,
            beginnings: 0,
            subject: Identity::default(),
            mode: Mode::Quick,
            seed: u64::MAX,
            filter: None,
            settings: Settings::default(),
            trials: vec![trial],
            grades: Vec::new(),
        }
    }

    #[test]
    fn a_report_comes_back_as_it_was_with_infinite_ratios() {
        assert_eq!(Report::from_json(&report().to_json()).unwrap(), report());
        assert!(!report().passed() && report().count(Verdict::Failed) == 1);
    }

    #[test]
    fn beginnings_of_the_same_are_counted_until_it_ends() {
        let mut report = report();
        let mut begin = |what: &str| {
            report.begin(what);
            let given_up = report.given_up().is_some();
            report = Report::from_json(&report.to_json()).unwrap();
            (report.beginnings, given_up)
        };
        assert_eq!(["x", "x", "y", "y"].map(&mut begin), [(1, false), (2, true), (1, false), (2, true)]);
        report.end();
        assert!((report.beginnings, report.given_up()) == (0, None) && report.begun.is_none());
    }

    fn with_ratio(ratio: f64) -> Report {
        let mut report = report();
        report.trials[0].figures[0].ratio = ratio;
        report
    }

    #[test]
    fn every_number_comes_back_bit_for_bit() {
        // most of these ratios have 17 digits, so that a reader with rounding errors returns a wrong last digit
        let thirds = (1..1000).map(|n| f64::from(n) / 3e15);
        for ratio in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 5e-324, f64::MAX].into_iter().chain(thirds) {
            let read = Report::from_json(&with_ratio(ratio).to_json()).unwrap().trials[0].figures[0].ratio;
            assert!(read.to_bits() == ratio.to_bits() || read.is_nan() && ratio.is_nan(), "{ratio} comes back as {read}");
        }
    }

    #[test]
    fn what_an_earlier_suite_left_out_is_infinite() {
        let text = report().to_json();
        assert!(text.contains("\"inf\""), "{text}");
        assert_eq!(Report::from_json(&text.replace("\"inf\"", "null")).unwrap(), report());
        assert!(Report::from_json(&text.replace("\"inf\"", "\"many\"")).unwrap_err().contains("`many` is no number"));
    }

    #[test]
    fn a_ratio_that_is_no_number_uses_more_than_any_bound_allows() {
        let used = |ratio, limit| Figure { limit, ..with_ratio(ratio).trials.remove(0).figures.remove(0) }.used();
        assert_eq!([used(f64::NAN, 1.0), used(f64::INFINITY, f64::INFINITY), used(1.0, f64::NAN)], [f64::INFINITY; 3]);
        assert_eq!([used(0.0, 0.0), used(0.5, 2.0)], [0.0, 0.25]);
    }

    #[test]
    fn other_formats_and_other_texts_are_refused() {
        let refusal = |text: &str| Report::from_json(text).unwrap_err();
        assert!(refusal(&Report { format: 99, ..report() }.to_json()).contains("format 99"));
        assert!(refusal("{\"trials\": []}").contains("names no format"));
        assert!(refusal("{\"format\": 1}").contains("suite") && !refusal("plain text").is_empty());
    }
}
