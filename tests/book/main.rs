//! What a stranger relies on in the documentation: every page can be reached, every link leads somewhere,
//! every command parses, every configuration is valid, and every path, metric and recipe exists.
//!
//! Each check is shown to fail on a text that breaks its rule.

mod asvs;
mod commands;
mod links;
mod names;
mod page;
mod release;
