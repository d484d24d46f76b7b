//! What is made from the command line itself: completions and manual pages.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::command;
use crate::error::AppError;

/// The kinds of manuals.
#[derive(Subcommand)]
pub(crate) enum Manuals {
    /// Print the completions of a shell.
    #[command(
        after_help = "Example: signalbox completions bash > /etc/bash_completion.d/signalbox\nExample: signalbox completions zsh > ~/.zfunc/_signalbox\nExample: signalbox completions fish > ~/.config/fish/completions/signalbox.fish"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands into a folder.
    #[command(after_help = "Example: signalbox man /usr/local/share/man/man1")]
    Man {
        /// The folder; created when it does not exist.
        folder: Option<PathBuf>,
    },
}

impl Manuals {
    /// The text to print; nothing when files were written.
    pub(crate) fn text(self) -> Result<String, AppError> {
        let mut text = Vec::new();
        match self {
            Self::Completions { shell } => {
                clap_complete::generate(shell, &mut command(), "signalbox", &mut text);
            }
            Self::Man { folder: None } => Man::new(command()).render(&mut text)?,
            Self::Man { folder: Some(folder) } => {
                written(&folder).map_err(AppError::failed(folder.display().to_string()))?;
            }
        }
        Ok(String::from_utf8_lossy(&text).trim_end().to_owned())
    }
}

fn written(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command(), folder)
}
