//! A new secret. Only this page shows it.

use signalbox_wording::Tone;

use crate::model::{Block, Cell, Page, Section};

/// The page.
pub(crate) fn page(title: &str, secret: &str, next: &str, back: &str) -> Page {
    let notice = Block::notice(
        Tone::Warning,
        "warning",
        "This is shown only once.",
        "Copy it now; it cannot be shown again.",
    );
    Page {
        title: title.to_owned(),
        sections: vec![
            Section::new("secret", "Secret")
                .with(notice)
                .with(Block::Pre(secret.to_owned()))
                .with(Block::Text(next.to_owned()))
                .with(Block::Links(vec![Cell::text("Done").link(back)])),
        ],
        ..Page::default()
    }
}
