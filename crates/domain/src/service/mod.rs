//! Use cases: load, decide, commit. The only async bodies of the crate.
