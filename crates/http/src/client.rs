//! The address of a client, also behind proxies.

use std::net::{IpAddr, Ipv6Addr};

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{HeaderMap, HeaderValue};
use actix_web::{HttpMessage, HttpRequest};
use ipnet::IpNet;

const FORWARDED: &str = "x-forwarded-for";

/// The networks of proxies whose `x-forwarded-for` is used.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Proxies in these networks; none: the header is ignored.
    pub const fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    pub(crate) fn includes(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a connection: the last address in the header that is not a trusted proxy,
    /// because every entry before it may be invented.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        // As bytes: an entry that is no text must not hide the ones that a proxy has added to its line.
        let lines = headers.get_all(FORWARDED).map(HeaderValue::as_bytes);
        let mut entries: Vec<&[u8]> =
            lines.flat_map(|line| line.split(|byte| *byte == b',')).collect();
        let mut client = peer.to_canonical();
        while self.includes(client) {
            let Some(entry) = entries.pop() else { break };
            let Some(before) = address(entry) else { break };
            client = before.to_canonical();
        }
        client
    }
}

fn address(entry: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(entry).ok()?.trim().parse().ok()
}

/// The address of a request's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClientAddress(IpAddr);

/// Determines the address of a request's client and keeps it with the request.
pub(crate) fn note_client(request: &ServiceRequest, proxies: &TrustedProxies) {
    let peer = request.peer_addr().map_or(unknown(), |peer| peer.ip());
    let client = proxies.client(peer, request.headers());
    request.extensions_mut().insert(ClientAddress(client));
}

/// The address of a request's client; the unspecified address if it is unknown.
pub fn client_address(request: &HttpRequest) -> IpAddr {
    request.extensions().get::<ClientAddress>().map_or(unknown(), |it| it.0)
}

const fn unknown() -> IpAddr {
    IpAddr::V6(Ipv6Addr::UNSPECIFIED)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderName;
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    fn client(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let networks = trusted.iter().map(|it| it.parse().expect("a network")).collect();
        let mut headers = HeaderMap::new();
        for line in forwarded {
            let value = HeaderValue::from_str(line).expect("a header");
            headers.append(HeaderName::from_static(FORWARDED), value);
        }
        let peer = peer.parse().expect("an address");
        TrustedProxies::new(networks).client(peer, &headers).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_names_the_client() {
        let proxy = ["10.0.0.0/8", "::1/128"];
        assert_eq!(client(&proxy, "203.0.113.7", &["198.51.100.1"]), "203.0.113.7");
        assert_eq!(client(&proxy, "10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(client(&proxy, "::ffff:10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(client(&[], "10.0.0.1", &["198.51.100.1"]), "10.0.0.1");
    }

    /// The client is the peer or an address of the header, and everything behind it is a trusted proxy.
    #[test]
    fn fuzz_headers() {
        let trusted = ["10.0.0.0/8", "::1/128"].map(|it| it.parse().expect("a network"));
        let trusted = TrustedProxies::new(trusted.to_vec());
        let words =
            ["10.0.0.1", ",", ", ", "::ffff:10.0.0.1", "::1", "203.0.113.9:80", "\t", "unknown"];
        fuzz("forwarded", &committed("forwarded"), &words, |input| {
            let mut headers = HeaderMap::new();
            let mut behind = Vec::new();
            for line in input.split(|byte| *byte == b'\n') {
                if let Ok(value) = HeaderValue::from_bytes(line) {
                    headers.append(HeaderName::from_static(FORWARDED), value);
                    behind.extend(line.split(|byte| *byte == b',').map(address));
                }
            }
            behind.reverse();
            let behind: Vec<_> =
                behind.into_iter().map_while(|it| it.as_ref().map(IpAddr::to_canonical)).collect();
            let [near, far] = ["10.9.8.7", "203.0.113.5"].map(|it| it.parse().expect("an address"));
            assert_eq!(trusted.client(far, &headers), far);
            let found = trusted.client(near, &headers);
            let is_behind = |at: usize| behind[..at].iter().all(|it| trusted.includes(*it));
            let is_named = (0..behind.len()).any(|at| behind[at] == found && is_behind(at));
            assert!(found == near || is_named, "{found}");
            let is_known = behind.first().is_none_or(|it| trusted.includes(*it) || *it == found);
            assert!(is_known, "the address that the proxy has added is ignored: {found}");
        });
    }

    #[test]
    fn what_a_client_claims_itself_is_ignored() {
        let proxy = ["10.0.0.0/8"];
        let invented = ["1.1.1.1, 198.51.100.1", "10.0.0.9"];
        assert_eq!(client(&proxy, "10.0.0.1", &invented), "198.51.100.1");
        assert_eq!(client(&proxy, "10.0.0.1", &["1.1.1.1, nonsense"]), "10.0.0.1");
        assert_eq!(client(&proxy, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client(&proxy, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        let no_text = ["1.1.1.1", "\u{e9}, 198.51.100.1"];
        assert_eq!(client(&proxy, "10.0.0.1", &no_text), "198.51.100.1");
        assert_eq!(client(&proxy, "10.0.0.1", &["1.1.1.1", "\u{e9}"]), "10.0.0.1");
    }
}
