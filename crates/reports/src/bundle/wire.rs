//! Protobuf's wire format, one field at a time, without copying.

use thiserror::Error;

/// Why bytes are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The message ends inside a field.
    #[error("a message ends inside a field")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("a number has more than 64 bits")]
    Number,
    /// A field's number or type is not of proto3.
    #[error("a field's number or type is not of proto3")]
    Key,
}

/// Calls `take` with each length-delimited field: its number, its place in the message and its
/// bytes. Skips the other fields.
pub(super) fn each_bytes<'a, E: From<WireError>>(
    whole: &'a [u8],
    mut take: impl FnMut(u64, usize, &'a [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut message = whole;
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let (number, kind) = (key >> 3, key & 0b111);
        if number == 0 || number > 0x1fff_ffff {
            return Err(WireError::Key.into());
        }
        match kind {
            0 => {
                varint(&mut message)?;
            }
            1 => {
                bytes(&mut message, 8)?;
            }
            2 => {
                let length = varint(&mut message)?;
                let field = bytes(&mut message, length)?;
                take(number, whole.len() - message.len() - field.len(), field)?;
            }
            5 => {
                bytes(&mut message, 4)?;
            }
            _ => return Err(WireError::Key.into()),
        }
    }
    Ok(())
}

fn varint(message: &mut &[u8]) -> Result<u64, WireError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first().ok_or(WireError::Truncated)?;
        *message = rest;
        if shift == 63 && *byte > 1 {
            return Err(WireError::Number);
        }
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(WireError::Number)
}

fn bytes<'a>(message: &mut &'a [u8], length: u64) -> Result<&'a [u8], WireError> {
    let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
    let (field, rest) = message.split_at_checked(length).ok_or(WireError::Truncated)?;
    *message = rest;
    Ok(field)
}
