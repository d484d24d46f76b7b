//! What is sent to a container before it starts, and fetched from it when it has ended.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

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

/// How long an engine may be silent while it sends.
const SILENCE: Duration = Duration::from_mins(2);

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
    // Not into the root of the container, which is read-only, and not all engines follow a path into a volume.
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
        failed: None,
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
        // A check may leave what makes no archive.
        let is_read = found.read(Received::of(received), &names).is_ok();
        (found, is_read)
    });
    let (mut failed, mut is_whole) = (None, true);
    loop {
        let Ok(piece) = tokio::time::timeout(SILENCE, pieces.next()).await else {
            failed = Some(io::ErrorKind::TimedOut.into());
            break;
        };
        let Some(piece) = piece else { break };
        match piece {
            // What reads it may have seen enough.
            Ok(piece) if sender.send(piece.to_vec()).await.is_err() => break,
            Ok(_) => {}
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => break,
            // By what the check left there, such as a file in place of a folder.
            Err(Error::DockerResponseServerError { .. }) => {
                is_whole = false;
                break;
            }
            Err(error) => {
                failed = Some(io::Error::other(api::words(&error)));
                break;
            }
        }
    }
    drop(sender);
    let (mut found, is_read) = reading.await.map_err(io::Error::other)?;
    if let Some(error) = found.failed.take().or(failed) {
        return Err(error);
    }
    found.collected.omitted += usize::from(!is_read || !is_whole);
    Ok(found)
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
    /// Why this machine could not keep one.
    failed: Option<io::Error>,
}

impl Found {
    /// Reads the archive of a folder or file of the checkout. Its first entry is that itself, which
    /// engines name differently.
    fn read(&mut self, from: Received, folder: &[String]) -> io::Result<()> {
        let patterns = self.patterns.clone();
        let parsed = reports::parse(&patterns);
        let mut archive = tar::Archive::new(from);
        let mut root: Option<PathBuf> = None;
        for entry in archive.entries()? {
            let entry = entry?;
            let path = entry.path()?.into_owned();
            let kind = entry.header().entry_type();
            let Some(root) = &root else {
                if kind.is_file() && reports::is_report(&parsed, folder) {
                    self.add(folder.join("/"), entry.size(), entry);
                }
                if !kind.is_dir() {
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
            let Some(inner) = path.strip_prefix(root).ok().and_then(plain) else { continue };
            let names = [folder, inner.as_slice()].concat();
            if !reports::is_report(&parsed, &names) {
                continue;
            }
            if kind.is_file() {
                self.add(names.join("/"), entry.size(), entry);
            } else if kind.is_hard_link() {
                // To a file that may have been in another folder.
                self.collected.omitted += 1;
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, size: u64, entry: impl Read) {
        // The reader does not report an archive that ends early.
        if let Err(error) = self.keep(name, size, entry) {
            self.failed = Some(error);
        }
    }

    fn keep(&mut self, name: String, size: u64, entry: impl Read) -> io::Result<()> {
        if self.collected.files.len() >= MAX_FILES {
            self.collected.omitted += 1;
            return Ok(());
        }
        let mut file = tempfile::tempfile_in(&self.kept)?;
        let length = io::copy(&mut entry.take(MAX_FILE_BYTES + 1), &mut file)?;
        if length < size.min(MAX_FILE_BYTES)
            || length > MAX_FILE_BYTES
            || self.bytes.saturating_add(length) > MAX_BYTES
        {
            self.collected.omitted += 1;
            return Ok(());
        }
        self.bytes += length;
        file.rewind()?;
        self.collected.old += usize::from(is_same(&self.before, &name, &mut file)?);
        file.rewind()?;
        self.collected.files.push(ReportFile { name, content: Box::new(file) });
        Ok(())
    }
}

/// The names of a path that stays where it begins.
fn plain(path: &Path) -> Option<Vec<String>> {
    path.components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str().map(str::to_owned),
            _ => None,
        })
        .collect()
}

/// Whether a file has the bytes that were sent, so that it counts as not written by the check. Links
/// of the checkout are not followed; nothing changes it any more.
fn is_same(checkout: &Path, name: &str, fetched: &mut File) -> io::Result<bool> {
    let mut path = checkout.to_owned();
    let mut metadata = fs::symlink_metadata(&path)?;
    for part in name.split('/') {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(found) if metadata.is_dir() => metadata = found,
            Ok(_) | Err(_) => return Ok(false),
        }
    }
    if !metadata.is_file() || metadata.len() != fetched.metadata()?.len() {
        return Ok(false);
    }
    let (mut sent, mut before, mut now) = (File::open(&path)?, Vec::new(), Vec::new());
    sent.read_to_end(&mut before)?;
    fetched.read_to_end(&mut now)?;
    Ok(before == now)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use signalbox_testkit::fuzz::fuzz;

    use super::*;

    /// What is found in an archive of the folder `a` of a checkout.
    fn found(pattern: &str, fill: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> (Found, bool) {
        let mut archive = tar::Builder::new(Vec::new());
        fill(&mut archive);
        let bytes = archive.into_inner().expect("whole");
        let (sender, received) = mpsc::channel(1);
        sender.try_send(bytes).expect("sent");
        drop(sender);
        let place = signalbox_testkit::fuzz::folder();
        let outside = place.path().join("outside");
        let before = place.path().join("checkout");
        for folder in [&outside, &before] {
            fs::create_dir(folder).expect("made");
        }
        fs::write(outside.join("secret.xml"), "guess").expect("written");
        symlink(&outside, before.join("a")).expect("a link");
        let mut found = Found {
            patterns: vec![pattern.to_owned()],
            before,
            kept: place.path().to_owned(),
            collected: Collected::default(),
            bytes: 0,
            entries: 0,
            searched: 0,
            failed: None,
        };
        let is_read = found.read(Received::of(received), &["a".to_owned()]).is_ok();
        (found, is_read)
    }

    fn append(archive: &mut tar::Builder<Vec<u8>>, kind: tar::EntryType, name: &str, bytes: &str) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(bytes.len().try_into().expect("few"));
        let mut field = [0; 100];
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().name = field;
        header.set_cksum();
        archive.append(&header, bytes.as_bytes()).expect("appended");
    }

    /// What is found fits the pattern, is in the folder, and is bounded.
    #[test]
    fn fuzz_archives() {
        let mut sent = tar::Builder::new(Vec::new());
        append(&mut sent, tar::EntryType::Directory, "a/", "");
        append(&mut sent, tar::EntryType::Regular, "a/unit.xml", "<testsuite/>");
        append(&mut sent, tar::EntryType::Regular, "a/b/more.xml", "<testsuites/>");
        append(&mut sent, tar::EntryType::Link, "a/hard.xml", "");
        let sent = sent.into_inner().expect("whole");
        let words = ["a/", "../", "/", ".xml", "\0", "L", "x", "30 path=a/../b.xml\n", "ustar"];
        fuzz("fetched", &[sent], &words, |input| {
            let bytes = crate::archive::with_checksums(input.get(..8_192).unwrap_or(input));
            let (found, _) = found("a/**/*.xml", |archive| *archive.get_mut() = bytes.clone());
            for file in &found.collected.files {
                let parts: Vec<&str> = file.name.split('/').collect();
                assert!(parts.len() > 1 && parts[0] == "a", "{}", file.name);
                assert!(parts.iter().all(|it| !["", ".", ".."].contains(it)), "{}", file.name);
                let last = parts.last().and_then(|it| it.rsplit_once('.'));
                assert!(last.is_some_and(|(_, ending)| ending == "xml"), "{}", file.name);
            }
            assert!(found.collected.files.len() <= MAX_FILES && found.collected.old == 0);
            assert!(found.bytes <= bytes.len() as u64 && found.failed.is_none());
        });
    }

    #[test]
    fn engines_name_the_folder_of_an_archive_differently() {
        for root in ["a/", "/", "./"] {
            let (found, is_read) = found("a/*.xml", |archive| {
                append(archive, tar::EntryType::Directory, root, "");
                append(archive, tar::EntryType::Regular, &format!("{root}secret.xml"), "guess");
                append(archive, tar::EntryType::Regular, &format!("{root}other.txt"), "text");
                append(archive, tar::EntryType::Link, &format!("{root}hard.xml"), "");
                append(archive, tar::EntryType::Symlink, &format!("{root}soft.xml"), "");
            });
            let names: Vec<&str> = found.collected.files.iter().map(|it| &*it.name).collect();
            assert_eq!((names, is_read, found.collected.omitted), (vec!["a/secret.xml"], true, 1));
            // What the checkout's link leads to is not compared with it.
            assert_eq!(found.collected.old, 0);
        }
    }

    #[test]
    fn a_hostile_archive_is_read_no_further() {
        let (left, is_read) = found("a/**/*.xml", |archive| {
            append(archive, tar::EntryType::Directory, "a/", "");
            append(archive, tar::EntryType::Regular, "a/../../b.xml", "x");
            append(archive, tar::EntryType::Regular, "/etc/c.xml", "x");
            append(archive, tar::EntryType::Regular, "a/d.xml", "x");
        });
        assert!(is_read);
        let names: Vec<&str> = left.collected.files.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["a/d.xml"]);
        let (left, _) = found("a/*.xml", |archive| {
            append(archive, tar::EntryType::Directory, "a/", "");
            append(archive, tar::EntryType::Regular, "a/f.xml", &"x".repeat(2_000));
            archive.get_mut().truncate(1_536);
        });
        assert_eq!((left.collected.files.len(), left.collected.omitted), (0, 1), "half a file");
        let (left, is_read) = found("a/*.xml", |archive| {
            archive.get_mut().extend_from_slice(&[b'?'; 1_024]);
        });
        assert!(!is_read && left.collected.files.is_empty());
        let (left, _) = found("a/*.xml", |archive| {
            append(archive, tar::EntryType::Symlink, "a", "");
            append(archive, tar::EntryType::Regular, "a/e.xml", "x");
        });
        assert!(left.collected.files.is_empty(), "a link in place of the folder");
    }

    #[test]
    fn one_file_is_fetched_alone() {
        let (left, _) = found("a", |archive| append(archive, tar::EntryType::Regular, "a", "x"));
        assert_eq!(left.collected.files.len(), 1);
    }
}
