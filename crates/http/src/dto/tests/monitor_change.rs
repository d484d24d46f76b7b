//! The fields of monitors in requests.

use signalbox_domain::flaky::{
    Action, BranchClass, BranchPattern, BranchScope, Classification, Monitor, MonitorId,
    MonitorKind, Template,
};

use super::super::field::{Errors, Field, shown};
use super::super::forms::Text;
use super::monitor_parameters::kinds;

/// The fields of a monitor in a request; an omitted field keeps its value, or its default.
#[derive(Clone, Debug, Default)]
pub(crate) struct MonitorChange {
    pub(super) name: Option<String>,
    pub(super) enabled: Option<bool>,
    pub(super) patterns: Option<Vec<String>>,
    pub(super) classes: Option<Vec<BranchClass>>,
    pub(super) action: Option<String>,
    pub(super) labels: Option<Vec<String>>,
    pub(super) remove_labels: Option<bool>,
    pub(super) stale_timeout_hours: Option<u32>,
    /// The parameters by name.
    pub(super) parameters: Vec<(&'static str, u32)>,
}

impl MonitorChange {
    /// The changed monitor. The domain checks the bounds.
    pub(crate) fn applied_to(&self, monitor: &Monitor) -> Monitor {
        let mut to = monitor.clone();
        if let Some(name) = &self.name {
            to.name.clone_from(name);
        }
        to.enabled = self.enabled.unwrap_or(to.enabled);
        if let Some(patterns) = &self.patterns {
            to.scope.patterns = patterns.iter().cloned().map(BranchPattern).collect();
        }
        if let Some(classes) = &self.classes {
            to.scope.classes.clone_from(classes);
        }
        to.action = self.action_after(to.action);
        to.stale_timeout_hours = match self.stale_timeout_hours {
            None => to.stale_timeout_hours,
            Some(0) => None,
            Some(hours) => Some(hours),
        };
        to.rule = if monitor.name.is_empty() {
            monitor.rule.kind().start_with(&self.parameters)
        } else {
            monitor.rule.with(&self.parameters)
        };
        to
    }

    fn action_after(&self, before: Action) -> Action {
        let labels = |before: Action| match before {
            Action::Label { labels, remove_when_resolved } => (labels, remove_when_resolved),
            Action::Classify(_) => (Vec::new(), true),
        };
        let is_label = match self.action.as_deref() {
            Some("flaky") => return Action::Classify(Classification::Flaky),
            Some("broken") => return Action::Classify(Classification::Broken),
            Some(_) => true,
            None => matches!(before, Action::Label { .. }),
        };
        if !is_label {
            return before;
        }
        let (known, remove) = labels(before);
        Action::Label {
            labels: self.labels.clone().unwrap_or(known),
            remove_when_resolved: self.remove_labels.unwrap_or(remove),
        }
    }
}

/// The monitor that a new one starts as: a template's, or the defaults of its kind. A name is
/// needed unless the template gives one.
pub(super) fn start(
    errors: &mut Errors,
    kind: Field<Text>,
    template: Field<Text>,
) -> Option<Monitor> {
    let unsaved = MonitorId(uuid::Uuid::nil());
    if let Some(Text(text)) = errors.optional("/template", template) {
        let rule = "must be broken_on_stable or flaky_in_queue";
        let wrong = || format!("{rule}, but is {}", shown(&text));
        let template = errors.keep("/template", Template::parse(&text).ok_or_else(wrong));
        let start = template.map(|template| template.monitor(unsaved))?;
        if let Some(kind) = errors.optional("/type", kind) {
            let own = start.rule.kind().as_str();
            if !kind.0.eq_ignore_ascii_case(own) {
                let rule = format!("must be {own}, as in the template, but is {}", shown(&kind.0));
                errors.add("/type", rule);
            }
        }
        return Some(start);
    }
    let Text(text) = errors.required("/type", kind)?;
    let wrong = || format!("must be {}, but is {}", kinds(), shown(&text));
    let kind = errors.keep("/type", MonitorKind::parse(&text).ok_or_else(wrong))?;
    Some(Monitor {
        id: unsaved,
        name: String::new(),
        enabled: true,
        scope: BranchScope::all(),
        scope_since: None,
        action: Action::Classify(Classification::Flaky),
        rule: kind.start_with(&[]),
        stale_timeout_hours: None,
    })
}
