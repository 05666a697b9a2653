//! Files of device profiles, which `bench profile` writes and `plan --profile` reads.

use std::path::Path;

use lapidary::DType;
use lapidary::backend::Lookahead;
use lapidary::planning::{DeviceProfile, TimedKernel, TypeProfile};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Result};
use crate::report::number;

const DTYPES: [DType; 2] = [DType::F32, DType::F64];
const TRANSFERS: [&str; 2] = ["to_device", "to_host"];

/// Names of the sizes of a kernel in a file, with the indices of the sizes among m, n and k. The sizes m and k of a triangular solve
/// are its order, and the size k of a factorisation is not used.
fn sizes(kernel: TimedKernel) -> &'static [(&'static str, usize)] {
    match kernel {
        TimedKernel::Gemm => &[("m", 0), ("n", 1), ("k", 2)],
        TimedKernel::Trsm => &[("n", 0), ("nrhs", 1)],
        TimedKernel::Getrf => &[("m", 0), ("n", 1)],
        TimedKernel::Laswp => &[("m", 0), ("n", 1), ("pivots", 2)],
    }
}

/// Formats a profile as JSON, with one line for each measured time.
pub fn write(profile: &DeviceProfile) -> String {
    let transfer = |&(bytes, seconds): &(usize, f64)| json!({ "bytes": bytes, "seconds": number(seconds) });
    let mut document = json!({
        "name": profile.name, "description": profile.description, "memory": profile.memory, "max_buffer": profile.max_buffer,
        "queues": profile.queues, "host_memory": profile.host_memory, "slowdown": number(profile.slowdown), "sharers": profile.sharers,
        "latency_seconds": number(profile.latency), "memory_bandwidth": number(profile.bandwidth),
    });
    for (name, transfers) in TRANSFERS.into_iter().zip(&profile.transfers) {
        document[name] = transfers.iter().map(transfer).collect();
    }
    for (dtype, TypeProfile { lookahead, beside_panel, kernels, .. }) in &profile.types {
        let mut times = Map::new();
        let lookahead = lookahead.map(|Lookahead { min_order, min_nb }| json!({ "min_order": min_order, "min_nb": min_nb }));
        times.insert("lookahead".to_owned(), lookahead.into());
        times.insert("beside_panel".to_owned(), number(*beside_panel));
        for (&kernel, shapes) in kernels {
            let shape = |(shape, seconds): &([usize; 3], f64)| {
                let sizes = sizes(kernel).iter().map(|&(name, index)| (name.to_owned(), json!(shape[index])));
                Value::Object(sizes.chain([("seconds".to_owned(), number(*seconds))]).collect())
            };
            times.insert(kernel.name().to_owned(), shapes.iter().map(shape).collect());
        }
        document[dtype.to_string()] = Value::Object(times);
    }
    let mut text = String::new();
    format(&document, 0, &mut text);
    text + "\n"
}

/// Appends a value. The values of objects stand on lines of their own down to the depth 2, and so do the elements of arrays of objects.
fn format(value: &Value, depth: usize, text: &mut String) {
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(map) if depth < 2 => map.iter().map(|(key, value)| (format!("{}: ", json!(key)), value)).collect(),
        Value::Array(list) if list.iter().any(Value::is_object) => list.iter().map(|value| (String::new(), value)).collect(),
        _ => Vec::new(),
    };
    if entries.is_empty() {
        *text += &value.to_string();
        return;
    }
    let [open, close] = if value.is_object() { ["{", "}"] } else { ["[", "]"] };
    let indent = "  ".repeat(depth);
    *text += open;
    for (index, (key, value)) in entries.iter().enumerate() {
        *text += if index == 0 { "\n" } else { ",\n" };
        *text += &format!("{indent}  {key}");
        format(value, depth + 1, text);
    }
    *text += &format!("\n{indent}{close}");
}

/// Reads a profile from a file.
///
/// # Errors
/// The file cannot be read, or a field is missing or has a wrong value. The message names the file, the field and the value.
pub fn read(path: &Path) -> Result<DeviceProfile> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| Failure::file(path, format!("no JSON: {error}")))?;
    parse(&Field { name: String::new(), value: &document }).map_err(|message| Failure::file(path, message))
}

/// A value of a file with the name of its field, for messages.
struct Field<'a> {
    name: String,
    value: &'a Value,
}

type Parsed<T> = Result<T, String>;

impl<'a> Field<'a> {
    fn refusal(&self, need: &str) -> String {
        let name = if self.name.is_empty() { "the document" } else { &self.name };
        let text: String = self.value.to_string().chars().take(60).collect();
        format!("{name} is {text}: {need} is needed")
    }

    /// The field of an object, or `None` if the object has no such field or the field is null.
    fn find(&self, key: &str) -> Parsed<Option<Field<'a>>> {
        let object = self.value.as_object().ok_or_else(|| self.refusal("an object"))?;
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        Ok(object.get(key).filter(|value| !value.is_null()).map(|value| Field { name, value }))
    }

    fn get(&self, key: &str) -> Parsed<Field<'a>> {
        self.find(key)?.ok_or_else(|| {
            format!("{key} is missing{}", if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) })
        })
    }

    /// Refuses an object with a field that is not in `known`.
    fn check_keys(&self, known: &[&str]) -> Parsed<()> {
        let unknown = self.value.as_object().into_iter().flatten().find(|(key, _)| !known.contains(&key.as_str()));
        match unknown {
            Some((key, value)) => {
                Err(Field { name: key.clone(), value }.refusal(&format!("one of the fields {}", known.join(", "))))
            }
            None => Ok(()),
        }
    }

    fn list(&self) -> Parsed<Vec<Field<'a>>> {
        let list = self.value.as_array().ok_or_else(|| self.refusal("a list"))?;
        Ok(list.iter().enumerate().map(|(i, value)| Field { name: format!("{}[{i}]", self.name), value }).collect())
    }

    fn text(&self) -> Parsed<String> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.refusal("a text"))
    }

    fn flag(&self) -> Parsed<bool> {
        self.value.as_bool().ok_or_else(|| self.refusal("true or false"))
    }

    fn count(&self) -> Parsed<usize> {
        let count = self.value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
        count.ok_or_else(|| self.refusal("a positive whole number"))
    }

    fn not_negative(&self) -> Parsed<f64> {
        self.value.as_f64().filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(|| self.refusal("a number from 0 on"))
    }

    fn positive(&self) -> Parsed<f64> {
        self.value.as_f64().filter(|number| number.is_finite() && *number > 0.0).ok_or_else(|| self.refusal("a positive number"))
    }
}

fn parse(document: &Field<'_>) -> Parsed<DeviceProfile> {
    let count = |key: &str| document.find(key)?.map(|field| field.count()).transpose();
    let mut profile = DeviceProfile::default();
    profile.name = document.get("name")?.text()?;
    profile.description = document.get("description")?.text()?;
    profile.memory = count("memory")?;
    profile.max_buffer = count("max_buffer")?;
    profile.queues = document.get("queues")?.count()?;
    profile.host_memory = document.get("host_memory")?.flag()?;
    profile.slowdown = document.get("slowdown")?.not_negative()?;
    profile.sharers = document.get("sharers")?.list()?.iter().map(Field::text).collect::<Parsed<_>>()?;
    profile.latency = document.get("latency_seconds")?.positive()?;
    profile.bandwidth = document.get("memory_bandwidth")?.positive()?;
    for (transfers, name) in profile.transfers.iter_mut().zip(TRANSFERS) {
        let field = document.get(name)?;
        for transfer in field.list()? {
            transfers.push((transfer.get("bytes")?.count()?, transfer.get("seconds")?.positive()?));
        }
        let is_ascending = transfers.is_sorted_by(|a, b| a.0 < b.0);
        if !is_ascending || (transfers.is_empty() && !profile.host_memory) {
            return Err(field.refusal("a list with ascending bytes, which has an element unless host_memory is true,"));
        }
    }
    for dtype in DTYPES {
        if let Some(field) = document.find(&dtype.to_string())? {
            profile.types.insert(dtype, times(&field)?);
        }
    }
    let dtypes = DTYPES.map(|dtype| dtype.to_string());
    let keys = [
        "name",
        "description",
        "memory",
        "max_buffer",
        "queues",
        "host_memory",
        "slowdown",
        "sharers",
        "latency_seconds",
        "memory_bandwidth",
    ];
    document.check_keys(&keys.into_iter().chain(TRANSFERS).chain(dtypes.iter().map(String::as_str)).collect::<Vec<_>>())?;
    if profile.types.is_empty() { Err(format!("{} are missing: one of them is needed", dtypes.join(" and "))) } else { Ok(profile) }
}

/// Parses the times of kernels for one element type.
fn times(field: &Field<'_>) -> Parsed<TypeProfile> {
    let mut times = TypeProfile::default();
    if let Some(lookahead) = field.find("lookahead")? {
        let (min_order, min_nb) = (lookahead.get("min_order")?.count()?, lookahead.get("min_nb")?.count()?);
        times.lookahead = Some(Lookahead { min_order, min_nb });
    }
    times.beside_panel = field.get("beside_panel")?.not_negative()?;
    for kernel in TimedKernel::ALL {
        let list = field.get(kernel.name())?;
        let fields = list.list()?;
        let shapes = fields.iter().map(|shape| {
            // an unused size is 1
            let mut mnk = [1; 3];
            for &(name, index) in sizes(kernel) {
                mnk[index] = shape.get(name)?.count()?;
            }
            Ok((mnk, shape.get("seconds")?.positive()?))
        });
        let shapes = shapes.collect::<Parsed<Vec<_>>>()?;
        if shapes.is_empty() {
            return Err(list.refusal("a list of at least one shape"));
        }
        times.kernels.insert(kernel, shapes);
    }
    field.check_keys(&["lookahead", "beside_panel", "gemm", "trsm", "getrf", "laswp"])?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> DeviceProfile {
        let mut times = TypeProfile::default();
        times.lookahead = Some(Lookahead { min_order: 4096, min_nb: 512 });
        times.beside_panel = 0.25;
        times.kernels = TimedKernel::ALL.map(|kernel| (kernel, vec![([2, 3, 1], 1e-5), ([20, 30, 1], 1.0 / 3.0)])).into();
        let mut profile = DeviceProfile::default();
        (profile.name, profile.queues, profile.memory) = ("opencl:0".to_owned(), 2, Some(1 << 30));
        (profile.latency, profile.bandwidth) = (1e-6, 1e11);
        (profile.slowdown, profile.sharers) = (0.5, vec!["opencl:1".to_owned()]);
        profile.transfers = [vec![(4096, 1e-5), (8192, 2e-5)], vec![(4096, 1.5e-5)]];
        profile.types = [(DType::F64, times)].into();
        profile
    }

    fn parsed(text: &str) -> Parsed<DeviceProfile> {
        parse(&Field { name: String::new(), value: &serde_json::from_str(text).unwrap() })
    }

    #[test]
    fn a_profile_reads_as_it_was_written() {
        let text = write(&profile());
        assert_eq!(parsed(&text), Ok(profile()), "{text}");
        assert!(text.contains("\n      {\"m\":20,\"n\":30,\"k\":1,\"seconds\":0.3333333333333333}\n"), "{text}");
    }

    #[test]
    fn a_refusal_names_the_field_and_the_value() {
        let text = write(&profile());
        for (old, new, message) in [
            ("\"queues\": 2", "\"queues\": -2", "queues is -2: a positive whole number is needed"),
            ("\"queues\": 2,", "", "queues is missing"),
            ("\"queues\"", "\"queue\": 3, \"queues\"", "queue is 3: one of the fields name, "),
            ("\"seconds\":0.00001}", "\"seconds\":\"fast\"}", "to_device[0].seconds is \"fast\": a positive number is needed"),
            ("\"bytes\":8192", "\"bytes\":4096", "to_device is [{\"bytes\":4096,"),
            ("{\"n\":2,\"nrhs\":3", "{\"n\":0,\"nrhs\":3", "f64.trsm[0].n is 0: a positive whole number is needed"),
            ("\"min_nb\":512", "\"nb\":512", "min_nb is missing in f64.lookahead"),
            ("\"f64\"", "\"f16\"", "one of the fields"),
        ] {
            let text = if text.contains(old) { text.replacen(old, new, 1) } else { text.replacen("1e-5", "\"fast\"", 1) };
            let refusal = parsed(&text).unwrap_err();
            assert!(refusal.contains(message), "{refusal}, not {message}");
        }
    }
}
