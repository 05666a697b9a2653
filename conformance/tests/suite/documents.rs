//! `docs/conformance.md` must name, for each bound and each edge case of `docs/numerics.md`, the properties that test this bound or
//! edge case.

use crate::naive::Naive;
use lapidary_conformance::suite::{agreements, properties_in};

const PAGE: &str = include_str!("../../../docs/conformance.md");
const NUMERICS: &str = include_str!("../../../docs/numerics.md");

/// The rows of the table in `docs/conformance.md`: a bound or an edge case, and the properties that test it.
fn rows() -> Vec<(&'static str, Vec<&'static str>)> {
    let rows = PAGE.lines().skip_while(|line| !line.contains("checked by conformance/tests/suite/documents")).skip(3);
    let cells = rows.take_while(|row| row.starts_with('|')).map(|row| row.trim_matches('|').split_once('|').expect("two columns"));
    cells.map(|(what, properties)| (what.trim(), properties.split('`').skip(1).step_by(2).collect())).collect()
}

#[test]
fn every_bound_and_every_edge_case_is_tried_by_properties_that_there_are() {
    let bounds = (1..=11).chain([14, 15]).map(|number| format!("Bound {number}"));
    let edges = NUMERICS.lines().filter_map(|line| line.strip_prefix("- **")?.split_once(".**").map(|(edge, _)| edge.to_owned()));
    let asked: Vec<String> = bounds.chain(edges).collect();
    let told = rows();
    assert_eq!(told.iter().map(|row| row.0).collect::<Vec<_>>(), asked);
    let own = properties_in::<Naive, f64>().into_iter().map(|property| (property.routine, property.name));
    let of_two = agreements::<Naive, Naive, f64>().into_iter().map(|property| (property.routine, property.name));
    let known: Vec<String> = own.chain(of_two).map(|(routine, name)| format!("{routine}::{name}")).collect();
    for (what, properties) in told {
        assert!(!properties.is_empty(), "{what}");
        let stranger = properties.iter().find(|name| !known.iter().any(|known| known == *name));
        assert_eq!(stranger, None, "{what}");
    }
}
