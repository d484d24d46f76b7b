//! `signalbox backup` and `signalbox restore`.

use std::fs::File;
use std::path::{Path, PathBuf};

use signalbox_config::without_password;
use signalbox_persistence::{Database, connect, create_private};
use signalbox_terminal::say;

use crate::AdminError;
use crate::lock::take;
use crate::program::{Program, config};

/// Copies the embedded database while servers run.
pub async fn backup(program: &dyn Program, file: &Path) -> Result<(), AdminError> {
    let config = config(program)?;
    let url = config.database_url();
    let shown = without_password(&url);
    if let Some(path) = url.strip_prefix("sqlite://")
        && !Path::new(path).exists()
    {
        return Err(AdminError::NotFound(format!("{shown}: no such database")));
    }
    let database = connect(&url).await.map_err(AdminError::failed(shown.clone()))?;
    // A copy that is cut off must not look like a whole one.
    let part = beside(file, "part");
    if file.exists() {
        let shown = file.display();
        return Err(AdminError::Refused(format!("{shown} already exists; choose another file")));
    }
    remove(&part)?;
    database.copy_to(&part).await.map_err(AdminError::failed(shown.clone()))?;
    let status = whole(&part).await?;
    rename(&part, file)?;
    let size = std::fs::metadata(file).map_or(0, |it| it.len());
    say(&format!("{}: {size} bytes, {status} migrations", file.display()));
    Ok(())
}

/// Replaces the embedded database with a copy. The previous database is kept beside it.
pub async fn restore(program: &dyn Program, file: &Path, replace: bool) -> Result<(), AdminError> {
    let config = config(program)?;
    let url = config.database_url();
    let Some(path) = url.strip_prefix("sqlite://").map(PathBuf::from) else {
        let rule = "only an embedded database can be restored; use pg_restore for PostgreSQL";
        return Err(AdminError::Refused(rule.to_owned()));
    };
    let status = whole(file).await?;
    config.make_data_dir()?;
    // As long as this is held no server can start.
    let _lock = take(&config)?;
    let shown = path.display();
    if path.exists() && !replace {
        let problem = format!("{shown} already exists; move it away or pass --replace");
        return Err(AdminError::Refused(problem));
    }
    let part = beside(&path, "part");
    remove(&part)?;
    copy_private(file, &part).map_err(AdminError::file(&part))?;
    whole(&part).await?;
    if path.exists() {
        let kept = beside(&path, "replaced");
        // A journal beside it belongs to the old database.
        let old = connect(&url).await.map_err(AdminError::failed(url.clone()))?;
        old.fold().await.map_err(AdminError::failed(url.clone()))?;
        drop(old);
        remove(&kept)?;
        rename(&path, &kept)?;
        say(&format!("the previous database is kept as {}", kept.display()));
    }
    for end in ["-wal", "-shm"] {
        remove(&PathBuf::from(format!("{shown}{end}")))?;
    }
    rename(&part, &path)?;
    say(&format!("restored {shown}, {status} migrations"));
    Ok(())
}

/// Checks that a file is an intact database that this program can use, and returns how many
/// migrations it has. Does not change the file.
async fn whole(file: &Path) -> Result<usize, AdminError> {
    let shown = file.display().to_string();
    let size = std::fs::metadata(file).map_err(AdminError::file(file))?.len();
    if size == 0 {
        return Err(AdminError::Refused(format!("{shown} is empty")));
    }
    // Opening it leaves files beside it, which a copy in a folder of its own keeps out of the way.
    let folder = tempfile::tempdir()?;
    let look = folder.path().join("look.db");
    std::fs::copy(file, &look).map_err(AdminError::file(file))?;
    let url = format!("sqlite://{}", look.display());
    let failed = || AdminError::failed(shown.clone());
    let database: Database = connect(&url).await.map_err(failed())?;
    let problems = database.check().await.map_err(AdminError::failed(shown.clone()))?;
    if let Some(first) = problems.first() {
        return Err(AdminError::Refused(format!("{shown} is damaged: {first}")));
    }
    let status = database.migration_status().await.map_err(failed())?;
    if status.applied.is_empty() {
        return Err(AdminError::Refused(format!("not a Signalbox database: {shown}")));
    }
    Ok(status.applied.len())
}

/// Copies a file; only this user may read the copy.
fn copy_private(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut from = File::open(from)?;
    std::io::copy(&mut from, &mut create_private(to)?).map(drop)
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{end}"));
    PathBuf::from(name)
}

fn remove(path: &Path) -> Result<(), AdminError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(AdminError::File { path: path.to_owned(), error })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Renames a file durably: the rename survives a power failure.
fn rename(from: &Path, to: &Path) -> Result<(), AdminError> {
    let failed = || AdminError::file(to);
    File::open(from).and_then(|file| file.sync_all()).map_err(failed())?;
    std::fs::rename(from, to).map_err(failed())?;
    let folder = to.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed())
}
