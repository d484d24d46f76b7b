#![doc = include_str!("../README.md")]

mod client;
mod error;

pub use client::{Client, Receipt, Upload};
pub use error::ClientError;
pub use reqwest::StatusCode;
