//! Whole-system tests; see `tests/it`.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{SystemTime, UNIX_EPOCH};

/// A port that is free, and stays so until a server listens on it or comes back to it: below those
/// that systems give to outgoing connections.
///
/// # Panics
///
/// When there is none.
pub fn free_port() -> u16 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.subsec_nanos());
    let start = since.wrapping_mul(2_654_435_761).wrapping_add(std::process::id());
    let ports = (0..10_000_u32).map(|step| 10_000 + start.wrapping_add(step * 7) % 10_000);
    let mut ports = ports.filter_map(|port| u16::try_from(port).ok());
    let free = ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.unwrap_or_else(|| panic!("no port between 10000 and 19999 is free"))
}
