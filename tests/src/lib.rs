//! Whole-system tests; see `tests/it`.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};

pub mod containers;

/// Whether this process may do everything.
///
/// # Panics
///
/// When the system does not say.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
    status.lines().any(|line| line.starts_with("Uid:\t") && line.split('\t').nth(2) == Some("0"))
}

/// Whether a server of that kind of user, `user` or `root`, can isolate checks here. `tests/run`
/// determines where it cannot, prints it, and names it in a variable. Without the variable a test
/// of the sandbox fails where there is none, and is never skipped.
pub fn sandbox_of(user: &str) -> bool {
    let missing = std::env::var("SIGNALBOX_TEST_WITHOUT_SANDBOX").unwrap_or_default();
    let is_there = !missing.split_whitespace().any(|it| it == user);
    if !is_there {
        not_tested(&format!("no sandbox for a server of this kind of user here: {user}"));
    }
    is_there
}

/// Prints why a test does not run here.
#[expect(clippy::print_stdout, reason = "a skipped test prints why")]
pub fn not_tested(why: &str) {
    println!("NOT TESTED: {why}");
}

/// A port that is free, and stays so until this process ends: no other test is given it, also while
/// no server listens on it. It is below the ports of outgoing connections.
///
/// # Panics
///
/// When there is none.
pub fn free_port() -> u16 {
    let program = std::env::current_exe().expect("the path of the test");
    let folder = program.with_file_name("ports-of-tests");
    fs::create_dir_all(&folder).expect("a folder for the ports that are taken");
    let start = RandomState::new().build_hasher().finish() % 10_000;
    let ports = (0..10_000).map(|step| 10_000 + (start + step) % 10_000);
    let mut ports = ports.filter_map(|port| u16::try_from(port).ok());
    let free = ports.find(|port| {
        let Ok(taken) = fs::File::create(folder.join(port.to_string())) else { return false };
        let is_free =
            taken.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        if is_free {
            // The lock ends with the process.
            std::mem::forget(taken);
        }
        is_free
    });
    free.unwrap_or_else(|| panic!("no port between 10000 and 19999 is free"))
}
