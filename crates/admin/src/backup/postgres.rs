//! The client programs of PostgreSQL, which copy and restore its databases.

use std::path::{Path, PathBuf};

use tokio::process::Command;
use url::Url;

use crate::AdminError;

/// Writes a dump of a database in the custom format.
pub(super) async fn dump(url: &str, to: &Path) -> Result<(), AdminError> {
    let (url, password) = address(url)?;
    let mut command = client("pg_dump", password.as_deref());
    command
        .args(["--format=custom", "--no-owner", "--enable-row-security", "--file"])
        .arg(to)
        .arg(url.as_str());
    run("pg_dump", command).await.map(drop)
}

/// Restores a dump into an empty database: completely, or not at all.
pub(super) async fn restore(dump: &Path, url: &str) -> Result<(), AdminError> {
    let (url, password) = address(url)?;
    let mut command = client("pg_restore", password.as_deref());
    command.args(["--no-owner", "--exit-on-error", "--single-transaction", "--dbname"]);
    command.arg(url.as_str()).arg(dump);
    run("pg_restore", command).await.map(drop)
}

/// The number of entries in the table of contents of a dump.
pub(super) async fn entries(dump: &Path) -> Result<usize, AdminError> {
    let mut command = client("pg_restore", None);
    command.arg("--list").arg(dump);
    let list = run("pg_restore", command).await?;
    Ok(list.lines().filter(|line| !line.is_empty() && !line.starts_with(';')).count())
}

/// A database that exists for a trial.
pub(super) struct Trial {
    server: Url,
    password: Option<String>,
    name: String,
    /// Its URL, with the password.
    pub(super) url: String,
}

impl Trial {
    /// Creates an empty database beside another one. Fails if the role may not.
    pub(super) async fn create(url: &str, name: &str) -> Result<Self, AdminError> {
        let (server, password) = address(url)?;
        let mut command = client("createdb", password.as_deref());
        command.arg("--maintenance-db").arg(server.as_str()).args(["--template=template0", name]);
        run("createdb", command).await?;
        let mut own = Url::parse(url).map_err(AdminError::failed("database.url"))?;
        own.set_path(name);
        Ok(Self { server, password, name: name.to_owned(), url: own.into() })
    }

    /// Deletes it.
    ///
    /// PostgreSQL waits up to 5 seconds for the sessions in it to end, and cancels an autovacuum.
    /// `--force` would fail for an ordinary role, which may not end an autovacuum.
    pub(super) async fn drop(self) -> Result<(), AdminError> {
        let mut command = client("dropdb", self.password.as_deref());
        command.arg("--maintenance-db").arg(self.server.as_str()).arg(&self.name);
        run("dropdb", command).await.map(drop)
    }
}

/// The URL without its password, which other users could read in the list of processes, and the
/// password.
fn address(url: &str) -> Result<(Url, Option<String>), AdminError> {
    let mut url = Url::parse(url).map_err(AdminError::failed("database.url"))?;
    let password = url
        .password()
        .map(|text| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned());
    // A URL that has a password can do without.
    url.set_password(None).ok();
    Ok((url, password))
}

fn client(name: &str, password: Option<&str>) -> Command {
    let mut command = Command::new(program(name));
    command.stdin(std::process::Stdio::null()).kill_on_drop(true);
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    command
}

/// A program in the path; otherwise the newest where Debian installs them.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(name).is_file()) {
        return PathBuf::from(name);
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| number(path));
    let newest = newest.map(|version| version.join("bin").join(name));
    newest.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(name))
}

/// Runs a program; returns what it printed.
async fn run(name: &'static str, mut command: Command) -> Result<String, AdminError> {
    let done = command.output().await.map_err(|error| {
        let advice = "install the client programs of PostgreSQL (postgresql-client)";
        AdminError::Refused(format!("could not run {name}: {error}; {advice}"))
    })?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let printed = String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let start = lines.len().saturating_sub(3);
    let printed = lines.get(start..).unwrap_or_default().join("; ");
    // It begins with the name of the program.
    let printed = printed.strip_prefix(&format!("{name}: ")).unwrap_or(&printed).to_owned();
    Err(AdminError::Refused(format!("{name} failed: {printed}")))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use signalbox_testkit::postgres::Server;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    use super::*;

    /// What a statement returns to the superuser.
    async fn asked(database: &str, sql: &str) -> String {
        let mut command = client("psql", None);
        command.args(["-X", "-A", "-t", "-d", database, "-c", sql]);
        run("psql", command).await.expect("the statement runs")
    }

    #[tokio::test]
    async fn a_trial_is_deleted_after_the_session_of_another_role_ends() {
        let server = Server::shared();
        let url = server.create_database();
        let name = format!("{}_trial", url.rsplit_once('/').expect("a name").1);
        let trial = Trial::create(&url, &name).await.expect("a database");

        let mut session = client("psql", None);
        session.args(["-X", "-A", "-t", "-d", &server.as_superuser(&trial.url)]);
        let mut session =
            session.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("psql");
        let mut commands = session.stdin.take().expect("a pipe");
        commands.write_all(b"SELECT 'connected';\n").await.expect("written");
        let mut printed = BufReader::new(session.stdout.take().expect("a pipe")).lines();
        assert_eq!(printed.next_line().await.expect("a line").as_deref(), Some("connected"));

        let superuser = server.as_superuser(&url);
        let deleted = tokio::spawn(trial.drop());
        let waiting =
            format!("SELECT count(*) FROM pg_stat_activity WHERE query = 'DROP DATABASE {name};'");
        while asked(&superuser, &waiting).await.trim() == "0" && !deleted.is_finished() {}
        drop(commands);
        deleted.await.expect("no panic").expect("it is deleted");
        let left = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
        assert_eq!(asked(&superuser, &left).await.trim(), "0");
    }
}
