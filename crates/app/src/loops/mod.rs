//! Background work. The agenda wakes what is due; periodic jobs are in one table, `jobs.rs`.

mod agenda;
mod effects;
mod failing;
mod jobs;
mod retention;
mod server;
mod uploads;
mod webhooks;

pub(crate) use server::Loops;
