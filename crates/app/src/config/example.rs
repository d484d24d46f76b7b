//! The example file, made from the settings themselves.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{
    Checks, Config, Database, Flaky, GitHub, Host, Log, Oidc, Organization, Pages, Retention,
    Server, Telemetry, Uploads, Webhooks,
};

/// A file with every setting and its default.
pub fn example() -> String {
    let config = Config {
        data_dir: Some(PathBuf::from("signalbox-data")),
        database: Database { url: Some("sqlite://signalbox-data/signalbox.db".into()) },
        server: Server {
            public_url: Some("http://127.0.0.1:8080".into()),
            metrics_listen: Some(SocketAddr::from(([127, 0, 0, 1], 9464))),
            ..Server::default()
        },
        log: Log::default(),
        telemetry: Telemetry {
            otlp_endpoint: Some("http://127.0.0.1:4318".into()),
            ..Telemetry::default()
        },
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
        organizations: vec![Organization {
            slug: "acme".into(),
            hosts: vec![
                Host::Git {
                    host: "git.local".into(),
                    root: Some(PathBuf::from("/srv/git")),
                    checks: Checks::default(),
                },
                Host::GitHub(GitHub {
                    host: "github.com".into(),
                    api_url: Some("https://api.github.com".into()),
                    app_id: Some(12_345),
                    private_key_file: Some(PathBuf::from("/etc/signalbox/github-app.pem")),
                    token_file: None,
                    webhook_secret_file: Some(PathBuf::from("/etc/signalbox/github-webhook")),
                    reread_seconds: Some(600),
                    command_prefix: Some("/signalbox".into()),
                }),
            ],
        }],
    };
    let text = toml::to_string_pretty(&config).unwrap_or_default();
    format!("# Every setting of Signalbox. Generated: do not edit.\n\n{text}")
}
