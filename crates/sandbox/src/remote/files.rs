//! What is sent to a container before it starts, and fetched from it when it has ended.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};

use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{
    DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use futures_util::{StreamExt as _, pin_mut, stream};
use signalbox_domain::ports::ReportFile;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::api;
use crate::archive::{self, AHEAD, Received};
use crate::bubblewrap::CHECKOUT;
use crate::reports::{self, MAX_BYTES, MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES};
use crate::{Collected, JobFolder};

/// The most bytes of files that are searched for reports.
const MAX_SEARCHED: u64 = 16 * 1024 * 1024 * 1024;

/// Sends a folder of this machine into a volume, as the files of a user.
pub(super) async fn send(
    docker: &Docker,
    container: &str,
    from: &Path,
    to: &str,
    user: u32,
) -> io::Result<()> {
    let (sender, pieces) = mpsc::channel(AHEAD);
    let from = from.to_owned();
    let packing = spawn_blocking(move || archive::pack(&from, Some(user), sender));
    let pieces = stream::unfold(pieces, |mut pieces| async move {
        let piece: Vec<u8> = pieces.recv().await?;
        Some((piece.into(), pieces))
    });
    // Not into its root, which is read-only, and not all engines follow a path into a volume.
    let options = UploadToContainerOptionsBuilder::default().path(to).build();
    let sent =
        docker.upload_to_container(container, Some(options), bollard::body_stream(pieces)).await;
    let packed = packing.await.map_err(io::Error::other)?;
    match (sent, packed) {
        (Ok(()), packed) => packed,
        // It ends because the engine does not read on.
        (Err(_), Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        (Err(error), _) => Err(io::Error::other(api::words(&error))),
    }
}

/// Fetches the reports that a check left in its checkout.
pub(super) async fn fetch(
    docker: &Docker,
    container: &str,
    patterns: Vec<String>,
    folder: &JobFolder,
) -> io::Result<Collected> {
    let mut found = Found {
        patterns,
        before: folder.checkout(),
        kept: folder.path().to_owned(),
        collected: Collected::default(),
        bytes: 0,
        entries: 0,
        searched: 0,
    };
    let parsed = reports::parse(&found.patterns);
    let folders: Vec<Vec<String>> = reports::folders(&parsed)
        .into_iter()
        .map(|names| names.into_iter().map(str::to_owned).collect())
        .collect();
    for names in folders {
        found = search(docker, container, names, found).await?;
    }
    found.collected.files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found.collected)
}

/// Searches one folder of a checkout.
async fn search(
    docker: &Docker,
    container: &str,
    names: Vec<String>,
    mut found: Found,
) -> io::Result<Found> {
    let path = [&[CHECKOUT.to_owned()], names.as_slice()].concat().join("/");
    let options = DownloadFromContainerOptionsBuilder::default().path(&path).build();
    let pieces = docker.download_from_container(container, Some(options));
    pin_mut!(pieces);
    let (sender, received) = mpsc::channel(AHEAD);
    let reading = spawn_blocking(move || {
        found.read(Received::of(received), &names)?;
        Ok::<_, io::Error>(found)
    });
    let mut failed = None;
    while let Some(piece) = pieces.next().await {
        match piece {
            // What reads it may have seen enough.
            Ok(piece) if sender.send(piece.to_vec()).await.is_err() => break,
            Ok(_) => {}
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => break,
            Err(error) => {
                failed = Some(io::Error::other(api::words(&error)));
                break;
            }
        }
    }
    drop(sender);
    let read = reading.await.map_err(io::Error::other)?;
    failed.map_or(read, Err)
}

/// The reports that were found so far.
struct Found {
    patterns: Vec<String>,
    /// The checkout as it was sent.
    before: PathBuf,
    /// Where the bytes of reports are kept.
    kept: PathBuf,
    collected: Collected,
    bytes: u64,
    entries: usize,
    searched: u64,
}

impl Found {
    /// Reads the archive of a folder of the checkout. Its first entry is the folder itself, which
    /// engines name differently.
    fn read(&mut self, from: Received, folder: &[String]) -> io::Result<()> {
        let patterns = self.patterns.clone();
        let parsed = reports::parse(&patterns);
        let mut archive = tar::Archive::new(from);
        let mut root: Option<PathBuf> = None;
        for entry in archive.entries()? {
            let entry = entry?;
            let path = entry.path()?.into_owned();
            let Some(root) = &root else {
                if !entry.header().entry_type().is_dir() {
                    return Ok(());
                }
                root = Some(path);
                continue;
            };
            self.entries += 1;
            self.searched = self.searched.saturating_add(entry.size());
            if self.entries > MAX_ENTRIES || self.searched > MAX_SEARCHED {
                self.collected.omitted += 1;
                return Ok(());
            }
            let inner = path.strip_prefix(root).unwrap_or(&path);
            let inner: Option<Vec<&str>> = inner.iter().map(|name| name.to_str()).collect();
            let Some(inner) = inner else { continue };
            let mut names = folder.to_owned();
            names.extend(inner.into_iter().map(str::to_owned));
            if entry.header().entry_type().is_file() && reports::is_report(&parsed, &names) {
                self.add(names.join("/"), entry)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, entry: impl Read) -> io::Result<()> {
        if self.collected.files.len() >= MAX_FILES {
            self.collected.omitted += 1;
            return Ok(());
        }
        let mut file = tempfile::tempfile_in(&self.kept)?;
        let length = io::copy(&mut entry.take(MAX_FILE_BYTES + 1), &mut file)?;
        if length > MAX_FILE_BYTES || self.bytes.saturating_add(length) > MAX_BYTES {
            self.collected.omitted += 1;
            return Ok(());
        }
        self.bytes += length;
        file.rewind()?;
        self.collected.old += usize::from(is_same(&self.before.join(&name), &mut file)?);
        file.rewind()?;
        self.collected.files.push(ReportFile { name, content: Box::new(file) });
        Ok(())
    }
}

/// Whether a file has the bytes that were sent, so that the check did not write it.
fn is_same(sent: &Path, fetched: &mut File) -> io::Result<bool> {
    let Ok(metadata) = fs::symlink_metadata(sent) else { return Ok(false) };
    if !metadata.is_file() || metadata.len() != fetched.metadata()?.len() {
        return Ok(false);
    }
    let (mut sent, mut before, mut now) = (File::open(sent)?, Vec::new(), Vec::new());
    sent.read_to_end(&mut before)?;
    fetched.read_to_end(&mut now)?;
    Ok(before == now)
}
