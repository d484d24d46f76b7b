//! Whole-system tests; see `tests/it`.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// A port that is free, and stays so until a server listens on it or comes back to it: below those
/// that systems give to outgoing connections.
///
/// # Panics
///
/// When there is none.
pub fn free_port() -> u16 {
    let start = RandomState::new().build_hasher().finish() % 10_000;
    let ports = (0..10_000).map(|step| 10_000 + (start + step) % 10_000);
    let mut ports = ports.filter_map(|port| u16::try_from(port).ok());
    let free = ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.unwrap_or_else(|| panic!("no port between 10000 and 19999 is free"))
}
