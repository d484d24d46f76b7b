//! Background work. The agenda wakes what is due; periodic jobs are in one table, `jobs.rs`.

mod agenda;
mod backoff;
mod effects;
mod failing;
mod jobs;
mod periodic;
mod retention;
mod scheduler;
mod server;
mod supervise;
mod uploads;
mod webhooks;
mod woken;

pub(crate) use server::Loops;
