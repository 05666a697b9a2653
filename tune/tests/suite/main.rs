//! Tests of the public interface of `lapidary-tune`.

mod journal;
mod replays;
mod search;
mod strategies;
mod surfaces;
