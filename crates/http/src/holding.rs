//! The bytes of bodies that the server holds at the same time, in memory and in temporary files:
//! bounded, with a share for each organization, repository and address.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::web::{Bytes, BytesMut};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::shares::Shares;
use signalbox_services::network_of;
use tokio::task::spawn_blocking;

use crate::problem::{Code, Problem};

const MIB: u64 = 1024 * 1024;
/// The most bytes of bodies in memory at a server.
const MEMORY: u64 = 128 * MIB;
/// The most bytes of bodies in temporary files at a server.
const FILES: u64 = 1_024 * MIB;
/// Bytes of a spooled body that stay in memory; more of them are written to a file.
const PENDING: usize = 1024 * 1024;

/// Whose share something is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// The tokens of an organization.
    Organization(OrgId),
    /// The clients that know the public id of a repository.
    PublicRepository(RepoId),
    /// All clients with a public id.
    Public,
    /// The clients at an address that have only a public id.
    Address(IpAddr),
    /// The clients at an address that have no credential.
    Stranger(IpAddr),
    /// All clients that have not yet shown a credential.
    Unproven,
}

impl Holder {
    /// Its share of an amount, as a divisor.
    pub(crate) const fn divisor(self) -> u64 {
        match self {
            Self::Organization(_) | Self::Unproven => 2,
            Self::Public => 4,
            Self::PublicRepository(_) => 8,
            Self::Address(_) => 16,
            Self::Stranger(_) => 128,
        }
    }
}

/// A client without a credential.
pub(crate) fn unproven(client: IpAddr) -> Vec<Holder> {
    vec![Holder::Stranger(network_of(client)), Holder::Unproven]
}

/// A client at that address with the public id of a repository.
pub(crate) fn public_holders(client: IpAddr, repo: RepoId) -> Vec<Holder> {
    vec![Holder::Address(network_of(client)), Holder::PublicRepository(repo), Holder::Public]
}

type Pool = Arc<Mutex<Shares<Holder>>>;

/// The bodies that a server holds.
#[derive(Debug)]
pub(crate) struct Bodies {
    memory: Pool,
    files: Pool,
    /// The folder of temporary files.
    folder: PathBuf,
}

impl Bodies {
    pub(crate) fn new(folder: PathBuf) -> Self {
        let pool = |most| Arc::new(Mutex::new(Shares::new(most)));
        Self { memory: pool(MEMORY), files: pool(FILES), folder }
    }

    /// Counts the bytes of a body in memory.
    pub(crate) fn in_memory(&self, holders: Vec<Holder>) -> Held {
        Held { pool: self.memory.clone(), holders, bytes: 0 }
    }

    /// A body that may be too large for memory.
    pub(crate) fn spool(&self, holders: Vec<Holder>) -> Spool {
        let held = Held { pool: self.files.clone(), holders, bytes: 0 };
        Spool { held, folder: self.folder.clone(), pending: BytesMut::new(), file: None }
    }
}

/// Bytes of a body, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    pool: Pool,
    holders: Vec<Holder>,
    bytes: u64,
}

impl Held {
    /// Counts more bytes; 503 when a share is exhausted.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let most = pool.most();
        let limits: Vec<(Holder, u64)> =
            self.holders.iter().map(|it| (*it, most / it.divisor())).collect();
        pool.take(bytes, &limits).map_err(|_| {
            Problem::new(
                Code::Unavailable,
                "the server is receiving too many request bodies; try again later",
            )
        })?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.give_back(self.bytes, self.holders.iter().copied());
    }
}

/// A body that is received completely before it is read, so that no thread waits for its client.
pub(crate) struct Spool {
    held: Held,
    folder: PathBuf,
    pending: BytesMut,
    file: Option<File>,
}

impl Spool {
    /// Adds a piece.
    pub(crate) async fn add(&mut self, piece: &Bytes) -> Result<(), Problem> {
        self.held.add(piece.len())?;
        self.pending.extend_from_slice(piece);
        if self.pending.len() < PENDING {
            return Ok(());
        }
        let (file, folder) = (self.file.take(), self.folder.clone());
        let pending = self.pending.split().freeze();
        let written = spawn_blocking(move || {
            let mut file = if let Some(file) = file {
                file
            } else {
                fs::create_dir_all(&folder)?;
                tempfile::tempfile_in(&folder)?
            };
            file.write_all(&pending)?;
            Ok::<_, io::Error>(file)
        });
        let written = written.await.map_err(io::Error::other).and_then(|it| it);
        self.file = Some(written.map_err(|error| not_kept(&error))?);
        Ok(())
    }

    /// The whole body, and the count of its bytes, to be kept as long as it is read.
    pub(crate) fn into_reader(self) -> io::Result<(impl Read + Send + 'static, Held)> {
        let file: Box<dyn Read + Send> = match self.file {
            Some(mut file) => {
                file.rewind()?;
                Box::new(file)
            }
            None => Box::new(io::empty()),
        };
        Ok((file.chain(Cursor::new(self.pending)), self.held))
    }
}

/// The reply when a temporary file cannot be written or read.
pub(crate) fn not_kept(error: &io::Error) -> Problem {
    tracing::error!(%error, "could not keep a body in a temporary file");
    Problem::new(Code::Unavailable, "the server has no room for the body; try again later")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn strangers_hold_a_share_and_an_address_a_small_one() {
        let bodies = Bodies::new(std::env::temp_dir());
        let from = |last: u8| bodies.in_memory(unproven(IpAddr::from([203, 0, 113, last])));
        let mut greedy = from(1);
        assert!(greedy.add(1 << 20).is_ok());
        assert!(greedy.add(1).is_err(), "1 MiB for each address");
        let mut others: Vec<Held> = (2..=64).map(from).collect();
        assert!(others.iter_mut().all(|it| it.add(1 << 20).is_ok()));
        assert!(from(99).add(1).is_err(), "64 MiB for all without a credential");
        let org = Holder::Organization(OrgId(Uuid::from_u128(1)));
        let mut tokens = bodies.in_memory(vec![org]);
        assert!(tokens.add(60 << 20).is_ok(), "the rest is for tokens");
        drop(greedy);
        assert!(from(99).add(1).is_ok());
    }

    #[tokio::test]
    async fn a_large_body_is_read_from_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let bodies = Bodies::new(folder.path().join("new"));
        let mut spool = bodies.spool(Vec::new());
        let piece = Bytes::from((0..=255).cycle().take(700_000).collect::<Vec<u8>>());
        for _ in 0..4 {
            spool.add(&piece).await.expect("kept");
        }
        assert!(spool.file.is_some());
        let (mut reader, held) = spool.into_reader().expect("a reader");
        let mut read = Vec::new();
        reader.read_to_end(&mut read).expect("read");
        assert_eq!(read, piece.repeat(4));
        assert_eq!(held.bytes, 2_800_000);
    }
}
