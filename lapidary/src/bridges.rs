//! Views of other crates' matrices, without copying. Each crate is a feature.
