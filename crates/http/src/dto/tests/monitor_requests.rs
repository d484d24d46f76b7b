//! Requests about monitors.

use serde::Deserialize;
use signalbox_domain::flaky::{BranchClass, Monitor, MonitorId, check_labels, check_name};
use signalbox_domain::ids::RepoName;
use utoipa::ToSchema;

use super::super::field::{Errors, Field, object_form, shown};
use super::super::forms::{Count, Flag, List, Text};
use super::super::place::{RepoRef, Request, check_repository};
use super::super::shapes::{BranchPatternText, LabelText};
use super::super::words::{BranchClassWord, MonitorActionWord, MonitorKindWord, TemplateWord};
use super::id;
use super::monitor_change::{MonitorChange, start};
use super::monitor_parameters::{WithParameters, add_refusal};
use super::settings::texts;

/// A request with all fields of a monitor, and some keys of its own.
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
                #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
                name: Field<Text>,
                /// Whether it is enabled.
                #[schema(value_type = Option<bool>)]
                enabled: Field<Flag>,
                /// 1 to 10 patterns of branches; `*` is any text, `?` is one character.
                #[schema(value_type = Option<Vec<BranchPatternText>>, min_items = 1, max_items = 10)]
                branch_scope: Field<List<Text>>,
                /// Classes of branches: `pull_request`, `merge`, `stable`, `other`; none means all.
                #[schema(value_type = Option<Vec<BranchClassWord>>)]
                branch_classes: Field<List<Text>>,
                /// `flaky`, `broken`, or `label` for a dry run.
                #[schema(value_type = Option<MonitorActionWord>)]
                action: Field<Text>,
                /// 1 to 10 labels.
                #[schema(value_type = Option<Vec<LabelText>>, min_items = 1, max_items = 10)]
                labels: Field<List<Text>>,
                /// Whether to remove its labels when it resolves.
                #[schema(value_type = Option<bool>)]
                remove_labels_when_resolved: Field<Flag>,
                /// Hours without a run after which it resolves; 0: never.
                #[schema(value_type = Option<u32>, maximum = 1080)]
                stale_timeout_hours: Field<Count>,
            }

            impl $name {
                fn change(
                    &mut self,
                    errors: &mut Errors,
                    parameters: Vec<(&'static str, u32)>,
                ) -> (Option<RepoName>, Option<MonitorChange>) {
                    let repo = check_repository(taken(&mut self.repo), errors);
                    let classes = texts(errors, "/branchClasses", taken(&mut self.branch_classes));
                    let classes = classes.map(|words| read_classes(errors, &words));
                    let action = errors.optional("/action", taken(&mut self.action));
                    let action = action.map(|Text(text)| read_action(errors, &text));
                    let patterns = texts(errors, "/branchScope", taken(&mut self.branch_scope));
                    let labels = texts(errors, "/labels", taken(&mut self.labels));
                    add_refusal(errors, labels.as_deref().map_or(Ok(()), check_labels));
                    let name = errors.optional("/name", taken(&mut self.name)).map(|it| it.0);
                    add_refusal(errors, name.as_deref().map_or(Ok(()), check_name));
                    let mut flag = |pointer, field: &mut Field<Flag>| {
                        errors.optional(pointer, taken(field)).map(|it| it.0)
                    };
                    let enabled = flag("/enabled", &mut self.enabled);
                    let remove_labels =
                        flag("/removeLabelsWhenResolved", &mut self.remove_labels_when_resolved);
                    let stale = taken(&mut self.stale_timeout_hours);
                    let stale = errors.optional("/staleTimeoutHours", stale).map(|it| it.0);
                    let change = MonitorChange {
                        name,
                        enabled,
                        patterns,
                        classes: classes.flatten(),
                        action: action.flatten(),
                        labels,
                        remove_labels,
                        stale_timeout_hours: stale,
                        parameters,
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
        /// The kind; required without a template, otherwise that of the template.
        #[schema(value_type = Option<MonitorKindWord>)]
        r#type: Field<Text>,
        /// The template of omitted fields.
        #[schema(value_type = Option<TemplateWord>)]
        template: Field<Text>,
    }
    /// A new monitor, or a change of an existing one, to preview.
    #[schema(example = json!({
        "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
        "template": "broken_on_stable", "windowHours": 12
    }))]
    PreviewMonitorRequest {
        /// The kind; required without a template, otherwise that of the template.
        #[schema(value_type = Option<MonitorKindWord>)]
        r#type: Field<Text>,
        /// The template of omitted fields.
        #[schema(value_type = Option<TemplateWord>)]
        template: Field<Text>,
    }
    /// A change of a monitor; omitted fields are unchanged.
    #[schema(example = json!({
        "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
        "monitorId": "0b7d6f5e-6f0e-4f2a-9d58-1d3f6f0f8a11", "recoveryDays": 14
    }))]
    UpdateMonitorRequest {
        /// The monitor.
        #[schema(value_type = String, required, format = Uuid)]
        monitor_id: Field<Text>,
    }
}

impl Request for WithParameters<CreateMonitorRequest> {
    type Checked = (RepoName, Monitor);

    fn check(mut self, errors: &mut Errors) -> Option<Self::Checked> {
        let parameters = self.take(errors);
        let mut request = self.request;
        let start = start(errors, taken(&mut request.r#type), taken(&mut request.template));
        let (repo, change) = request.change(errors, parameters);
        Some((repo?, change?.applied_to(&start?)))
    }
}

impl Request for WithParameters<PreviewMonitorRequest> {
    type Checked = (RepoName, Monitor);

    fn check(mut self, errors: &mut Errors) -> Option<Self::Checked> {
        let parameters = self.take(errors);
        let mut request = self.request;
        let start = start(errors, taken(&mut request.r#type), taken(&mut request.template));
        let (repo, change) = request.change(errors, parameters);
        let mut monitor = change?.applied_to(&start?);
        if monitor.name.is_empty() {
            "preview".clone_into(&mut monitor.name);
        }
        Some((repo?, monitor))
    }
}

impl Request for WithParameters<UpdateMonitorRequest> {
    type Checked = (RepoName, MonitorId, MonitorChange);

    fn check(mut self, errors: &mut Errors) -> Option<Self::Checked> {
        let parameters = self.take(errors);
        let mut request = self.request;
        let monitor = id(errors, "/monitorId", taken(&mut request.monitor_id));
        let (repo, change) = request.change(errors, parameters);
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
    #[schema(value_type = String, required, format = Uuid)]
    monitor_id: Field<Text>,
}

impl Request for MonitorRequest {
    type Checked = (RepoName, MonitorId);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let repo = check_repository(self.repo, errors);
        let monitor = id(errors, "/monitorId", self.monitor_id);
        Some((repo?, MonitorId(monitor?)))
    }
}

object_form!(MonitorRequest);
