//! Tests of the program cache: entries are stored, loaded, damaged and deleted.

use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use super::*;

fn cache() -> (tempfile::TempDir, ProgramCache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = ProgramCache::new(Some(folder.path().join("deep").join("er")));
    (folder, cache)
}

fn counts(hits: u64, misses: u64, rejected: u64) -> CacheCounts {
    CacheCounts { hits, misses, rejected }
}

#[test]
fn what_was_stored_is_loaded_by_another_process() {
    let (folder, cache) = cache();
    assert_eq!(cache.load("key"), None);
    cache.store("key", b"binary");
    cache.store("other", b"");
    let again = ProgramCache::new(cache.folder.clone());
    assert_eq!((again.load("key").unwrap(), again.load("other").unwrap()), (b"binary".to_vec(), Vec::new()));
    assert_eq!((cache.counts(), again.counts()), (counts(0, 1, 0), counts(2, 0, 0)));
    let mut keys: Vec<_> = again.entries().into_iter().map(|entry| entry.key.unwrap()).collect();
    keys.sort();
    assert_eq!(keys, ["key", "other"]);
    assert_eq!((again.clear().unwrap(), again.load("key")), (2, None));
    drop(folder);
}

#[test]
fn a_binary_that_was_not_found_here_is_refused_without_a_hit() {
    let cache = ProgramCache::new(None);
    cache.reject();
    assert_eq!(cache.counts(), counts(0, 0, 1));
}

#[test]
fn a_damaged_or_foreign_file_is_no_entry() {
    let (_folder, cache) = cache();
    cache.store("key", b"binary");
    let path = cache.path("key").unwrap();
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&path, flipped).unwrap();
        assert_eq!(cache.load("key"), None, "byte {at}");
        fs::write(&path, &whole[..at]).unwrap();
        assert_eq!(cache.load("key"), None, "{at} bytes");
    }
    cache.store("another", b"binary");
    fs::copy(cache.path("another").unwrap(), &path).unwrap();
    assert_eq!(cache.load("key"), None);
    assert_eq!(cache.counts().rejected, 2 * whole.len() as u64 + 1);
    assert_eq!(cache.entries().iter().filter(|entry| entry.key.is_none()).count(), 0);
}

#[test]
fn without_a_folder_or_the_right_to_write_nothing_is_kept() {
    let none = ProgramCache::new(None);
    none.store("key", b"binary");
    assert_eq!((none.load("key"), none.entries().len()), (None, 0));
    let file = tempfile::NamedTempFile::new().unwrap();
    let blocked = ProgramCache::new(Some(file.path().join("folder")));
    assert_eq!(blocked.trouble(), None);
    blocked.store("key", b"binary");
    assert_eq!(blocked.load("key"), None);
    assert!(blocked.trouble().unwrap().contains("folder"), "{:?}", blocked.trouble());
    assert_eq!(none.trouble(), None);
}

/// A loaded binary runs as code, so the cache must not use a folder to which other users may write.
#[cfg(unix)]
#[test]
fn a_folder_to_which_others_may_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let cache = ProgramCache::new(Some(folder.path().to_owned()));
    let open_to = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    open_to(0o700);
    cache.store("key", b"binary");
    for mode in [0o720, 0o702, 0o777] {
        open_to(mode);
        let again = ProgramCache::new(Some(folder.path().to_owned()));
        assert_eq!(again.load("key"), None, "{mode:o}");
        again.store("other key", b"binary");
        assert!(again.trouble().unwrap().contains("chmod go-w"), "{:?}", again.trouble());
        assert_eq!(again.entries().len(), 1);
    }
    open_to(0o755);
    assert_eq!(cache.load("key").as_deref(), Some(&b"binary"[..]));
    // the cache does not use an entry to which other users may write, even if no other user may write to the folder
    let entry = cache.path("key").unwrap();
    fs::set_permissions(&entry, fs::Permissions::from_mode(0o664)).unwrap();
    assert_eq!(cache.load("key"), None);
    cache.store("key", b"binary");
    assert_eq!(fs::metadata(entry).unwrap().permissions().mode() & 0o777, 0o600);
    // the cache creates a missing folder with access for its owner only, whatever the user's default permissions are
    let made = folder.path().join("made");
    ProgramCache::new(Some(made.clone())).store("key", b"binary");
    assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700);
}

#[cfg(unix)]
#[test]
fn pipes_and_folders_are_passed_over() {
    let (_folder, cache) = cache();
    cache.store("key", b"binary");
    let [pipe, other] = ["pipe", "other"].map(|key| cache.path(key).unwrap());
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::create_dir(&other).unwrap();
    fs::create_dir(pipe.with_file_name("1-0-0.unfinished")).unwrap();
    assert_eq!((cache.load("pipe"), cache.load("other")), (None, None));
    assert_eq!(keys(&cache), ["key"]);
    cache.store("other", b"binary");
    assert!(cache.trouble().is_some() && other.is_dir());
    assert_eq!(cache.clear().unwrap(), 1);
    assert!(pipe.exists() && other.exists());
}

fn bounded(folder: &Path, max_bytes: u64) -> ProgramCache {
    ProgramCache { max_bytes, ..ProgramCache::new(Some(folder.to_path_buf())) }
}

fn keys(cache: &ProgramCache) -> Vec<String> {
    let mut keys: Vec<_> = cache.entries().into_iter().map(|entry| entry.key.unwrap_or_default()).collect();
    keys.sort();
    keys
}

/// Sets the time at which a file was last used to `hour` hours after the beginning of 1970.
fn used_in_hour(path: &Path, hour: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(3600 * hour);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn beyond_the_bound_what_was_not_used_for_longest_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let three = bounded(folder.path(), 3 * 200);
    // each entry has 200 bytes, including its magic number, checksum, length and key
    let binary = [1; 200 - MAGIC.len() - HASH - 8 - 1];
    let fill = || {
        for (hour, key) in (2..).zip(["a", "b", "c"]) {
            three.store(key, &binary);
            used_in_hour(&three.path(key).unwrap(), hour);
        }
    };
    fill();
    assert_eq!((keys(&three).len(), three.entries()[0].bytes), (3, 200));
    assert!(three.load("a").is_some());
    three.store("d", &binary);
    assert_eq!(keys(&three), ["a", "c", "d"], "the first is used again, the second goes");

    // an unfinished file of a killed process counts as a file of the cache and is deleted; the cache neither counts nor deletes
    // the file of another program
    three.clear().unwrap();
    let [left, foreign] = [folder.path().join("1-0-0.unfinished"), folder.path().join("notes.program")];
    for path in [&left, &foreign] {
        fs::write(path, [0; 200]).unwrap();
        used_in_hour(path, 1);
    }
    fill();
    assert_eq!((keys(&three), left.exists(), foreign.exists()), (["a", "b", "c"].map(String::from).to_vec(), false, true));
}

#[test]
fn what_was_just_stored_stays_though_it_is_larger_than_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let small = bounded(folder.path(), 500);
    small.store("small", &[1; 50]);
    small.store("large", &[2; 5000]);
    assert_eq!(keys(&small), ["large"]);
    assert_eq!(small.load("large").unwrap(), [2; 5000]);
    small.store("small", &[1; 50]);
    assert_eq!(keys(&small), ["small"]);
}

/// A binary that repeats the text `key/writer/round`, so that `check_whole` finds any part of another binary in it.
fn tagged(key: &str, writer: usize, round: usize) -> Vec<u8> {
    format!("{key}/{writer}/{round}\n").repeat(1 + (911 * writer + 577 * round) % 4001).into_bytes()
}

fn check_whole(key: &str, binary: &[u8]) {
    let text = std::str::from_utf8(binary).unwrap();
    let tag: Vec<&str> = text.lines().next().unwrap().split('/').collect();
    assert_eq!((tag.len(), tag[0]), (3, key));
    assert!(binary == tagged(key, tag[1].parse().unwrap(), tag[2].parse().unwrap()), "a binary of {} is torn", tag.join("/"));
}

const SHARED: [&str; 2] = ["shared", "shared too"];
const ROUNDS: usize = 30;

fn own_key(writer: usize) -> String {
    format!("of {writer}")
}

/// Runs two writers and two readers, each with a cache object of its own.
fn stress_cache(folder: &Path, process: usize, max_bytes: u64) {
    let all_fits = max_bytes == MAX_BYTES;
    let load = |cache: &ProgramCache, key: &str| match cache.load(key) {
        Some(binary) => check_whole(key, &binary),
        None => assert!(!all_fits, "an entry is not found while it is replaced"),
    };
    let write = |writer: usize| {
        let (cache, own) = (bounded(folder, max_bytes), own_key(writer));
        for round in 0..ROUNDS {
            for key in [SHARED[round % 2], &own] {
                cache.store(key, &tagged(key, writer, round));
                load(&cache, key);
            }
            let latest = cache.load(&own).is_some_and(|latest| latest == tagged(&own, writer, round));
            assert!(latest || !all_fits, "no one else writes this key");
        }
        assert_eq!(cache.counts().rejected, 0);
    };
    let read = || {
        let cache = bounded(folder, max_bytes);
        (0..4 * ROUNDS).for_each(|round| load(&cache, SHARED[round % 2]));
        assert_eq!(cache.counts().rejected, 0);
    };
    thread::scope(|scope| {
        for writer in [2 * process, 2 * process + 1] {
            scope.spawn(move || write(writer));
            scope.spawn(read);
        }
    });
}

/// The paths of all files in the folder that are no entries.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    paths.filter(|path| path.extension().is_none_or(|extension| extension != EXTENSION)).collect()
}

/// Runs one test of this test program in a new process.
fn start(test: &str, folder: &Path, process: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("program_cache::tests::{test}");
    command.args(["--exact", &name]).env(STORM, process.to_string()).env(STORM_FOLDER, folder).spawn().unwrap()
}

/// Environment variables for the processes that the test starts: the number of the process, and the folder that all these
/// processes share.
const STORM: &str = "LAPIDARY_TEST_STORM";
const STORM_FOLDER: &str = "LAPIDARY_TEST_STORM_FOLDER";

#[test]
fn threads_and_processes_that_share_a_folder_see_whole_binaries() {
    if let (Some(process), Some(folder)) = (std::env::var_os(STORM), std::env::var_os(STORM_FOLDER)) {
        return stress_cache(Path::new(&folder), process.to_str().unwrap().parse().unwrap(), MAX_BYTES);
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = ProgramCache::new(Some(folder.path().to_path_buf()));
    SHARED.iter().for_each(|key| cache.store(key, &tagged(key, 0, 0)));
    let others =
        [1, 2].map(|process| start("threads_and_processes_that_share_a_folder_see_whole_binaries", folder.path(), process));
    stress_cache(folder.path(), 0, MAX_BYTES);
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
    // all writing threads of all processes have stored their entries
    let expected: Vec<String> = (0..6).map(own_key).chain(SHARED.map(String::from)).collect();
    assert_eq!((keys(&cache), leftovers(folder.path())), (expected, Vec::new()));
    (0..6).for_each(|writer| assert_eq!(cache.load(&own_key(writer)).unwrap(), tagged(&own_key(writer), writer, ROUNDS - 1)));
}

#[test]
fn entries_that_go_while_others_read_and_write_are_missed_and_never_torn() {
    let folder = tempfile::tempdir().unwrap();
    let max_bytes = 60_000;
    stress_cache(folder.path(), 0, max_bytes);
    bounded(folder.path(), max_bytes).store("last", b"binary");
    let cache = bounded(folder.path(), max_bytes);
    assert!(cache.entries().iter().map(|entry| entry.bytes).sum::<u64>() <= max_bytes);
    assert_eq!((cache.load("last").unwrap(), leftovers(folder.path())), (b"binary".to_vec(), Vec::new()));
}
