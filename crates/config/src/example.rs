//! The example file, generated from the settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use signalbox_hosts::Kinds;
use signalbox_sandbox::SandboxSettings;

use crate::{
    Ci, Config, Database, Flaky, Host, Log, Oidc, Organization, Pages, Retention, Server,
    Telemetry, Uploads, Webhooks,
};

/// A file with every setting and its default, and a host of each kind.
pub fn example(kinds: Kinds) -> String {
    let config = Config {
        data_dir: Some(PathBuf::from("signalbox-data")),
        database: Database { url: Some("sqlite://signalbox-data/signalbox.db".into()) },
        server: Server {
            public_url: Some("http://127.0.0.1:8080".into()),
            metrics_listen: Some(SocketAddr::from(([127, 0, 0, 1], 9464))),
            trusted_proxies: vec!["127.0.0.1/32".into()],
            security_contact: Some("mailto:security@example.org".into()),
            ..Server::default()
        },
        log: Log::default(),
        telemetry: Telemetry {
            otlp_endpoint: Some("http://127.0.0.1:4318".into()),
            ..Telemetry::default()
        },
        sandbox: SandboxSettings::default(),
        retention: Retention::default(),
        flaky: Flaky {
            ticket_url: Some("https://tickets.example/browse/{id}".into()),
            ..Flaky::default()
        },
        uploads: Uploads {
            store: Some("s3://ci-uploads/signalbox".into()),
            endpoint: Some("https://s3.example.org".into()),
            region: Some("us-east-1".into()),
            credentials_file: Some(PathBuf::from("/etc/signalbox/s3")),
        },
        pages: Pages::default(),
        webhooks: Webhooks {
            key_file: Some(PathBuf::from("signalbox-data/webhooks.key")),
            ..Webhooks::default()
        },
        oidc: Some(Oidc {
            issuer: "https://id.example.org".into(),
            client_id: "signalbox".into(),
            client_secret_file: PathBuf::from("/etc/signalbox/oidc-secret"),
            organization: "acme".into(),
            label: "single sign-on".into(),
            scopes: vec!["profile".into(), "email".into()],
            groups_claim: "groups".into(),
            allowed_domains: vec!["example.org".into()],
            allowed_groups: vec!["engineering".into()],
            admin_groups: vec!["release".into()],
            submitter_groups: vec!["engineering".into()],
        }),
        ci: vec![Ci {
            kind: "github-actions".into(),
            issuer: Some("https://token.actions.githubusercontent.com".into()),
            audience: Some("https://signalbox.example.org".into()),
            organization: "acme".into(),
            host: "github.com".into(),
            repositories: vec!["acme".into()],
        }],
        organizations: vec![Organization {
            slug: "acme".into(),
            hosts: kinds.examples().into_iter().map(Host).collect(),
        }],
    };
    let text = toml::to_string_pretty(&config).unwrap_or_default();
    format!("# Every setting of Signalbox. Generated: do not edit.\n\n{text}")
}
