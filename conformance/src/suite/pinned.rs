//! Properties that test cases which once failed. Each such case is a file in `conformance/cases/`.

use lapidary_core::Scalar;

use super::{Entry, Group};
use crate::cases::{Pinned, pinned};
use crate::{Failure, Subject, Trial};

/// Creates one property for each case file. The property has the name of the file.
macro_rules! files {
    ($($name:ident)+) => {
        /// Names and texts of the case files.
        #[cfg(test)]
        const FILES: &[(&str, &str)] = &[$((stringify!($name), include_str!(concat!("../../cases/", stringify!($name), ".case")))),+];

        /// Creates one group for each case file, since the files differ in the routines that their cases call.
        pub(super) fn groups<S: Subject + ?Sized, T: Scalar>() -> Vec<Group<S>> {
            vec![$({
                const TEXT: &str = include_str!(concat!("../../cases/", stringify!($name), ".case"));
                // if a file cannot be read, the trial of this file reports the reason
                let calls = TEXT.parse::<Pinned>().map_or(&[][..], |case| case.calls());
                let entry: Entry<S> = (stringify!($name), about(TEXT), |trial| check::<S, T>(trial, stringify!($name), TEXT));
                Group { name: "cases", calls, entries: vec![entry] }
            }),+]
        }
    };
}

files! {
    gemm_drops_the_last_product
    gemm_last_row_is_stale
    trsm_opposite_triangle
    getrf_last_column_of_a_tile
    getrf_second_of_equal_pivots
    laswp_backward
}

/// The first remark of a case file, which states the requirement.
fn about(text: &'static str) -> &'static str {
    pinned::remarks(text).next().unwrap_or_default()
}

fn check<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, name: &str, text: &str) -> Result<(), Failure> {
    read(name, text)?.check::<S, T>(trial)
}

fn read(name: &str, text: &str) -> Result<Pinned, Failure> {
    let what = |error| format!("conformance/cases/{name}.case: {error}; it must hold remarks and one case, as a failure prints it");
    text.parse().map_err(|error: String| Failure::new("suite: pinned case", what(error)))
}

#[cfg(test)]
mod tests {
    use super::{FILES, read};
    use crate::cases::pinned;

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let failure = read("mistyped", "gemm NX m=1 n=1 k=1").unwrap_err().to_string();
        for part in ["conformance/cases/mistyped.case", "`A:`", "one case, as a failure prints it"] {
            assert!(failure.contains(part), "{failure}");
        }
    }

    #[test]
    fn every_file_is_listed_and_says_what_it_is_about() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> = entries.filter_map(|name| name.strip_suffix(".case").map(str::to_owned)).collect();
        let mut listed: Vec<&str> = FILES.iter().map(|file| file.0).collect();
        files.sort();
        listed.sort_unstable();
        assert_eq!(files, listed);
        for (name, text) in FILES {
            read(name, text).unwrap();
            assert!(pinned::remarks(text).next().is_some_and(|about| about.ends_with('.')), "{name}");
        }
    }
}
