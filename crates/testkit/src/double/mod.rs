//! What doubles of git hosts share: a server on a port of its own, faults that a test plans, a log of
//! requests, and a bare repository. The double of a host adds `Routes` and its own state.

mod faults;
mod git;
mod server;

pub use faults::Fault;
pub use server::Logged;

pub(crate) use git::Git;
pub(crate) use server::{Answer, Port, Request, Routes, Server};
