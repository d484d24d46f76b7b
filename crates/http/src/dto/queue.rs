//! A queue as clients see it.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use signalbox_domain::queue::{
    Freeze, PartialFreeze, Queue, QueueState, SETTINGS, Settings, view_queue,
};
use signalbox_domain::token::EnumCase;
use signalbox_services::SeenQueue;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::place::ShownRepo;
use super::setting;
use super::words::{ModeWord, QueueStateWord};
use super::{ListedEntry, Words};

/// State and settings of a queue. While modes are switched, `mode` is the new one.
#[derive(Debug)]
pub(crate) struct SettingsReply {
    state: String,
    branch: String,
    settings: Settings,
    words: Words,
    paused_by: Option<String>,
    paused_reason: Option<String>,
    freeze: Option<FreezeReply>,
    partial_freezes: Vec<PartialFreezeReply>,
}

/// A freeze in force.
#[derive(Clone, Debug, serde::Serialize, ToSchema)]
struct FreezeReply {
    /// When it ends; null for a freeze without an end.
    #[schema(required, format = DateTime)]
    until: Option<String>,
    /// The reason given in its rule.
    #[schema(required)]
    reason: Option<String>,
}

impl FreezeReply {
    fn of(queue: &Queue) -> Option<Self> {
        let Freeze { until, reason } = queue.header.freeze.in_force.clone()?;
        Some(Self { until: until.map(|until| until.to_string()), reason })
    }
}

/// A freeze in force that applies only to some pull requests.
#[derive(Clone, Debug, serde::Serialize, ToSchema)]
struct PartialFreezeReply {
    /// The labels and impacted targets that it applies to, as in its rule.
    #[schema(max_length = 512, example = "target:ios-*; !label:docs")]
    scope: String,
    /// When it ends; null for a freeze without an end.
    #[schema(required, format = DateTime)]
    until: Option<String>,
    /// The reason given in its rule.
    #[schema(required)]
    reason: Option<String>,
}

impl PartialFreezeReply {
    fn all_of(queue: &Queue) -> Vec<Self> {
        let reply = |freeze: &PartialFreeze| Self {
            scope: freeze.scope.to_string(),
            until: freeze.until.map(|until| until.to_string()),
            reason: freeze.reason.clone(),
        };
        queue.header.freeze.partial.iter().map(reply).collect()
    }
}

impl Serialize for SettingsReply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("state", &self.state)?;
        map.serialize_entry("branch", &self.branch)?;
        setting::write(&mut map, &self.settings, self.words)?;
        map.serialize_entry("pausedBy", &self.paused_by)?;
        map.serialize_entry("pausedReason", &self.paused_reason)?;
        map.serialize_entry("freeze", &self.freeze)?;
        map.serialize_entry("partialFreezes", &self.partial_freezes)?;
        map.end()
    }
}

impl PartialSchema for SettingsReply {
    fn schema() -> RefOr<Schema> {
        let text = |description: &str, types: SchemaType| {
            ObjectBuilder::new().schema_type(types).description(Some(description))
        };
        let or_null = || SchemaType::Array(vec![Type::String, Type::Null]);
        let branch = text("The branch that it targets.", Type::String.into());
        let mut object = ObjectBuilder::new()
            .description(Some(
                "State and settings of a queue. While modes are switched, `mode` is the new one.",
            ))
            .property("state", Ref::from_schema_name(QueueStateWord::name()))
            .required("state")
            .property("branch", branch.examples(["main"]))
            .required("branch");
        let null = ObjectBuilder::new().schema_type(Type::Null);
        let freeze = OneOfBuilder::new()
            .description(Some("The freeze in force that applies to all pull requests."))
            .item(Ref::from_schema_name(FreezeReply::name()))
            .item(null);
        let partial = ArrayBuilder::new()
            .description(Some("The freezes in force that apply only to some pull requests."))
            .items(Ref::from_schema_name(PartialFreezeReply::name()))
            .max_items(Some(100));
        for spec in SETTINGS {
            object = object.property(spec.name, setting::schema(spec, false)).required(spec.name);
        }
        object
            .property("pausedBy", text("Who paused the queue, while it is paused.", or_null()))
            .property("pausedReason", text("Why it was paused.", or_null()))
            .property("freeze", freeze)
            .property("partialFreezes", partial)
            .into()
    }
}

impl ToSchema for SettingsReply {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((QueueStateWord::name().into_owned(), QueueStateWord::schema()));
        schemas.push((FreezeReply::name().into_owned(), FreezeReply::schema()));
        schemas.push((PartialFreezeReply::name().into_owned(), PartialFreezeReply::schema()));
        setting::schemas(schemas);
    }
}

impl SettingsReply {
    /// The reply to a change: a change of mode that waits for the line to empty does not show as
    /// a state that was not requested.
    pub(crate) fn after_update(queue: &Queue, words: Words) -> Self {
        let mut reply = Self::of(queue, words);
        if let QueueState::SwitchingModes { draining, .. } = queue.header.state {
            reply.state = words.word(if draining { "DRAINING" } else { "RUNNING" });
        }
        reply
    }

    /// The example in the OpenAPI description.
    pub(crate) fn example() -> Value {
        let settings = Settings {
            concurrency: 5,
            bisection_concurrency: 5,
            required_statuses: Some(vec!["test".to_owned()]),
            ..Settings::default()
        };
        json!(Self {
            state: "RUNNING".to_owned(),
            branch: "main".to_owned(),
            settings,
            words: Words(EnumCase::Upper),
            paused_by: None,
            paused_reason: None,
            freeze: None,
            partial_freezes: Vec::new(),
        })
    }

    pub(crate) fn of(queue: &Queue, words: Words) -> Self {
        let header = &queue.header;
        let (paused_by, paused_reason) = match &header.state {
            QueueState::Paused { by, reason, .. } => (Some(by.to_string()), reason.clone()),
            QueueState::Running | QueueState::Draining | QueueState::SwitchingModes { .. } => {
                (None, None)
            }
        };
        Self {
            state: words.word(header.state.name().as_str()),
            branch: header.branch.to_string(),
            settings: Settings::clone(&header.settings),
            words,
            paused_by,
            paused_reason,
            freeze: FreezeReply::of(queue),
            partial_freezes: PartialFreezeReply::all_of(queue),
        }
    }
}

/// Queues.
#[derive(Debug, serde::Serialize, ToSchema)]
pub(crate) struct QueuesReply {
    /// Ordered by repository and branch.
    queues: Vec<ListedQueue>,
}

/// A queue without its settings and entries.
#[derive(Debug, serde::Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ListedQueue {
    repo: ShownRepo,
    /// The branch that it targets.
    target_branch: String,
    #[schema(value_type = QueueStateWord)]
    state: String,
    #[schema(value_type = ModeWord)]
    mode: String,
    /// Why it was paused, while it is.
    #[schema(required)]
    paused_reason: Option<String>,
    /// The freeze in force that applies to all pull requests.
    #[schema(required)]
    freeze: Option<FreezeReply>,
    /// The number of live entries, also ones that are not ready.
    enqueued_pull_requests_count: usize,
    /// The number of test runs that have not ended.
    test_runs_count: u32,
}

impl QueuesReply {
    pub(crate) fn of(queues: &[SeenQueue], words: Words) -> Self {
        let listed = |SeenQueue { repository, queue }: &SeenQueue| {
            let settings = SettingsReply::of(queue, words);
            let (line, bisections) = queue.slots_used();
            ListedQueue {
                repo: ShownRepo::of(&repository.name),
                target_branch: settings.branch,
                state: settings.state,
                mode: words.word(settings.settings.mode.as_str()),
                paused_reason: settings.paused_reason,
                freeze: settings.freeze,
                enqueued_pull_requests_count: queue.live(),
                test_runs_count: line + bisections,
            }
        };
        Self { queues: queues.iter().map(listed).collect() }
    }
}

/// A queue with its entries.
#[derive(Debug, serde::Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueReply {
    #[serde(flatten)]
    settings: SettingsReply,
    /// All live entries in queue order; entries that are not ready come last.
    enqueued_pull_requests: Vec<ListedEntry>,
}

impl QueueReply {
    /// The example in the OpenAPI description.
    pub(crate) fn example() -> Value {
        let mut reply = SettingsReply::example();
        reply["enqueuedPullRequests"] = json!([{
            "id": "4f0e9c1e-8a55-5d0f-9b1c-2a35b0a6f0d2", "state": "TESTING",
            "stateChangedAt": "2026-09-17T10:16:02.000Z", "priorityValue": 100,
            "priorityName": "medium", "usedDefaultPriorityName": "medium",
            "skipTheLine": false, "noBatch": false, "prNumber": 42, "prTitle": "Add division",
            "prSha": "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70", "prBaseBranch": "main",
            "prAuthor": "ada", "position": 1, "reason": "1 of 2 required checks are done",
            "waitReason": {"kind": "checks_running", "done": 1, "of": 2}
        }]);
        reply
    }

    pub(crate) fn of(queue: &Queue, words: Words) -> Self {
        let listed = |view: &signalbox_domain::queue::EntryView<'_>| {
            ListedEntry::of(view.entry, view.state, view.waits.as_ref(), view.position, words)
        };
        Self {
            settings: SettingsReply::of(queue, words),
            enqueued_pull_requests: view_queue(queue).entries.iter().map(listed).collect(),
        }
    }
}
