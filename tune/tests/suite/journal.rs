//! Tests of the journal.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lapidary_tune::{Header, Journal, Known, Timing};
use proptest::prelude::*;
use tempfile::TempDir;

const TIMING: Timing = Timing { setup_seconds: 0.25, runs: 5, seconds: 1.5e-5 };

fn header() -> Header {
    Header { family: "gemm 3".to_owned(), device: "A GPU, driver 1.2".to_owned(), axes: vec!["mwg".to_owned(), "nwg".to_owned()] }
}

/// Returns a folder, which is deleted with the value, and the path of a journal in this folder.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gemm.journal");
    (folder, path)
}

fn open(path: &Path) -> (Journal, Vec<Known>) {
    Journal::open(path, &header()).unwrap()
}

fn measured(values: [usize; 2]) -> Known {
    Known { values: values.to_vec(), result: Ok(TIMING) }
}

fn failure(values: [usize; 2], reason: &str) -> Known {
    Known { values: values.to_vec(), result: Err(reason.to_owned()) }
}

fn culprit(values: [usize; 2]) -> Known {
    failure(values, "the process ended while the candidate ran")
}

fn append_bytes(path: &Path, bytes: &[u8]) {
    let mut content = fs::read(path).unwrap();
    content.extend_from_slice(bytes);
    fs::write(path, content).unwrap();
}

#[test]
fn outcomes_are_read_in_order() {
    let (_folder, path) = folder();
    let (mut journal, known) = open(&path);
    assert_eq!(known, []);
    journal.begin(&[64, 8]).unwrap();
    journal.end(&[64, 8], TIMING).unwrap();
    journal.begin(&[8, 8]).unwrap();
    journal.failed(&[8, 8], "wrong\n  result\t(1, 2)").unwrap();
    journal.begin(&[64, 8]).unwrap();
    journal.end(&[64, 8], TIMING).unwrap();
    drop(journal);
    let (journal, known) = open(&path);
    assert_eq!(known, [measured([64, 8]), failure([8, 8], "wrong result (1, 2)"), measured([64, 8])]);
    assert_eq!((journal.ignored_lines(), journal.set_aside()), (0, None));
}

#[test]
fn the_candidate_that_ended_the_process_fails() {
    let (_folder, path) = folder();
    let (mut journal, _) = open(&path);
    journal.begin(&[64, 8]).unwrap();
    journal.end(&[64, 8], TIMING).unwrap();
    journal.begin(&[16, 16]).unwrap();
    drop(journal);
    for _ in 0..2 {
        assert_eq!(open(&path).1, [measured([64, 8]), culprit([16, 16])]);
    }
}

#[test]
fn a_cancelled_candidate_is_not_known() {
    let (_folder, path) = folder();
    let (mut journal, _) = open(&path);
    journal.begin(&[16, 16]).unwrap();
    journal.cancel(&[16, 16]).unwrap();
    drop(journal);
    assert_eq!(open(&path).1, []);
}

#[test]
fn a_torn_line_is_removed() {
    let (_folder, path) = folder();
    let (mut journal, _) = open(&path);
    journal.begin(&[64, 8]).unwrap();
    drop(journal);
    // The last number of the line lacks digits, but the line can be parsed.
    append_bytes(&path, b"end 64 8 setup=0.25 runs=5 seconds=0.0");
    let (mut journal, known) = open(&path);
    assert_eq!(known, [culprit([64, 8])]);
    journal.begin(&[8, 8]).unwrap();
    journal.end(&[8, 8], TIMING).unwrap();
    drop(journal);
    let (journal, known) = open(&path);
    assert_eq!((known, journal.ignored_lines()), (vec![culprit([64, 8]), measured([8, 8])], 0));
}

#[test]
fn what_a_failed_write_left_is_removed() {
    let (_folder, path) = folder();
    let (mut journal, _) = open(&path);
    journal.begin(&[64, 8]).unwrap();
    // The line was written, but the write to the disk failed.
    append_bytes(&path, b"end 64 8 setup=0.25 runs=5 seconds=0.000012345678\n");
    journal.end(&[64, 8], TIMING).unwrap();
    drop(journal);
    let (journal, known) = open(&path);
    assert_eq!((known, journal.ignored_lines()), (vec![measured([64, 8])], 0));
}

#[test]
fn unknown_lines_are_ignored_one_by_one() {
    let (_folder, path) = folder();
    drop(open(&path));
    append_bytes(
        &path,
        b"end 1 2 setup=0.25 runs=5 seconds=0.000015\n\
          end 1 setup=0.25 runs=5 seconds=1\nend 1 2 setup=0.25 runs=5\nend 1 2 setup=0.25 runs=5 seconds=NaN\n\
          end 1 2 setup=inf runs=5 seconds=1\n          begin 1 x\nbegin 1 2 3\npause 1 2\n\xff\xfe\n\nfailed 3 4 too slow\n",
    );
    let (mut journal, known) = open(&path);
    assert_eq!((known, journal.ignored_lines()), (vec![measured([1, 2]), failure([3, 4], "too slow")], 9));
    // The bytes that are not text do not change where the next line begins.
    journal.end(&[5, 6], TIMING).unwrap();
    drop(journal);
    assert_eq!(open(&path).1, [measured([1, 2]), failure([3, 4], "too slow"), measured([5, 6])]);
}

#[test]
fn another_header_sets_the_journal_aside() {
    let other_headers = [
        Header { family: "gemm 4".to_owned(), ..header() },
        Header { device: "A GPU, driver 1.3".to_owned(), ..header() },
        Header { axes: vec!["mwg".to_owned(), "kwg".to_owned()], ..header() },
    ];
    for other in other_headers {
        let (folder, path) = folder();
        let (mut journal, _) = open(&path);
        journal.begin(&[1, 2]).unwrap();
        drop(journal);
        let content = fs::read(&path).unwrap();
        let (journal, known) = Journal::open(&path, &other).unwrap();
        let old = folder.path().join("gemm.journal.old");
        assert_eq!((known, journal.set_aside()), (Vec::new(), Some(old.as_path())));
        assert_eq!(fs::read(&old).unwrap(), content);
        drop(journal);
        assert_eq!(Journal::open(&path, &other).unwrap().0.set_aside(), None);
    }
}

#[test]
fn a_journal_has_one_user() {
    let (_folder, path) = folder();
    let (mut journal, _) = open(&path);
    journal.begin(&[1, 2]).unwrap();
    let error = Journal::open(&path, &header()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    journal.end(&[1, 2], TIMING).unwrap();
    drop(journal);
    assert_eq!(open(&path).1, [measured([1, 2])]);
}

#[test]
fn errors_are_returned() {
    let (folder, _) = folder();
    assert!(Journal::open(folder.path(), &header()).is_err());
    assert_eq!(Journal::open(&folder.path().join("no/folder"), &header()).unwrap_err().kind(), ErrorKind::NotFound);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever the length at which a journal is cut, its complete lines are read, and the next outcome is not lost.
    #[test]
    fn a_journal_may_be_cut_anywhere(cut in 0_usize..400) {
        let (_folder, path) = folder();
        let (mut journal, _) = open(&path);
        for at in 0..5 {
            journal.begin(&[at, at]).unwrap();
            journal.end(&[at, at], TIMING).unwrap();
        }
        drop(journal);
        let content = fs::read(&path).unwrap();
        fs::write(&path, &content[..cut.min(content.len())]).unwrap();
        let (mut journal, mut known) = open(&path);
        prop_assert!(known.iter().enumerate().all(|(at, known)| *known == measured([at; 2]) || *known == culprit([at; 2])));
        prop_assert_eq!((journal.ignored_lines(), journal.set_aside()), (0, None));
        journal.end(&[9, 9], TIMING).unwrap();
        drop(journal);
        known.push(measured([9, 9]));
        prop_assert_eq!(open(&path).1, known);
    }
}
