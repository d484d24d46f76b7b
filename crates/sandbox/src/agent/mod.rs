//! Checks run by another user: the agent, a process of that user which accepts jobs on a socket, and
//! the sandbox of a server that gives it its jobs.
//!
//! One connection is one job, and its lease: when the server is gone, the agent ends the job; when
//! the agent is gone, the server runs the job again. The kernel tells both sides the user of the
//! other. A job brings its checkout with it, so that the agent reads nothing of the server.

mod client;
mod server;
mod wire;

pub use client::AgentSandbox;
pub use server::Agent;

/// Where an agent listens.
pub const AGENT_SOCKET: &str = "/run/signalbox-agent/agent.sock";
