//! Requests about monitors.

use serde::Deserialize;
use signalbox_domain::flaky::{
    Action, BranchClass, BranchPattern, BranchScope, Classification, FailureCount, FailureRate,
    Monitor, MonitorId, MonitorKind, PassOnRetry, Rule, Template,
};
use signalbox_domain::ids::RepoName;
use utoipa::ToSchema;

use super::super::field::{Errors, Field, object_form, shown};
use super::super::forms::{Count, Flag, List, Text};
use super::super::place::{RepoRef, Request, check_repository};
use super::id;
use super::settings::texts;

/// What is said of a monitor; what is left out stays, or is the default.
#[derive(Clone, Debug, Default)]
pub(crate) struct MonitorChange {
    name: Option<String>,
    enabled: Option<bool>,
    patterns: Option<Vec<String>>,
    classes: Option<Vec<BranchClass>>,
    action: Option<String>,
    labels: Option<Vec<String>>,
    remove_labels: Option<bool>,
    stale_timeout_hours: Option<u32>,
    recovery_days: Option<u32>,
    activation: Option<u32>,
    resolution: Option<u32>,
    window_hours: Option<u32>,
    min_sample: Option<u32>,
    count: Option<u32>,
    resolution_timeout_hours: Option<u32>,
}

impl MonitorChange {
    /// The monitor with this changed. The bounds are the domain's.
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
        match &mut to.rule {
            Rule::PassOnRetry(rule) => {
                rule.recovery_days = self.recovery_days.unwrap_or(rule.recovery_days);
            }
            Rule::FailureRate(rule) => {
                rule.activation_percent = self.activation.unwrap_or(rule.activation_percent);
                // Without a threshold of its own it resolves where it activates.
                let same = monitor.name.is_empty().then_some(rule.activation_percent);
                let resolution = self.resolution.or(same);
                rule.resolution_percent = resolution.unwrap_or(rule.resolution_percent);
                rule.window_hours = self.window_hours.unwrap_or(rule.window_hours);
                rule.min_sample = self.min_sample.unwrap_or(rule.min_sample);
            }
            Rule::FailureCount(rule) => {
                rule.count = self.count.unwrap_or(rule.count);
                rule.window_hours = self.window_hours.unwrap_or(rule.window_hours);
                rule.resolution_timeout_hours =
                    self.resolution_timeout_hours.unwrap_or(rule.resolution_timeout_hours);
            }
        }
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

/// A request with everything that can be said of a monitor, and some keys of its own.
macro_rules! monitor_requests {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty,)* })+) => {
        $(
            #[derive(Debug, Deserialize, ToSchema)]
            #[serde(rename_all = "camelCase")]
            $(#[$meta])*
            pub(crate) struct $name {
                /// The repository.
                #[schema(value_type = RepoRef, required)]
                repo: Field<RepoRef>,
                $($(#[$field_meta])* $field: $kind,)*
                /// 1 to 100 characters.
                #[schema(value_type = Option<String>)]
                name: Field<Text>,
                /// Whether it works.
                #[schema(value_type = Option<bool>)]
                enabled: Field<Flag>,
                /// 1 to 10 patterns of branches; `*` is any text, `?` is one character.
                #[schema(value_type = Option<Vec<String>>)]
                branch_scope: Field<List<Text>>,
                /// Classes of branches: `pull_request`, `merge`, `stable`, `other`; none means all.
                #[schema(value_type = Option<Vec<String>>)]
                branch_classes: Field<List<Text>>,
                /// `flaky`, `broken`, or `label` for a dry run.
                #[schema(value_type = Option<String>)]
                action: Field<Text>,
                /// 1 to 10 labels.
                #[schema(value_type = Option<Vec<String>>)]
                labels: Field<List<Text>>,
                /// Whether labels go when it resolves.
                #[schema(value_type = Option<bool>)]
                remove_labels_when_resolved: Field<Flag>,
                /// Hours without a run after which it resolves; 0: never.
                #[schema(value_type = Option<u32>, maximum = 1080)]
                stale_timeout_hours: Field<Count>,
                /// Of pass_on_retry.
                #[schema(value_type = Option<u32>, minimum = 1, maximum = 15)]
                recovery_days: Field<Count>,
                /// Of failure_rate, in percent.
                #[schema(value_type = Option<u32>, minimum = 1, maximum = 100)]
                activation_threshold: Field<Count>,
                /// Of failure_rate, in percent.
                #[schema(value_type = Option<u32>, minimum = 1, maximum = 100)]
                resolution_threshold: Field<Count>,
                /// Of failure_rate and failure_count.
                #[schema(value_type = Option<u32>, minimum = 1, maximum = 1080)]
                window_hours: Field<Count>,
                /// Of failure_rate.
                #[schema(value_type = Option<u32>, minimum = 1, maximum = 100_000)]
                minimum_sample_size: Field<Count>,
                /// Of failure_count.
                #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
                failure_count: Field<Count>,
                /// Of failure_count.
                #[schema(value_type = Option<u32>, minimum = 1, maximum = 1080)]
                resolution_timeout_hours: Field<Count>,
            }

            impl $name {
                fn change(
                    &mut self,
                    errors: &mut Errors,
                ) -> (Option<RepoName>, Option<MonitorChange>) {
                    let repo = check_repository(taken(&mut self.repo), errors);
                    let classes = texts(errors, "/branchClasses", taken(&mut self.branch_classes));
                    let classes = classes.map(|words| read_classes(errors, &words));
                    let action = errors.optional("/action", taken(&mut self.action));
                    let action = action.map(|Text(text)| read_action(errors, &text));
                    let patterns = texts(errors, "/branchScope", taken(&mut self.branch_scope));
                    let labels = texts(errors, "/labels", taken(&mut self.labels));
                    let name = errors.optional("/name", taken(&mut self.name)).map(|it| it.0);
                    let mut flag = |pointer, field: &mut Field<Flag>| {
                        errors.optional(pointer, taken(field)).map(|it| it.0)
                    };
                    let enabled = flag("/enabled", &mut self.enabled);
                    let remove_labels =
                        flag("/removeLabelsWhenResolved", &mut self.remove_labels_when_resolved);
                    let mut count = |pointer, field: &mut Field<Count>| {
                        errors.optional(pointer, taken(field)).map(|it| it.0)
                    };
                    let change = MonitorChange {
                        name,
                        enabled,
                        patterns,
                        classes: classes.flatten(),
                        action: action.flatten(),
                        labels,
                        remove_labels,
                        stale_timeout_hours: count(
                            "/staleTimeoutHours",
                            &mut self.stale_timeout_hours,
                        ),
                        recovery_days: count("/recoveryDays", &mut self.recovery_days),
                        activation: count("/activationThreshold", &mut self.activation_threshold),
                        resolution: count("/resolutionThreshold", &mut self.resolution_threshold),
                        window_hours: count("/windowHours", &mut self.window_hours),
                        min_sample: count("/minimumSampleSize", &mut self.minimum_sample_size),
                        count: count("/failureCount", &mut self.failure_count),
                        resolution_timeout_hours: count(
                            "/resolutionTimeoutHours",
                            &mut self.resolution_timeout_hours,
                        ),
                    };
                    (repo, Some(change))
                }
            }
        )+
    };
}

fn taken<T>(field: &mut Field<T>) -> Field<T> {
    std::mem::replace(field, Field::Absent)
}

fn read_classes(errors: &mut Errors, words: &[String]) -> Option<Vec<BranchClass>> {
    let read = words.iter().enumerate().map(|(at, word)| {
        let rule = "must be pull_request, merge, stable or other";
        let wrong = || format!("{rule}, but is {}", shown(word));
        errors.keep(&format!("/branchClasses/{at}"), BranchClass::parse(word).ok_or_else(wrong))
    });
    read.collect()
}

fn read_action(errors: &mut Errors, text: &str) -> Option<String> {
    let word = text.to_ascii_lowercase();
    let known = matches!(word.as_str(), "flaky" | "broken" | "label");
    let wrong = || format!("must be flaky, broken or label, but is {}", shown(text));
    errors.keep("/action", known.then_some(word).ok_or_else(wrong))
}

monitor_requests! {
    /// A new monitor.
    #[schema(example = json!({
        "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
        "type": "failure_rate", "name": "Often red on main", "branchClasses": ["stable"],
        "action": "broken", "activationThreshold": 80, "resolutionThreshold": 40,
        "windowHours": 6, "minimumSampleSize": 10
    }))]
    CreateMonitorRequest {
        /// `pass_on_retry`, `failure_rate` or `failure_count`; or a template.
        #[schema(value_type = Option<String>)]
        r#type: Field<Text>,
        /// `broken_on_stable` or `flaky_in_queue`: what is left out is as there.
        #[schema(value_type = Option<String>)]
        template: Field<Text>,
    }
    /// A monitor that does not exist, or a change of one that does.
    #[schema(example = json!({
        "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
        "template": "broken_on_stable", "windowHours": 12
    }))]
    PreviewMonitorRequest {
        /// `pass_on_retry`, `failure_rate` or `failure_count`; or a template.
        #[schema(value_type = Option<String>)]
        r#type: Field<Text>,
        /// `broken_on_stable` or `flaky_in_queue`: what is left out is as there.
        #[schema(value_type = Option<String>)]
        template: Field<Text>,
    }
    /// A change of a monitor: what is left out stays as it is.
    #[schema(example = json!({
        "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
        "monitorId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "recoveryDays": 14
    }))]
    UpdateMonitorRequest {
        /// The monitor.
        #[schema(value_type = String, required)]
        monitor_id: Field<Text>,
    }
}

/// The monitor that a new one starts as: a template's, or the defaults of its kind. A name is
/// needed unless the template gives one.
fn start(errors: &mut Errors, kind: Field<Text>, template: Field<Text>) -> Option<Monitor> {
    let nobody = MonitorId(uuid::Uuid::nil());
    if let Some(Text(text)) = errors.optional("/template", template) {
        let rule = "must be broken_on_stable or flaky_in_queue";
        let wrong = || format!("{rule}, but is {}", shown(&text));
        let template = errors.keep("/template", Template::parse(&text).ok_or_else(wrong));
        return template.map(|template| template.monitor(nobody));
    }
    let Text(text) = errors.required("/type", kind)?;
    let rule = "must be pass_on_retry, failure_rate or failure_count";
    let wrong = || format!("{rule}, but is {}", shown(&text));
    let rule = match errors.keep("/type", MonitorKind::parse(&text).ok_or_else(wrong))? {
        MonitorKind::PassOnRetry => Rule::PassOnRetry(PassOnRetry::default()),
        MonitorKind::FailureRate => Rule::FailureRate(FailureRate {
            activation_percent: 0,
            resolution_percent: 0,
            window_hours: 24,
            min_sample: 20,
        }),
        MonitorKind::FailureCount => Rule::FailureCount(FailureCount {
            count: 1,
            window_hours: 24,
            resolution_timeout_hours: 7 * 24,
        }),
    };
    Some(Monitor {
        id: nobody,
        name: String::new(),
        enabled: true,
        scope: BranchScope::all(),
        scope_since: None,
        action: Action::Classify(Classification::Flaky),
        rule,
        stale_timeout_hours: None,
    })
}

impl Request for CreateMonitorRequest {
    type Asked = (RepoName, Monitor);

    fn check(mut self, errors: &mut Errors) -> Option<Self::Asked> {
        let start = start(errors, taken(&mut self.r#type), taken(&mut self.template));
        let (repo, change) = self.change(errors);
        Some((repo?, change?.applied_to(&start?)))
    }
}

impl Request for PreviewMonitorRequest {
    type Asked = (RepoName, Monitor);

    fn check(mut self, errors: &mut Errors) -> Option<Self::Asked> {
        let start = start(errors, taken(&mut self.r#type), taken(&mut self.template));
        let (repo, change) = self.change(errors);
        let mut monitor = change?.applied_to(&start?);
        if monitor.name.is_empty() {
            "preview".clone_into(&mut monitor.name);
        }
        Some((repo?, monitor))
    }
}

impl Request for UpdateMonitorRequest {
    type Asked = (RepoName, MonitorId, MonitorChange);

    fn check(mut self, errors: &mut Errors) -> Option<Self::Asked> {
        let monitor = id(errors, "/monitorId", taken(&mut self.monitor_id));
        let (repo, change) = self.change(errors);
        Some((repo?, MonitorId(monitor?), change?))
    }
}

/// A monitor.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "monitorId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11"
}))]
pub(crate) struct MonitorRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The monitor.
    #[schema(value_type = String, required)]
    monitor_id: Field<Text>,
}

impl Request for MonitorRequest {
    type Asked = (RepoName, MonitorId);

    fn check(self, errors: &mut Errors) -> Option<Self::Asked> {
        let repo = check_repository(self.repo, errors);
        let monitor = id(errors, "/monitorId", self.monitor_id);
        Some((repo?, MonitorId(monitor?)))
    }
}

object_form!(CreateMonitorRequest, PreviewMonitorRequest, UpdateMonitorRequest, MonitorRequest,);
