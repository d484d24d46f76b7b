//! A secret that was just made. It is on this page and never again.

use signalbox_wording::Tone;

use crate::model::{Block, Cell, Page, Section};

/// The page.
pub(crate) fn page(title: &str, secret: &str, next: &str, back: &str) -> Page {
    let notice = Block::notice(
        Tone::Warning,
        "warning",
        "This is shown once.",
        "Copy it now; nobody can see it again.",
    );
    Page {
        title: title.to_owned(),
        sections: vec![
            Section::new("secret", "Secret")
                .with(notice)
                .with(Block::Pre(secret.to_owned()))
                .with(Block::Text(next.to_owned()))
                .with(Block::Links(vec![Cell::text("I have copied it").link(back)])),
        ],
        ..Page::default()
    }
}
