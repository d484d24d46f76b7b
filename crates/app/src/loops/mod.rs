//! Background work: effects, deadlines, hosts that do not tell, stray branches.

mod backoff;
mod effects;
mod failing;
mod periodic;
mod retention;
mod server;
mod supervise;
mod uploads;
mod webhooks;

pub(crate) use server::Loops;
