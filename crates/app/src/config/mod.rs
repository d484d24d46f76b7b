//! Configuration: defaults, then a TOML file, then the environment, then flags.

mod check;
mod environment;
mod example;
mod load;
mod oidc;
mod secret;
mod settings;
mod uploads;
mod webhooks;

pub use example::example;
pub(crate) use load::Flags;
pub(crate) use secret::{has_password, without_password};
pub use settings::Config;
pub(crate) use settings::{
    Checks, Database, Flaky, GitHub, Host, Log, LogFormat, Oidc, Organization, Pages, Retention,
    Server, Telemetry, Webhooks,
};
pub(crate) use uploads::{UploadPlace, Uploads};
