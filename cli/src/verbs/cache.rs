//! `lapidary cache`: the compiled programs on disk.

use std::time::SystemTime;

use clap::Subcommand;
use lapidary::Settings;
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::report::out;

/// Flags of the verb.
#[derive(clap::Args, Debug)]
#[command(after_help = "The folder is $LAPIDARY_CACHE_DIR, else the user's cache folder. Example: lapidary cache list")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the programs, the last used first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove every program
    Clear,
}

/// Lists or clears.
pub fn run(args: &Args) -> Result<()> {
    let cache = Settings::from_env()?.program_cache();
    cache.check().map_err(|error| Failure::check(format!("the cache cannot be read: {error}")))?;
    match args.action {
        Action::Clear => {
            let removed = cache.clear().map_err(|error| Failure::check(format!("the cache cannot be cleared: {error}")))?;
            out(&format!("{removed} programs removed"));
        }
        Action::List { json: true } => {
            let entries =
                cache.entries().into_iter().map(|entry| json!({ "path": entry.path, "bytes": entry.bytes, "key": entry.key }));
            out(&format!("{:#}", json!({ "programs": entries.collect::<Vec<_>>() })));
        }
        Action::List { json: false } => {
            for entry in cache.entries() {
                // the key is headed by the file of the source and holds a line for the device
                let key = entry.key.as_deref().unwrap_or("damaged");
                let device = key.lines().find_map(|line| line.strip_prefix("device ")).unwrap_or_default();
                let hours = SystemTime::now().duration_since(entry.used).unwrap_or_default().as_secs() / 3600;
                out(&format!("{:>9} bytes  {hours:>5} h ago  {}  {device}", entry.bytes, key.lines().next().unwrap_or_default()));
            }
        }
    }
    Ok(())
}
