//! `lapidary cache`: lists or removes the compiled programs and the measured speeds on disk.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Subcommand;
use lapidary::{CacheEntry, Settings};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::io::atomic;
use crate::report::{counted, note, out, save_json};

/// Options of `lapidary cache`.
#[derive(clap::Args, Debug)]
#[command(after_help = "The cache folder is $LAPIDARY_CACHE_DIR, else the user's cache folder. Example: lapidary cache list")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the compiled programs and the records of measured speeds, the most recently used first
    List {
        /// Write the list as JSON to FILE, or to standard output if no FILE is given
        #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
        json: Option<PathBuf>,
    },
    /// Remove all compiled programs and all records of measured speeds
    Clear,
}

/// Lists or removes the entries of the cache.
pub fn run(args: &Args) -> Result<()> {
    let cache = Settings::from_env()?.program_cache();
    cache
        .check()
        .map_err(|error| Failure::check(format!("the cache cannot be read: {error}; set LAPIDARY_CACHE_DIR to another folder")))?;
    match &args.action {
        Action::Clear => {
            let removed = cache.clear().map_err(|error| Failure::check(format!("the cache cannot be cleared: {error}")))?;
            out(&format!("{} removed", counted(removed, "file")));
            Ok(())
        }
        Action::List { json: Some(path) } => {
            atomic::check_folder(path)?;
            save_json(path, &json!({ "programs": cache.entries().iter().map(describe).collect::<Vec<_>>() }))
        }
        Action::List { json: None } => {
            let entries = cache.entries();
            if entries.is_empty() {
                note(
                    "note: no compiled programs or measured speeds are kept yet; set LAPIDARY_CACHE_DIR to look in another folder",
                );
            }
            entries.iter().for_each(|entry| out(&line(entry)));
            Ok(())
        }
    }
}

/// An entry of the cache as JSON. Bytes of the path that are not valid UTF-8 become replacement characters.
fn describe(entry: &CacheEntry) -> Value {
    json!({ "path": entry.path.to_string_lossy(), "bytes": entry.bytes, "key": entry.key })
}

/// An entry of the cache as a line of text.
fn line(entry: &CacheEntry) -> String {
    // The key of a compiled program begins with the name of its source file and has one line for the device. The key of a record of
    // measured speeds has one line for each device.
    let key = entry.key.as_deref().unwrap_or("damaged, not of Lapidary, or of another user");
    let device = key.lines().find_map(|line| line.strip_prefix("device "));
    let priced = key.lines().filter_map(|line| line.split_once(" architecture=").map(|(device, _)| device));
    let device = device.map_or_else(|| priced.collect::<Vec<_>>().join(" + "), str::to_owned);
    let hours = SystemTime::now().duration_since(entry.used).unwrap_or_default().as_secs() / 3600;
    format!("{:>9} bytes  {hours:>5} h ago  {}  {device}", entry.bytes, key.lines().next().unwrap_or_default())
}
