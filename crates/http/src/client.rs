//! The address of a client, also behind proxies.

use std::net::{IpAddr, Ipv6Addr};

use actix_web::HttpRequest;
use actix_web::dev::ServiceRequest;
use actix_web::{HttpMessage, http::header::HeaderMap};
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
        let lines = headers.get_all(FORWARDED).filter_map(|value| value.to_str().ok());
        let mut entries: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
        let mut client = peer.to_canonical();
        while self.includes(client) {
            let Some(entry) = entries.pop() else { break };
            let Ok(before) = entry.trim().parse::<IpAddr>() else { break };
            client = before.to_canonical();
        }
        client
    }
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
    use actix_web::http::header::{HeaderName, HeaderValue};

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

    #[test]
    fn what_a_client_claims_itself_is_ignored() {
        let proxy = ["10.0.0.0/8"];
        let invented = ["1.1.1.1, 198.51.100.1", "10.0.0.9"];
        assert_eq!(client(&proxy, "10.0.0.1", &invented), "198.51.100.1");
        assert_eq!(client(&proxy, "10.0.0.1", &["1.1.1.1, nonsense"]), "10.0.0.1");
        assert_eq!(client(&proxy, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client(&proxy, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
    }
}
