//! Input of commands.

use std::io::{self, Read as _};
use std::path::Path;

/// The text of a file, or of the standard input for `-`.
pub fn read(file: &Path) -> io::Result<String> {
    if file.as_os_str() != "-" {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
