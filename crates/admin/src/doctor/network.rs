//! Checks the network: the listen addresses and the public address.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use signalbox_config::Config;

use super::Finding;

const PATIENCE: Duration = Duration::from_secs(3);

pub(super) async fn listeners(config: &Config) -> Vec<Finding> {
    let mut found = vec![listener("listener", config.server.listen, "healthz").await];
    let name = "metrics_listener";
    found.push(match config.server.metrics_listen {
        Some(address) => {
            let finding = listener(name, address, "metrics").await;
            if finding.verdict == super::Verdict::Good && !address.ip().is_loopback() {
                let words = format!("{address} requires no token: keep it private");
                Finding::warning(name, words)
            } else {
                finding
            }
        }
        None => Finding::good(name, "metrics are off"),
    });
    found
}

/// Checks that an address is free, or used by a Signalbox server.
async fn listener(name: &'static str, address: SocketAddr, path: &str) -> Finding {
    let Err(error) = TcpListener::bind(address) else {
        return Finding::good(name, format!("{address} is free"));
    };
    if error.kind() != std::io::ErrorKind::AddrInUse {
        return Finding::bad(name, format!("cannot listen on {address}: {error}"));
    }
    if is_ours(address, path).await {
        return Finding::good(name, format!("a Signalbox server listens on {address}"));
    }
    Finding::bad(name, format!("another program listens on {address}"))
}

async fn is_ours(address: SocketAddr, path: &str) -> bool {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let Ok(client) = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build() else {
        return false;
    };
    let Ok(reply) = client.get(format!("http://{address}/{path}")).send().await else {
        return false;
    };
    let text = reply.text().await.unwrap_or_default();
    text == "ok\n" || text.contains("signalbox_build_info")
}

pub(super) fn public_url(config: &Config) -> Finding {
    let (name, url) = ("public_url", config.public_url());
    let local = config.server.listen.ip().is_loopback();
    match &config.server.public_url {
        None if local => {
            Finding::good(name, format!("links point to {url}, which is this machine only"))
        }
        None => Finding::warning(
            name,
            format!(
                "server.public_url is not set: links point to {url}, which users may not reach, \
                 and which is not encrypted: tokens are sent in plain text"
            ),
        ),
        Some(_) if config.is_plain() => {
            Finding::warning(name, format!("{url} is not encrypted: tokens are sent in plain text"))
        }
        Some(_) => Finding::good(name, url),
    }
}

/// Checks that clients have addresses of their own: the server does not speak https itself, so with
/// such an address there is a proxy.
pub(super) fn proxies(config: &Config) -> Finding {
    let name = "trusted_proxies";
    if config.public_url().starts_with("https://") && config.server.trusted_proxies.is_empty() {
        let words = "server.trusted_proxies is not set: all clients behind the proxy share one \
                     address, and 60 invalid tokens in a minute block sign-in for all of them";
        return Finding::warning(name, words);
    }
    Finding::good(name, "clients have addresses of their own")
}

/// Checks that replies tell browsers to use https only, if users reach the server by https. The server
/// sends the header itself; a proxy may remove it.
pub(super) async fn hsts(config: &Config) -> Option<Finding> {
    let (name, url) = ("hsts", config.public_url());
    if !url.starts_with("https://") {
        return None;
    }
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().timeout(PATIENCE).build().ok()?;
    let reply = client.get(format!("{url}/healthz")).send().await;
    Some(of_headers(name, &url, reply.as_ref().ok().map(reqwest::Response::headers)))
}

fn of_headers(
    name: &'static str,
    url: &str,
    headers: Option<&reqwest::header::HeaderMap>,
) -> Finding {
    let Some(headers) = headers else {
        return Finding::good(name, format!("not checked: {url} is not reachable from here"));
    };
    if headers.contains_key("strict-transport-security") {
        return Finding::good(name, format!("{url} is for https only"));
    }
    let words = format!("{url} lacks strict-transport-security: do not remove it in the proxy");
    Finding::warning(name, words)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[tokio::test]
    async fn a_port_is_free_ours_or_taken_by_a_stranger() {
        let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = stranger.local_addr().expect("its address");
        // It accepts connections, but is not a Signalbox server.
        let answering = std::thread::spawn(move || {
            use std::io::Write;
            let (mut connection, _) = stranger.accept().expect("a call");
            connection
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
                .expect("written");
        });
        assert_eq!(listener("listener", address, "healthz").await.verdict, Verdict::Bad);
        answering.join().expect("it has answered");
        assert_eq!(listener("listener", address, "healthz").await.verdict, Verdict::Good);
    }

    #[test]
    fn a_proxy_that_is_not_trusted_is_a_warning() {
        let mut config = Config::default();
        assert_eq!(proxies(&config).verdict, Verdict::Good);
        config.server.public_url = Some("https://ci.example".into());
        assert_eq!(proxies(&config).verdict, Verdict::Warning);
        config.server.trusted_proxies = vec!["127.0.0.1/32".into()];
        assert_eq!(proxies(&config).verdict, Verdict::Good);
    }

    #[test]
    fn a_missing_header_for_https_is_a_warning() {
        let mut headers = reqwest::header::HeaderMap::new();
        let check = |headers: Option<&reqwest::header::HeaderMap>| {
            of_headers("hsts", "https://ci.example", headers).verdict
        };
        assert_eq!((check(None), check(Some(&headers))), (Verdict::Good, Verdict::Warning));
        let value = reqwest::header::HeaderValue::from_static("max-age=31536000");
        headers.insert("strict-transport-security", value);
        assert_eq!(check(Some(&headers)), Verdict::Good);
    }

    #[test]
    fn a_public_address_is_missed_only_where_others_could_come_from() {
        let check = |listen: &str, url: Option<&str>| {
            let mut config = Config::default();
            config.server.listen = listen.parse().expect("an address");
            config.server.public_url = url.map(ToOwned::to_owned);
            public_url(&config).verdict
        };
        assert_eq!(check("127.0.0.1:8080", None), Verdict::Good);
        assert_eq!(check("0.0.0.0:8080", None), Verdict::Warning);
        assert_eq!(check("0.0.0.0:8080", Some("http://ci.example")), Verdict::Warning);
        assert_eq!(check("127.0.0.1:8080", Some("http://ci.example")), Verdict::Warning);
        assert_eq!(check("127.0.0.1:8080", Some("http://localhost:8080")), Verdict::Good);
        assert_eq!(check("0.0.0.0:8080", Some("https://ci.example")), Verdict::Good);
    }
}
