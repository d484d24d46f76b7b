#![doc = include_str!("../README.md")]

mod check;
mod ci;
mod environment;
mod error;
mod example;
mod load;
mod oidc;
mod secret;
mod settings;
mod uploads;
mod webhooks;

pub use error::ConfigError;
pub use example::example;
pub use load::Flags;
pub use secret::{has_password, without_password};
pub use settings::{
    Ci, Config, Database, Flaky, Host, Log, LogFormat, Oidc, Organization, Pages, Retention,
    Server, Telemetry, Webhooks,
};
pub use uploads::{UploadPlace, Uploads};
