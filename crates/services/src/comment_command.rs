//! Commands in comments: `/signalbox merge --priority high`.

use signalbox_domain::queue::Priority;

/// The highest priority number.
const MAX_PRIORITY: u32 = 255;

/// A command in a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommentCommand {
    /// Submits the pull request.
    Merge {
        /// The priority, if given.
        priority: Option<Priority>,
        /// Whether to test it alone, if given.
        no_batch: Option<bool>,
        /// Whether to submit it even if the host reports it as not mergeable.
        force: bool,
    },
    /// Cancels the pull request.
    Cancel,
    /// Restarts the tests.
    Restart,
}

impl CommentCommand {
    /// Parses the first line that starts with the prefix; `None` if there is none. The error names
    /// the unknown argument. `lines` come from
    /// [`Forge::plain_lines`](signalbox_domain::ports::Forge::plain_lines), without code, quotes
    /// and hidden text.
    pub fn parse(prefix: &str, lines: &[String]) -> Option<Result<Self, String>> {
        let line = lines.iter().find_map(|line| {
            let rest = line.trim().strip_prefix(prefix)?;
            (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest)
        })?;
        Some(Self::of_words(line.split_whitespace()))
    }

    fn of_words<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let command = match words.next() {
            Some("merge") => return Self::merge(words),
            Some("cancel") => Self::Cancel,
            Some("restart") => Self::Restart,
            Some(other) => {
                return Err(format!(
                    "unknown command {other:?}: expected merge, cancel or restart"
                ));
            }
            None => return Err("missing command: expected merge, cancel or restart".to_owned()),
        };
        match words.next() {
            Some(more) => Err(format!("unexpected argument {more:?}")),
            None => Ok(command),
        }
    }

    fn merge<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let (mut priority, mut no_batch, mut force) = (None, None, false);
        while let Some(word) = words.next() {
            let (flag, inline) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (word, None),
            };
            match (flag, inline) {
                ("--no-batch", None) => no_batch = Some(true),
                ("--force", None) => force = true,
                ("--priority" | "-p", _) => {
                    let value = inline.or_else(|| words.next()).unwrap_or_default();
                    priority = Some(read_priority(value)?);
                }
                (_, _) => return Err(format!("unknown option {word:?} of merge")),
            }
        }
        Ok(Self::Merge { priority, no_batch, force })
    }
}

fn read_priority(text: &str) -> Result<Priority, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX_PRIORITY).map(Priority::number);
    number.or_else(|| Priority::named(text)).ok_or_else(|| {
        format!("invalid priority {text:?}: expected urgent, high, medium, low or a number from 0 to {MAX_PRIORITY}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Option<Result<CommentCommand, String>> {
        let lines: Vec<String> = body.lines().map(ToOwned::to_owned).collect();
        CommentCommand::parse("/signalbox", &lines)
    }

    fn merge(priority: Option<u32>, no_batch: Option<bool>, force: bool) -> CommentCommand {
        CommentCommand::Merge { priority: priority.map(Priority::number), no_batch, force }
    }

    #[test]
    fn commands_are_parsed() {
        for (body, wanted) in [
            ("/signalbox merge", merge(None, None, false)),
            ("  /signalbox   merge --priority high ", merge(Some(10), None, false)),
            ("/signalbox merge --priority=7 --no-batch", merge(Some(7), Some(true), false)),
            ("/signalbox merge -p urgent --force", merge(Some(0), None, true)),
            ("thanks!\n\n/signalbox cancel\nbye", CommentCommand::Cancel),
            ("/signalbox restart\r\n", CommentCommand::Restart),
        ] {
            assert_eq!(parse(body), Some(Ok(wanted)), "{body}");
        }
    }

    #[test]
    fn an_unknown_command_is_an_error_and_other_text_is_ignored() {
        for body in ["", "hello", "> /signalbox merge", "/signalboxx merge", "see /signalbox merge"]
        {
            assert_eq!(parse(body), None, "{body}");
        }
        for body in [
            "/signalbox",
            "/signalbox please",
            "/signalbox cancel now",
            "/signalbox merge --priority",
            "/signalbox merge --priority 256",
            "/signalbox merge --fast",
            "/signalbox merge --no-batch=x",
        ] {
            assert!(parse(body).is_some_and(|it| it.is_err()), "{body}");
        }
    }
}
