//! `signalbox backup` and `signalbox restore`.

use std::fs::File;
use std::path::{Path, PathBuf};

use signalbox_persistence::{Database, connect};

use crate::config::{Config, Flags, without_password};
use crate::wiring::chain;
use signalbox_terminal::say;

/// Copies the embedded database while servers go on.
pub(crate) async fn backup(flags: &Flags, file: &Path) -> Result<(), String> {
    let config = Config::load(flags)?;
    let url = config.database_url();
    let shown = without_password(&url);
    if let Some(path) = url.strip_prefix("sqlite://")
        && !Path::new(path).exists()
    {
        return Err(format!("{shown}: there is no such database"));
    }
    let database = connect(&url).await.map_err(|error| chain(&shown, &error))?;
    // A copy that is cut off must not look like a whole one.
    let part = beside(file, "part");
    if file.exists() {
        return Err(format!("{} is there already: name another file", file.display()));
    }
    remove(&part)?;
    database.copy_to(&part).await.map_err(|error| chain(&shown, &error))?;
    let status = whole(&part).await?;
    rename(&part, file)?;
    let size = std::fs::metadata(file).map_or(0, |it| it.len());
    say(&format!("{} has {size} bytes and {status} migrations", file.display()));
    Ok(())
}

/// Puts a copy in the place of the embedded database. The one before is kept aside.
pub(crate) async fn restore(flags: &Flags, file: &Path, replace: bool) -> Result<(), String> {
    let config = Config::load(flags)?;
    let url = config.database_url();
    let Some(path) = url.strip_prefix("sqlite://").map(PathBuf::from) else {
        return Err("only an embedded database is restored by this program: use pg_restore".into());
    };
    let status = whole(file).await?;
    config.make_data_dir()?;
    // As long as this is held no server can start.
    let _lock = crate::lock::take(&config)?;
    let shown = path.display();
    if path.exists() && !replace {
        return Err(format!("{shown} is there already: move it away, or say --replace"));
    }
    let part = beside(&path, "part");
    remove(&part)?;
    std::fs::copy(file, &part).map_err(|error| format!("{}: {error}", part.display()))?;
    whole(&part).await?;
    if path.exists() {
        let kept = beside(&path, "replaced");
        // What a journal beside it holds belongs to the old one.
        let old = connect(&url).await.map_err(|error| chain(&url, &error))?;
        old.fold().await.map_err(|error| chain(&url, &error))?;
        drop(old);
        remove(&kept)?;
        rename(&path, &kept)?;
        say(&format!("the database before is kept as {}", kept.display()));
    }
    for end in ["-wal", "-shm"] {
        remove(&PathBuf::from(format!("{shown}{end}")))?;
    }
    rename(&part, &path)?;
    say(&format!("{shown} is restored with {status} migrations"));
    Ok(())
}

/// Looks whether a file is a whole database that this program can use; says how many migrations it
/// has. The file is left as it is.
async fn whole(file: &Path) -> Result<usize, String> {
    let shown = file.display().to_string();
    let size = std::fs::metadata(file).map_err(|error| format!("{shown}: {error}"))?.len();
    if size == 0 {
        return Err(format!("{shown} is empty"));
    }
    // Opening it leaves files beside it, which a copy in a folder of its own keeps out of the way.
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let look = folder.path().join("look.db");
    std::fs::copy(file, &look).map_err(|error| format!("{shown}: {error}"))?;
    let url = format!("sqlite://{}", look.display());
    let words = |error: &dyn std::error::Error| chain(&shown, error);
    let database: Database = connect(&url).await.map_err(|error| words(&error))?;
    let problems = database.check().await.map_err(|error| words(&error))?;
    if let Some(first) = problems.first() {
        return Err(format!("{shown} is damaged: {first}"));
    }
    let status = database.migration_status().await.map_err(|error| words(&error))?;
    if status.applied.is_empty() {
        return Err(format!("{shown} is no database of this program"));
    }
    Ok(status.applied.len())
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{end}"));
    PathBuf::from(name)
}

fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Renames a file so that it is there after a power cut too.
fn rename(from: &Path, to: &Path) -> Result<(), String> {
    let words = |error: std::io::Error| format!("{}: {error}", to.display());
    File::open(from).and_then(|file| file.sync_all()).map_err(words)?;
    std::fs::rename(from, to).map_err(words)?;
    let folder = to.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(words)
}
