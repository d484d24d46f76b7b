//! Whose share a pull request counts for: its author's, or that of the agent that a label names.

use super::{PullRequest, Settings, batch};

/// The author of a pull request, or its first label of an agent. Empty if the author is unknown.
pub(super) fn of<'a>(settings: &Settings, pull_request: &'a PullRequest) -> &'a str {
    let PullRequest { author, labels, .. } = pull_request;
    if settings.agent_labels.is_empty() || labels.is_empty() {
        return author;
    }
    let patterns: Vec<String> = settings.agent_labels.iter().map(|it| it.to_lowercase()).collect();
    let lower = labels.iter().map(|label| (label.to_lowercase(), label));
    let agents =
        lower.filter(|(lower, _)| patterns.iter().any(|pattern| batch::matches(pattern, lower)));
    agents.min().map_or(author, |(_, label)| label)
}
