//! Whole-system tests; see `tests/it`.
