#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! | module | contents |
//! |---|---|
//! | [`memory`] | every store port in memory; passes the conformance suite of the stores |
//! | [`simulation`] | the services in a world that a seed determines, with injected faults |
//! | [`small_server`] | a repository whose checks can be made to fail, and a loop that runs effects |
//! | [`double`] | common parts of doubles of git hosts: a server, planned faults, a request log |
//! | [`github_double`] | a double of GitHub's REST API on a real bare repository |
//! | [`ci_double`] | a CI system that issues identity tokens to its jobs |
//! | [`description`] | replies and requests, checked against the description of the API |
//! | [`fuzz`] | mutations of a corpus for parsers |
//! | [`s3_double`] | a double of an S3 service with one bucket |
//! | [`postgres`] | a temporary PostgreSQL server |
//! | [`year`] | a generated year of a repository with ground truth, replayed through the judge of tests |
//! | [`fake_results`], [`fake_webhooks`] | fakes of single ports |
#![expect(
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    reason = "test support panics when something impossible happens"
)]

pub mod ci_double;
pub mod description;
pub mod double;
pub mod fake_results;
pub mod fake_webhooks;
pub mod fuzz;
pub mod github_double;
pub mod memory;
pub mod postgres;
pub mod s3_double;
pub mod simulation;
pub mod small_server;
pub mod year;
