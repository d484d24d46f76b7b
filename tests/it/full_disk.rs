//! A full disk, and a damaged file: replies, probes and logs report it, and everything continues
//! when there is free space again.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::Method;
use serde_json::json;

use crate::harness::{On, System};

/// A small file system, until it is dropped.
struct Small(PathBuf);

impl Small {
    /// In that folder; `None` where this user may not mount any.
    #[expect(clippy::print_stdout, reason = "a skipped test prints why")]
    fn new(folder: PathBuf, megabytes: u32) -> Option<Self> {
        std::fs::create_dir(&folder).expect("a folder");
        let size = format!("size={megabytes}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).output();
        if mounted.is_ok_and(|it| it.status.success()) {
            return Some(Self(folder));
        }
        println!("SKIPPED: this process may not mount a file system");
        None
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Writes until nothing fits any more.
    fn fill(&self) {
        let file = std::fs::File::create(self.filler()).expect("a file");
        let (mut at, mut size) = (0, 1 << 20);
        while size > 0 {
            match file.write_at(&vec![7; size], at) {
                Ok(written) if written > 0 => at += written as u64,
                Ok(_) | Err(_) => size /= 2,
            }
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).expect("removed");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).output().ok();
    }
}

/// The server's database is in that file system, and there is no room.
async fn no_room(system: &System, small: &Small) {
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(first).await;
    system.until_state(first, "MERGED").await;
    small.fill();
    let body = |concurrency: u64| {
        json!({
            "repo": { "host": "git.local", "owner": "acme", "name": "calc" },
            "targetBranch": "main", "concurrency": concurrency,
            // Something that needs room.
            "requiredStatuses": (0..90).map(|it| format!("check {concurrency} {it}")).collect::<Vec<_>>()
        })
        .to_string()
    };
    // Files with allocated space may still be written.
    for concurrency in (1..=50).cycle() {
        let headers = [("x-api-token", system.token()), ("content-type", "application/json")];
        let reply = system.send(Method::POST, "/v1/updateQueue", &headers, body(concurrency)).await;
        if reply.status == 503 {
            assert_eq!(reply.code(), "unavailable");
            assert_eq!(reply.header("retry-after"), "5");
            break;
        }
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    let red = async |system: &System| {
        system.get("/readyz").await.contains("writes: no space is left for the database")
    };
    system.until("the server reports the full disk", red).await;
    small.make_room();
    let green = async |system: &System| system.get("/readyz").await == "ready\n";
    system.until("the server is ready again", green).await;
    system.call("updateQueue", json!({ "requiredStatuses": ["test"] })).await;
    let second = system.pull_request("second", &[("second.txt", "2\n")]);
    system.submit(second).await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.state(first).await, "MERGED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_and_survived_on_sqlite() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let Some(small) = Small::new(system.path("small"), 8) else { return };
    system.terminate();
    let file = small.0.join("test.db");
    std::fs::copy(system.path("test.db"), &file).expect("copied");
    system.use_database(format!("sqlite://{}", file.display()));
    system.start().await;
    no_room(&system, &small).await;
    system.terminate();
}

fn psql(url: &str, sql: &str) -> Result<(), String> {
    let done = Command::new("psql").args(["-Xq", "-d", url, "-c", sql]).output();
    let done = done.map_err(|error| error.to_string())?;
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() { Ok(()) } else { Err(errors) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_and_survived_on_postgres() {
    let mut system = System::new(On::Postgres, "exit 0\n", 1).await;
    let Some(small) = Small::new(system.path("small"), 32) else { return };
    // The server's user must find the way to it.
    for folder in [system.path("small"), system.path("")] {
        Command::new("chmod").arg("755").arg(folder).output().expect("chmod");
    }
    let place = small.0.join("data");
    std::fs::create_dir(&place).expect("a folder");
    Command::new("chown").arg("postgres").arg(&place).output().expect("chown");
    system.terminate();
    let url = system.database().to_owned();
    let (server, name) = url.rsplit_once('/').expect("a database's URL");
    let postgres = format!("{server}/postgres");
    let made = format!("CREATE TABLESPACE small_{name} LOCATION '{}'", place.display());
    let moved = format!("ALTER DATABASE {name} SET TABLESPACE small_{name}");
    if let Err(error) = psql(&postgres, &made).and_then(|()| psql(&postgres, &moved)) {
        println!("SKIPPED: the database server does not see this file system: {error}");
        return;
    }
    system.start().await;
    no_room(&system, &small).await;
    system.terminate();
    let back = format!("ALTER DATABASE {name} SET TABLESPACE pg_default");
    psql(&postgres, &back).expect("moved back");
    psql(&postgres, &format!("DROP TABLESPACE small_{name}")).expect("dropped");
}

/// Writes nonsense over everything behind the first page.
fn damage(file: &Path) {
    let length = std::fs::metadata(file).expect("a file").len();
    let file = std::fs::File::options().write(true).open(file).expect("a file");
    let rest = usize::try_from(length - 4_096).expect("a length");
    file.write_all_at(&vec![0xAA; rest], 4_096).expect("written");
}

#[tokio::test]
async fn a_damaged_database_is_called_damaged() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    system.terminate();
    damage(&system.path("test.db"));
    let doctor = system.command(&["doctor"]).output().expect("run");
    let text = String::from_utf8_lossy(&doctor.stdout);
    let line = text.lines().find(|it| it.contains(" database: ")).unwrap_or_default();
    assert!(line.starts_with("fail") && line.contains("is damaged"), "{text}");
    let served = system.command(&["serve", "--listen", "127.0.0.1:0"]).output().expect("run");
    assert!(!served.status.success());
    let errors = String::from_utf8_lossy(&served.stderr);
    assert!(errors.contains("the database is damaged"), "{errors}");
}
