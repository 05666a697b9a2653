//! Compares the public API of the library `lapidary` with the accepted snapshot in the repository.
//!
//! The API consists of the items of the crate `lapidary` and of the items of `lapidary-core` that `lapidary` re-exports. The items of
//! the module `planning` and of the backends are not part of it, since programs that use them follow the internals of Lapidary.

use std::collections::BTreeSet;

use public_api::Builder;

use crate::Result;
use crate::workspace::Workspace;

/// The accepted snapshot, relative to the root of the repository.
const SNAPSHOT: &str = "lapidary/public-api.txt";

/// The version of rustdoc's JSON format that the dependency `public-api` reads. A compiler that writes another version needs another
/// version of `public-api`.
const FORMAT: u64 = 57;

/// Fails if the public API differs from the snapshot.
pub fn check(ws: &Workspace) -> Result<String> {
    let api = match list(ws)? {
        Ok(api) => api,
        Err(missing) => return Ok(format!("not run: {missing}")),
    };
    let changes = changes(&ws.read(SNAPSHOT)?, &api);
    if changes.is_empty() {
        return Ok(format!("{} items", api.lines().count()));
    }
    Err(format!(
        "the public API of lapidary is not that of {SNAPSHOT}:\n{changes}\
         If the change is meant, run `cargo xtask api`, commit {SNAPSHOT}, and describe the change in CHANGELOG.md."
    ))
}

/// Writes the snapshot.
pub fn accept(ws: &Workspace) -> Result<()> {
    let api = list(ws)?.map_err(|missing| format!("not written: {missing}"))?;
    let path = ws.root.join(SNAPSHOT);
    std::fs::write(&path, api).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the sorted items of the public API, one a line. The inner `Err` says why this compiler cannot list them.
fn list(ws: &Workspace) -> Result<Result<String>> {
    if cfg!(windows) {
        return Ok(Err("the script that runs rustdoc needs a shell".into()));
    }
    let (facade, core) = match (items(ws, "lapidary")?, items(ws, "lapidary-core")?) {
        (Ok(facade), Ok(core)) => (facade, core),
        (Err(missing), _) | (_, Err(missing)) => return Ok(Err(missing)),
    };
    let exported: BTreeSet<&str> = facade.iter().filter_map(|item| re_exported(item)).collect();
    let of_core = core.iter().filter(|item| subject(item, "lapidary_core").is_some_and(|name| exported.contains(name)));
    let own = facade.iter().filter(|item| !item.contains("lapidary::planning"));
    let all: BTreeSet<&String> = own.chain(of_core).collect();
    Ok(Ok(all.into_iter().map(|item| format!("{item}\n")).collect()))
}

/// Returns the public items that rustdoc lists for a package with all features.
fn items(ws: &Workspace, package: &str) -> Result<Result<Vec<String>>> {
    let args = ["rustdoc", "--quiet", "--package", package, "--lib", "--all-features"];
    let json = ["--", "-Zunstable-options", "--output-format", "json", "--cap-lints", "allow"];
    ws.cargo(&[&args[..], &json].concat()).env("RUSTDOC", unstable_rustdoc(ws)?).run()?;
    let file = ws.target("doc").join(package.replace('-', "_")).with_extension("json");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let version = format_version(&text)?;
    if version != FORMAT {
        return Ok(Err(format!("this rustdoc writes JSON of version {version}, `public-api` reads version {FORMAT}")));
    }
    let builder = Builder::from_rustdoc_json(&file);
    let builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true).omit_auto_derived_impls(true);
    let api = builder.build().map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Ok(api.items().map(|item| without_modules(&item.to_string(), "lapidary_core::")).collect()))
}

/// Writes a script that runs rustdoc with unstable options, and returns its path. Only the script sets `RUSTC_BOOTSTRAP`: if cargo saw this
/// variable, it would build every crate again.
fn unstable_rustdoc(ws: &Workspace) -> Result<std::path::PathBuf> {
    let path = ws.target("unstable-rustdoc");
    let script = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";
    std::fs::write(&path, script).map_err(|error| format!("{}: {error}", path.display()))?;
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Removes the modules from the paths of types of a crate, whose paths begin with `prefix`. The modules of the core are no part of the
/// API of the facade, and `public-api` lists the methods of some types only by their path in a module.
fn without_modules(item: &str, prefix: &str) -> String {
    let mut parts = item.split(prefix);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_module = |c: char| c.is_lowercase() || c.is_ascii_digit() || c == '_' || c == ':';
        let of_type = part.trim_start_matches(is_module);
        let has_type = of_type.starts_with(char::is_uppercase) && part[..part.len() - of_type.len()].ends_with("::");
        text = text + prefix + if has_type { of_type } else { part };
    }
    text
}

fn format_version(json: &str) -> Result<u64> {
    let value: serde_json::Value = serde_json::from_str(json).map_err(|error| format!("rustdoc's JSON: {error}"))?;
    value["format_version"].as_u64().ok_or_else(|| "rustdoc's JSON has no format_version".into())
}

/// Returns the name that the facade re-exports with this item, at the root or in its module `backend`.
fn re_exported(item: &str) -> Option<&str> {
    let path = item.strip_prefix("pub use lapidary::")?;
    Some(path.strip_prefix("backend::").unwrap_or(path)).filter(|name| !name.contains("::"))
}

/// Returns the name of the item at the root of the crate that an item describes or belongs to: `Gemm` for the struct, its fields and
/// its methods. The subject of an `impl` is the last type that it names.
fn subject<'a>(item: &'a str, krate: &str) -> Option<&'a str> {
    let prefix = format!("{krate}::");
    let name = |path: &'a str| &path[..path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len())];
    if item.starts_with("impl") || item.starts_with("unsafe impl") {
        let path = &item[item.rfind(&prefix)?..];
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(path.len());
        return path[..end].rsplit("::").next();
    }
    Some(name(&item[item.find(&prefix)? + prefix.len()..]))
}

/// Returns the lines that one text has and the other lacks.
fn changes(accepted: &str, found: &str) -> String {
    let [old, new] = [accepted, found].map(|text| text.lines().collect::<BTreeSet<_>>());
    let removed = old.difference(&new).map(|line| format!("- {line}\n"));
    removed.chain(new.difference(&old).map(|line| format!("+ {line}\n"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_the_core_belong_to_a_name_at_its_root() {
        let of = |item| subject(item, "lapidary_core");
        assert_eq!(of("pub fn lapidary_core::Gemm<'a, T>::alpha(self, T) -> Self"), Some("Gemm"));
        assert_eq!(of("pub lapidary_core::Gemm::a: lapidary_core::matrix::MatRef<'a, T>"), Some("Gemm"));
        assert_eq!(of("pub fn lapidary_core::flops::gemm(usize) -> f64"), Some("flops"));
        assert_eq!(of("impl<T: lapidary_core::Scalar> lapidary_core::Gemm<'_, T>"), Some("Gemm"));
        assert_eq!(of("impl core::fmt::Display for lapidary_core::Error"), Some("Error"));
        assert_eq!(of("impl core::fmt::Display for str"), None);
    }

    #[test]
    fn paths_of_types_lose_their_modules() {
        let short = |item| without_modules(item, "lapidary_core::");
        assert_eq!(
            short("pub fn lapidary_core::args::Gemm<'a, T>::new(lapidary_core::matrix::a_b2::MatRef<'a, T>) -> Self"),
            "pub fn lapidary_core::Gemm<'a, T>::new(lapidary_core::MatRef<'a, T>) -> Self"
        );
        let same = "pub fn lapidary_core::flops::gemm(lapidary_core::Info, core::fmt::Formatter) -> f64";
        assert_eq!(short(same), same);
    }

    #[test]
    fn the_facade_re_exports_names_of_its_root_and_of_backend() {
        assert_eq!(re_exported("pub use lapidary::Gemm"), Some("Gemm"));
        assert_eq!(re_exported("pub use lapidary::backend::Device"), Some("Device"));
        assert_eq!(re_exported("pub use lapidary::planning::Plan"), None);
        assert_eq!(re_exported("pub struct lapidary::Machine(_)"), None);
    }

    #[test]
    fn changes_are_listed_line_by_line() {
        assert_eq!(changes("a\nb\n", "b\nc\n"), "- a\n+ c\n");
        assert_eq!(changes("a\nb\n", "b\na\n"), "");
    }
}
