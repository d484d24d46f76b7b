//! Bundles made for tests.

use std::io::Read;

use tar::{Builder, EntryType, Header};

/// An archive that may break rules.
#[derive(Default)]
pub(crate) struct ArchiveBuilder {
    entries: Vec<(Header, Vec<u8>)>,
}

impl ArchiveBuilder {
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(name, content.as_ref(), EntryType::Regular, None)
    }

    /// `claim` is the size that the header states, when it is not the true one.
    pub(crate) fn entry(
        mut self,
        name: &str,
        content: &[u8],
        kind: EntryType,
        claim: Option<u64>,
    ) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(claim.unwrap_or(u64::try_from(content.len()).expect("a length")));
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        self.entries.push((header, content.to_vec()));
        self
    }

    pub(crate) fn archive(&self) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (header, content) in &self.entries {
            archive.append(header, &content[..]).expect("memory");
        }
        archive.into_inner().expect("memory")
    }

    pub(crate) fn packed(&self) -> Vec<u8> {
        packed(&self.archive()[..])
    }
}

/// Compressed as the uploader does, but faster.
pub(crate) fn packed(content: impl Read) -> Vec<u8> {
    zstd::encode_all(content, 3).expect("memory")
}

/// A protobuf message of length-delimited fields.
pub(crate) fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut message = Vec::new();
    for (number, field) in fields {
        message.push(number << 3 | 2);
        prost::encode_length_delimiter(field.len(), &mut message).expect("memory");
        message.extend_from_slice(field);
    }
    message
}
