//! The checkout of a job in transit: a tar archive in pieces.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

/// The bytes of a piece.
const PIECE: usize = 256 * 1024;
/// How many pieces, or frames of an agent, are read ahead.
pub(crate) const AHEAD: usize = 8;

/// Packs a folder with all that is in it, as the files of `owner`, a user and a group, if there is
/// one. Links stay links.
pub(crate) fn pack(folder: &Path, owner: Option<u32>, to: mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    let pieces = io::BufWriter::with_capacity(PIECE, Pieces(to));
    let mut archive = tar::Builder::new(pieces);
    // Folders before what is in them, without recursion: they may be nested deeply.
    let mut waiting = vec![(folder.to_owned(), PathBuf::from("."))];
    while let Some((path, name)) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        let mut header = tar::Header::new_gnu();
        header.set_metadata(&metadata);
        if let Some(owner) = owner {
            header.set_uid(owner.into());
            header.set_gid(owner.into());
        }
        if metadata.is_dir() {
            archive.append_data(&mut header, &name, io::empty())?;
            for entry in fs::read_dir(&path)? {
                let entry = entry?;
                waiting.push((entry.path(), name.join(entry.file_name())));
            }
        } else if metadata.is_symlink() {
            append_link(&mut archive, &mut header, &name, &fs::read_link(&path)?)?;
        } else if metadata.is_file() {
            archive.append_data(&mut header, &name, fs::File::open(&path)?)?;
        }
    }
    archive.into_inner()?.flush()
}

/// Appends a symbolic link, whose target stays as it is written where the header has room for it.
fn append_link<W: Write>(
    archive: &mut tar::Builder<W>,
    header: &mut tar::Header,
    name: &Path,
    target: &Path,
) -> io::Result<()> {
    header.set_size(0);
    let is_short = header.set_path(name).is_ok();
    if is_short && header.set_link_name_literal(target.as_os_str().as_bytes()).is_ok() {
        header.set_cksum();
        return archive.append(header, io::empty());
    }
    archive.append_link(header, name, target)
}

/// Unpacks it into a folder, and nowhere else. The files belong to this user.
pub(crate) fn unpack(from: mpsc::Receiver<Vec<u8>>, folder: &Path) -> io::Result<()> {
    let mut pieces = Received::of(from);
    let mut archive = tar::Archive::new(&mut pieces);
    // Without bits that change users.
    archive.set_preserve_permissions(false);
    // By which git knows that a file is the one of its index.
    archive.set_preserve_mtime(true);
    archive.unpack(folder)?;
    // What follows the end of an archive.
    io::copy(&mut pieces, &mut io::sink())?;
    Ok(())
}

struct Pieces(mpsc::Sender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.blocking_send(bytes.to_owned()).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An archive that arrives in pieces, for a thread that may wait.
pub(crate) struct Received {
    from: mpsc::Receiver<Vec<u8>>,
    piece: Vec<u8>,
    read: usize,
}

impl Received {
    pub(crate) const fn of(from: mpsc::Receiver<Vec<u8>>) -> Self {
        Self { from, piece: Vec::new(), read: 0 }
    }
}

impl Read for Received {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            let Some(piece) = self.from.blocking_recv() else { return Ok(0) };
            (self.piece, self.read) = (piece, 0);
        }
        let rest = self.piece.get(self.read..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        let (Some(to), Some(bytes)) = (buffer.get_mut(..count), rest.get(..count)) else {
            return Ok(0);
        };
        to.copy_from_slice(bytes);
        self.read += count;
        Ok(count)
    }
}

/// An archive whose blocks at the places of headers have the checksum of a header.
#[cfg(test)]
pub(crate) fn with_checksums(archive: &[u8]) -> Vec<u8> {
    let mut archive = archive.to_vec();
    for block in archive.chunks_exact_mut(512) {
        if &block[257..262] != b"ustar" {
            continue;
        }
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    archive
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use signalbox_testkit::fuzz::{folder, fuzz};

    use super::*;

    /// A small checkout as it is sent.
    fn sent() -> Vec<u8> {
        let place = tempfile::tempdir().expect("a folder");
        fs::create_dir(place.path().join("src")).expect("made");
        fs::write(place.path().join("src/lib.rs"), "fn main() {}\n").expect("written");
        fs::write(place.path().join("x".repeat(120)), "long\n").expect("written");
        symlink("../outside", place.path().join("way")).expect("a link");
        let (sender, mut pieces) = mpsc::channel(AHEAD);
        pack(place.path(), None, sender).expect("packed");
        std::iter::from_fn(|| pieces.try_recv().ok()).flatten().collect()
    }

    /// Whatever arrives, nothing is written or changed outside.
    #[test]
    fn fuzz_checkouts() {
        let place = folder();
        let (outside, there) = (place.path().join("outside"), place.path().join("there"));
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("file"), "kept").expect("written");
        let mode = fs::metadata(outside.join("file")).expect("there").permissions().mode();
        let words = [
            "ustar\0",
            "../outside/file",
            "way/file",
            "/etc/passwd",
            "\u{0}2",
            "././@LongLink",
            "path=",
        ];
        fuzz("checkout", &[sent()], &words, |input| {
            // A rewritten checksum lets the rest of a header be read.
            let input = with_checksums(input.get(..8_192).unwrap_or(input));
            fs::create_dir(&there).expect("made");
            let (sender, receiver) = mpsc::channel(1);
            sender.try_send(input).expect("sent");
            drop(sender);
            let unpacked = unpack(receiver, &there);
            if fs::remove_dir_all(&there).is_err() {
                // A folder without rights.
                crate::clear(&there);
            }
            drop(unpacked);
            let names: Vec<_> = fs::read_dir(place.path()).expect("there").flatten().collect();
            let inside: Vec<_> = fs::read_dir(&outside).expect("there").flatten().collect();
            assert_eq!((names.len(), inside.len()), (1, 1), "{names:?} {inside:?}");
            assert_eq!(fs::read(outside.join("file")).expect("there"), b"kept");
            let now = fs::metadata(outside.join("file")).expect("there").permissions().mode();
            assert_eq!(now, mode);
        });
    }

    #[test]
    fn a_checkout_arrives_as_it_was() {
        let place = tempfile::tempdir().expect("a folder");
        let (here, there) = (place.path().join("here"), place.path().join("there"));
        let deep = here.join("d".repeat(120)).join("e".repeat(120));
        fs::create_dir_all(&deep).expect("made");
        fs::create_dir(&there).expect("made");
        fs::write(deep.join("file"), vec![b'x'; 3 * PIECE]).expect("written");
        fs::write(here.join("run"), "#!/bin/sh\n").expect("written");
        fs::set_permissions(here.join("run"), Permissions::from_mode(0o755)).expect("set");
        symlink("/etc/passwd", here.join("link")).expect("a link");
        symlink("a//b/./c/", here.join("odd")).expect("a link");
        symlink("x".repeat(300), here.join("long")).expect("a link");
        let (sender, receiver) = mpsc::channel(2);
        let packing = {
            let here = here.clone();
            std::thread::spawn(move || pack(&here, None, sender))
        };
        unpack(receiver, &there).expect("unpacked");
        packing.join().expect("no panic").expect("packed");
        let deep = there.join("d".repeat(120)).join("e".repeat(120));
        assert_eq!(fs::read(deep.join("file")).expect("read").len(), 3 * PIECE);
        let mode = fs::metadata(there.join("run")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(fs::read_link(there.join("link")).expect("a link"), Path::new("/etc/passwd"));
        // Git compares the text of a link, which a path of the standard library does not.
        let odd = fs::read_link(there.join("odd")).expect("a link");
        assert_eq!(odd.as_os_str(), "a//b/./c/");
        let long = fs::read_link(there.join("long")).expect("a link");
        assert_eq!(long.as_os_str().len(), 300);
    }

    #[test]
    fn nothing_is_unpacked_outside() {
        let place = tempfile::tempdir().expect("a folder");
        let (outside, there) = (place.path().join("outside"), place.path().join("there"));
        fs::create_dir(&outside).expect("made");
        fs::create_dir(&there).expect("made");
        let mut archive = tar::Builder::new(Vec::new());
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        archive.append_link(&mut link, "way", &outside).expect("packed");
        let mut file = tar::Header::new_gnu();
        file.set_size(1);
        file.set_mode(0o644);
        archive.append_data(&mut file, "way/file", &b"x"[..]).expect("packed");
        let (sender, receiver) = mpsc::channel(2);
        sender.blocking_send(archive.into_inner().expect("whole")).expect("sent");
        drop(sender);
        assert!(unpack(receiver, &there).is_err());
        assert!(!outside.join("file").exists());
    }
}
