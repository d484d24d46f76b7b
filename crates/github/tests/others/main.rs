//! What others have written about the host: client libraries that use our double, an emulator that
//! our adapter uses, and real traffic that was recorded. `tests/github/fetch` brings it; a test
//! that misses its part says that it is skipped.
#![expect(clippy::disallowed_methods, reason = "tests make ids and clocks of their own")]

mod clients;
mod emulator;
mod recorded;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use signalbox_domain::ids::{OrgId, RepoId, RepoName};
use signalbox_domain::ports::Repository;
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_github::{Credentials, GitHubConfig, GitHubHost, Verify};
use uuid::Uuid;

/// A script beside the one that fetches.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/github").join(name)
}

/// An adapter of that host, with the current time.
fn adapter(api_url: &str, credentials: Credentials) -> Arc<GitHubHost> {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = i64::try_from(since.expect("after 1970").as_secs()).expect("small");
    let config = GitHubConfig {
        host: "github.com".into(),
        api_url: api_url.into(),
        credentials,
        credentials_file: None,
        webhook_secrets: vec!["secret".into()],
        reread_after: Span::minutes(10),
        command_prefix: "/signalbox".into(),
        public_url: "https://queue.example".into(),
        verify: Verify::Diff,
        pace_writes: false,
    };
    let clock = Arc::new(ManualClock::at(Timestamp::from_unix_seconds(seconds)));
    Arc::new(GitHubHost::new(config, clock).expect("a host"))
}

/// A repository of that name.
fn repository(owner: &str, name: &str) -> Repository {
    Repository {
        id: RepoId(Uuid::new_v4()),
        org: OrgId(Uuid::new_v4()),
        name: RepoName::new("github.com", owner, name).expect("a name"),
        path: None,
        created_at: Timestamp::from_unix_seconds(0),
    }
}
