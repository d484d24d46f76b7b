//! Flaky tests: settings, tests, results and what is counted of them.

mod commit;
mod draft;
mod incidents;
mod intake_rows;
mod lists;
mod numbers;
mod packed;
mod prune;
mod reads;
mod records;
mod rows;
mod store;
mod summaries;
mod trend;
