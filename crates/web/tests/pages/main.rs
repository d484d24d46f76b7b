//! Pages on stores in memory: what is shown to whom, and what forms do.

mod settings;
mod support;
mod tokens;
mod webhooks;
