//! Which lines of a comment its author has written as plain text: GitHub's own reading of Markdown
//! finds code, quotes, and hidden text.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Replaces everything that is not plain text within a line. No command starts with it.
const LEFT_OUT: char = '`';

/// The lines of the paragraphs and headings that are part of nothing else: not of a quote, a list,
/// or code. Code within them is replaced, and comments and other HTML are omitted, so a line that
/// starts with a command is shown as one.
pub(crate) fn plain_lines(comment: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut depth, mut block, mut hidden) = (0_u32, None, Vec::new());
    for (event, range) in Parser::new_ext(comment, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::Paragraph | Tag::Heading { .. }) if depth == 0 => {
                (depth, block) = (1, Some(range));
                hidden.clear();
            }
            Event::End(TagEnd::Paragraph | TagEnd::Heading(_)) if depth == 1 => {
                depth = 0;
                if let Some(block) = block.take() {
                    lines.extend(shown(comment, &block, &hidden).lines().map(ToOwned::to_owned));
                }
            }
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Code(_) => hidden.push((range, true)),
            Event::InlineHtml(_) => hidden.push((range, false)),
            Event::Text(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }
    lines
}

/// The source of a block; hidden parts, in their order, keep their line ends only.
fn shown(source: &str, block: &Range<usize>, hidden: &[(Range<usize>, bool)]) -> String {
    let text = source.get(block.clone()).unwrap_or_default();
    let mut hidden = hidden.iter().peekable();
    text.char_indices()
        .filter_map(|(at, sign)| {
            let at = block.start + at;
            while hidden.next_if(|(range, _)| range.end <= at).is_some() {}
            match hidden.peek().filter(|(range, _)| range.contains(&at)) {
                Some(_) if sign == '\n' => Some('\n'),
                Some((_, true)) => Some(LEFT_OUT),
                Some((_, false)) => None,
                None => Some(sign),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use signalbox_services::CommentCommand;

    use super::*;

    fn acts(comment: &str) -> bool {
        CommentCommand::parse("/signalbox", &plain_lines(comment)).is_some()
    }

    #[test]
    fn a_line_of_plain_text_acts() {
        for comment in [
            "/signalbox merge",
            "  /signalbox merge  ",
            "thanks!\n/signalbox merge",
            "thanks!\r\n\r\n/signalbox merge\r\n",
            "```\ncode\n```\n/signalbox merge",
            "> quoted\n\n/signalbox merge",
            "<!-- hidden -->\n\n/signalbox merge",
            "- a list\n\n/signalbox merge",
            "/signalbox merge\n--\nAda",
            "text\n    /signalbox merge",
            "see `code`\n/signalbox merge",
            "/signalbox merge `--force`",
        ] {
            assert!(acts(comment), "{comment:?}");
        }
    }

    #[test]
    fn code_quotes_and_hidden_text_do_not_act() {
        for comment in [
            "```\n/signalbox merge\n```",
            "```sh\n/signalbox merge\n```",
            "~~~\n/signalbox merge\n~~~",
            "~~~~\n~~~\n/signalbox merge\n~~~~",
            "```\n/signalbox merge",
            "````\n```\n/signalbox merge\n```\n````",
            "    /signalbox merge",
            "\t/signalbox merge",
            "text\n\n    /signalbox merge",
            "`/signalbox merge`",
            "`a\n/signalbox merge\nb`",
            "``a `\n/signalbox merge\n``",
            "> /signalbox merge",
            ">/signalbox merge",
            "> quoted\n/signalbox merge",
            "> > quoted\n> /signalbox merge",
            "> ```\n> /signalbox merge\n> ```",
            "<!-- /signalbox merge -->",
            "<!-- a --> /signalbox merge",
            "<!--\n/signalbox merge\n-->",
            "text <!--\n/signalbox merge\n--> text",
            "<!--\n\n/signalbox merge\n\n-->",
            "<pre>\n/signalbox merge\n</pre>",
            "<details>\n/signalbox merge\n</details>",
            "- /signalbox merge",
            "1. /signalbox merge",
            "- item\n  /signalbox merge",
            "# /signalbox merge",
            "**/signalbox merge**",
            "[/signalbox merge](https://x.example)",
            "\\/signalbox merge",
            "see /signalbox merge",
            "/signalboxx merge",
            "",
        ] {
            assert!(!acts(comment), "{comment:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>()) {
            let lines = plain_lines(&text);
            prop_assert!(lines.iter().all(|line| line.len() <= text.len() + 1));
        }

        #[test]
        fn nothing_in_a_fence_acts(text in "[a-z/ \n#>`-]{0,60}") {
            let fenced = format!("`````\n{text}\n/signalbox merge\n");
            prop_assume!(!text.contains("`````"));
            prop_assert!(!acts(&fenced));
        }
    }
}
