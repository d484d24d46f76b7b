//! The common parts of doubles of git hosts: a server on a port of its own, planned faults, a log
//! of requests, and a bare repository. The double of a host adds its `Routes` and its state.

mod faults;
mod git;
mod server;

pub use faults::Fault;
pub use server::Logged;

pub(crate) use git::Git;
pub(crate) use server::{Answer, Port, RawAnswer, Request, Routes, Server};
