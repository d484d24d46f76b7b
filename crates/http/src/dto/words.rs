//! Values of states and modes: written in the case of the caller's token, parsed in any case.

use signalbox_domain::audit::AuditAction;
use signalbox_domain::flaky::{
    AutoQuarantine, BranchClass, Classification, IncidentCause, IncidentState, MonitorKind,
    MuteLength, QuarantineOverride, Template,
};
use signalbox_domain::queue::{
    BisectionPart, BlockReason, CheckConclusion, CheckStatus, CompositionCheck, DependencyState,
    MergeMethod, Mode, NextStep, Outcome, PrState, PriorityName, QueueStateName, RequestedState,
    StatusSource, setting,
};
use signalbox_domain::token::EnumCase;
use signalbox_domain::webhook::MessageState;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::tests::{CAUSES, CONCLUSIONS, PROVIDERS};

/// Writes enum values in the case of the caller's token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words(pub(crate) EnumCase);

impl Words {
    pub(crate) fn word(self, word: &str) -> String {
        match self.0 {
            EnumCase::Upper => word.to_owned(),
            EnumCase::Lower => word.to_lowercase(),
        }
    }
}

/// The schema of an enum whose case is that of the caller's token. It has the names in upper case:
/// generated clients would have every constant twice otherwise.
pub(super) fn in_the_tokens_case(description: &str, words: &[&str]) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .description(Some(format!(
            "{description} In lower case for a token with the compatibility profile `v1-live`; \
             requests may use any case."
        )))
        .enum_values(Some(words.iter().copied()))
        .extensions(Some(ExtensionsBuilder::new().add(LOWER_CASE, "v1-live").build()))
        .build()
        .into()
}

/// The extension of schemas whose values are in lower case for tokens with the named profile.
const LOWER_CASE: &str = "x-lower-case-for";

/// The schema of each enum in the case of the token.
macro_rules! described {
    ($($name:ident, $description:literal, [$($word:expr),+ $(,)?];)+) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    in_the_tokens_case($description, &[$($word),+])
                }
            }

            impl ToSchema for $name {}
        )+
    };
    ($($name:ident, $description:literal, $all:ty;)+) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    in_the_tokens_case($description, <$all>::NAMES)
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

described! {
    PrStateWord, "A pull request's state in the queue.", PrState;
    QueueStateWord, "A queue's state.", QueueStateName;
    RequestedStateWord, "A state that a queue can be put in.", RequestedState;
    BlockReasonWord, "What blocked the merge of a pull request.", BlockReason;
    OutcomeWord, "The outcome of a test.", Outcome;
    BisectionPartWord, "The role of a test run in a bisection.", BisectionPart;
    StatusSourceWord, "The source of the required statuses.", StatusSource;
    MergeMethodWord, "How pull requests become commits.", MergeMethod;
    CompositionCheckWord, "How the composition of a landing was checked.", CompositionCheck;
    DependencyStateWord, "The state of a dependency, as last read.", DependencyState;
}

described! {
    MergeabilityWord, "The mergeability that the git host reports.",
        ["UNSPECIFIED", "IN_PROGRESS", "MERGEABLE", "NOT_MERGEABLE"];
    CulpritWord, "What a pull request conflicts with.", ["QUEUE_PR", "BASE_BRANCH"];
    ConclusionWord, "The end of a stay in the queue.", ["MERGED", "FAILED", "CANCELLED"];
    RunStatusWord, "The status of a test run.",
        ["IN_PROGRESS", "FAILED", "CANCELLED", "SUCCEEDED"];
}

fn in_one_case(description: &str, words: &[&str]) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .description(Some(description))
        .enum_values(Some(words.iter().copied()))
        .build()
        .into()
}

/// The schema of each enum whose names are always in one case.
macro_rules! in_one_case {
    ($($name:ident, $description:literal, $all:ty;)+) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    in_one_case($description, <$all>::NAMES)
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

/// The same for enums that the domain does not have.
macro_rules! listed {
    ($($name:ident, $description:literal, $words:expr;)+) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    in_one_case($description, &$words)
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

in_one_case! {
    CheckStatusWord, "The status of a check.", CheckStatus;
    CheckConclusionWord, "The conclusion of a check.", CheckConclusion;
    NextStepWord, "What to do about a pull request that has failed.", NextStep;
    PriorityNameWord, "`urgent` is 0, `high` 10, `medium` 100 and `low` 200.", PriorityName;
    QuarantineOverrideWord, "Whether a test is quarantined whatever its status; `UNSPECIFIED` follows the settings.", QuarantineOverride;
    AutoQuarantineWord, "Which tests are quarantined automatically.", AutoQuarantine;
    MonitorKindWord, "The kind of a monitor.", MonitorKind;
    TemplateWord, "A template of a monitor.", Template;
    BranchClassWord, "A class of branches.", BranchClass;
    MessageStateWord, "The state of a delivery.", MessageState;
    IncidentStateWord, "The status of an incident.", IncidentState;
    IncidentCauseWord, "How an incident was recognized.", IncidentCause;
    AuditActionWord, "A kind of change in the audit log.", AuditAction;
}

listed! {
    UnhealthyWord, "The status of tests that are not healthy.", ["FLAKY", "BROKEN"];
    MonitorActionWord, "What a monitor does; `label` is for a dry run.", [Classification::NAMES, &["label"]].concat();
    MuteLengthWord, "How long a monitor is muted; `none` ends a mute.", [MuteLength::NAMES, &["none"]].concat();
    IncidentDecisionWord, "`confirm`: its failures stay excluded. `dismiss`: they count.", ["confirm", "dismiss"];
    BatchingPolicyWord, "What happens to the targets of a pattern.", ["isolate"];
    AllTargetsWord, "Every target.", ["ALL"];
    CiProviderWord, "A CI system.", PROVIDERS;
    CiConclusionWord, "How a CI run ended.", CONCLUSIONS;
    CiCauseWord, "What decided how a CI run ended.", CAUSES;
}

/// The enum of the setting `mode`, for requests that have it without the other settings.
#[derive(Debug)]
pub(crate) struct ModeWord;

impl PartialSchema for ModeWord {
    fn schema() -> RefOr<Schema> {
        in_the_tokens_case(setting("mode").map_or("", |spec| spec.doc()), Mode::NAMES)
    }
}

impl ToSchema for ModeWord {}
