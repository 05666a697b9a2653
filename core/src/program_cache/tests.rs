//! Entries stored, loaded, damaged and let go.

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
    blocked.store("key", b"binary");
    assert_eq!(blocked.load("key"), None);
}
