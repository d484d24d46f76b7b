//! Counting of what goes into and comes out of the decompressor, with the limits on both.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use super::error::BundleError;
use super::limits::{BundleLimit, BundleLimits};

/// The state that the two counting readers share.
pub(super) struct ByteBudget {
    limits: BundleLimits,
    compressed: Cell<u64>,
    unpacked: Cell<u64>,
    breach: Cell<Option<(BundleLimit, u64)>>,
    input_failed: Cell<bool>,
}

impl ByteBudget {
    pub(super) fn new(limits: &BundleLimits) -> Rc<Self> {
        Rc::new(Self {
            limits: *limits,
            compressed: Cell::new(0),
            unpacked: Cell::new(0),
            breach: Cell::new(None),
            input_failed: Cell::new(false),
        })
    }

    pub(super) fn compressed(&self) -> u64 {
        self.compressed.get()
    }

    pub(super) fn unpacked(&self) -> u64 {
        self.unpacked.get()
    }

    /// The limit that was passed, if one was.
    pub(super) fn breach(&self) -> Result<(), BundleError> {
        match self.breach.get() {
            Some((limit, most)) => Err(BundleError::Limit { limit, most }),
            None => Ok(()),
        }
    }

    /// What an error of the archive's reader means.
    pub(super) fn meaning(&self, error: io::Error) -> BundleError {
        if let Err(breach) = self.breach() {
            return breach;
        }
        if self.input_failed.get() {
            return BundleError::Io(error);
        }
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return BundleError::Truncated;
        }
        BundleError::Corrupt { rule: error.to_string().chars().take(200).collect() }
    }

    fn check(&self) -> io::Result<()> {
        let (compressed, unpacked) = (self.compressed(), self.unpacked());
        let Self { limits, .. } = self;
        let breach = if compressed > limits.compressed {
            Some((BundleLimit::Compressed, limits.compressed))
        } else if unpacked > limits.unpacked {
            Some((BundleLimit::Unpacked, limits.unpacked))
        } else if unpacked > limits.ratio_free && unpacked / limits.ratio.max(1) > compressed {
            Some((BundleLimit::Ratio, limits.ratio))
        } else {
            return Ok(());
        };
        self.breach.set(breach);
        Err(io::Error::other("a limit of the bundle was exceeded"))
    }
}

/// Counts the bytes of the bundle itself.
pub(super) struct Compressed<R> {
    pub(super) input: R,
    pub(super) byte_budget: Rc<ByteBudget>,
}

impl<R: Read> Read for Compressed<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(room).inspect_err(|error| {
            self.byte_budget.input_failed.set(error.kind() != io::ErrorKind::Interrupted);
        })?;
        self.byte_budget.compressed.set(self.byte_budget.compressed().saturating_add(count(read)));
        self.byte_budget.check()?;
        Ok(read)
    }
}

/// Counts the bytes of the archive in it.
pub(super) struct Unpacked<R> {
    pub(super) input: R,
    pub(super) byte_budget: Rc<ByteBudget>,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(room)?;
        self.byte_budget.unpacked.set(self.byte_budget.unpacked().saturating_add(count(read)));
        self.byte_budget.check()?;
        Ok(read)
    }
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
