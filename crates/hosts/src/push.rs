//! A push to `refs/for/…`.

use signalbox_domain::ports::StoredPullRequest;
use thiserror::Error;

/// One ref of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushCommand {
    /// The commit that is pushed; all zeros to delete.
    pub new: String,
    /// The ref.
    pub refname: String,
}

/// A push as git hands it to the hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushRequest {
    /// The refs of the push.
    pub commands: Vec<PushCommand>,
    /// The push options as given: `name=value` or `name`.
    pub options: Vec<String>,
}

/// The options of a push. The first of two values counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushOptions {
    /// The topic, under which later pushes update the pull request.
    pub topic: Option<String>,
    /// The title; default: the subject of the head commit.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// Whether to submit the pull request to the merge queue of its target.
    pub submit: bool,
}

/// A push option that does not exist or lacks its value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{problem}: expected topic=NAME, title=TEXT, description=TEXT or submit, each after its own -o"
)]
pub struct InvalidPushOption {
    problem: String,
}

impl PushOptions {
    /// Reads the options of a push.
    pub fn parse(given: &[String]) -> Result<Self, InvalidPushOption> {
        let mut options = Self::default();
        for text in given {
            let invalid = |what: &str| InvalidPushOption { problem: format!("{what} {text:?}") };
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text.as_str(), None),
            };
            let kept = match name {
                "topic" => &mut options.topic,
                "title" => &mut options.title,
                "description" => &mut options.description,
                "submit" if value.is_none() => {
                    options.submit = true;
                    continue;
                }
                "submit" => return Err(invalid("unexpected value in push option")),
                _ => return Err(invalid("unknown push option")),
            };
            let value = value.ok_or_else(|| invalid("missing value of push option"))?;
            kept.get_or_insert_with(|| value.to_owned());
        }
        Ok(options)
    }
}

/// The pull request of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedPullRequest {
    /// The pull request after the push.
    pub pull_request: StoredPullRequest,
    /// Whether the push opened it.
    pub is_new: bool,
}

/// The change of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushAnswer {
    /// The ref.
    pub refname: String,
    /// The pull request, or why there is none.
    pub outcome: Result<PushedPullRequest, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &[&str]) -> Result<PushOptions, String> {
        let given: Vec<String> = given.iter().map(|&text| text.to_owned()).collect();
        PushOptions::parse(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_and_the_first_value_counts() {
        let read = parse(&["topic=fix", "title=a=b", "topic=other", "submit"]).expect("valid");
        assert_eq!((read.topic.as_deref(), read.title.as_deref()), (Some("fix"), Some("a=b")));
        assert!(read.submit && read.description.is_none());
        assert_eq!(parse(&[]), Ok(PushOptions::default()));
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_known_ones() {
        for (given, problem) in [
            ("sumbit", "unknown push option \"sumbit\": expected topic=NAME,"),
            ("topic", "missing value of push option \"topic\": expected"),
            ("submit=yes", "unexpected value in push option \"submit=yes\": expected"),
        ] {
            let words = parse(&["title=x", given]).expect_err(given);
            assert!(words.starts_with(problem), "{words}");
        }
    }
}
