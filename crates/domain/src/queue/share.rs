//! Whose share a pull request counts for: its author's, or that of the agent that a label names.

use super::{PullRequest, Settings, batch};

/// The author of a pull request, or its first label of an agent. Empty if the author is unknown.
pub(super) fn of<'a>(settings: &Settings, pull_request: &'a PullRequest) -> &'a str {
    let patterns = &settings.agent_labels;
    if patterns.is_empty() {
        return &pull_request.author;
    }
    let is_agent = |label: &&String| {
        let label = label.to_lowercase();
        patterns.iter().any(|pattern| batch::matches(&pattern.to_lowercase(), &label))
    };
    pull_request.labels.iter().filter(is_agent).min().unwrap_or(&pull_request.author)
}
