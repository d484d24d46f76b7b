//! Prevents access to internal networks through webhooks: rules for URLs, and for their addresses.

mod address;
mod lookup;
mod url;

use std::net::IpAddr;

use ipnet::IpNet;
use thiserror::Error;

pub(crate) use lookup::GuardedResolver;
pub use lookup::{Lookup, SystemLookup};

/// Why nothing is sent somewhere.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The URL breaks a rule.
    #[error("{0}")]
    Url(&'static str),
    /// An address is of a kind that messages are not sent to.
    #[error("{address} is {kind}, which webhooks.allow does not contain")]
    Address {
        /// The address.
        address: IpAddr,
        /// Its kind: `a private address`.
        kind: &'static str,
    },
    /// The name leads nowhere.
    #[error("the name resolves to no address")]
    NoAddress,
}

/// Checks where messages may be sent.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allowed: Vec<IpNet>,
    http: bool,
}

impl Guard {
    /// A guard that allows all addresses of these networks; with `http` also URLs without
    /// encryption.
    pub const fn new(allowed: Vec<IpNet>, http: bool) -> Self {
        Self { allowed, http }
    }

    /// Whether messages may be sent to an address.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refused> {
        if self.allowed.iter().any(|network| network.contains(&address)) {
            return Ok(());
        }
        match address::kind(address) {
            Some(kind) => Err(Refused::Address { address, kind }),
            None => Ok(()),
        }
    }

    /// Whether messages may be sent to all of these addresses; one bad one spoils the rest.
    pub fn check_all(&self, addresses: &[IpAddr]) -> Result<(), Refused> {
        if addresses.is_empty() {
            return Err(Refused::NoAddress);
        }
        addresses.iter().try_for_each(|address| self.check_address(*address))
    }

    /// Reads a URL and checks its form; an address in it is checked as well, a name is not looked
    /// up.
    pub fn check_url(&self, text: &str) -> Result<::url::Url, Refused> {
        url::check(self, text, self.http)
    }
}
