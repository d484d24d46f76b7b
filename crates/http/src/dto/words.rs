//! Values of states and modes: written in the case of the caller's token, parsed in any case.

use signalbox_domain::queue::{
    BisectionPart, BlockReason, CheckConclusion, CheckStatus, CompositionCheck, MergeMethod, Mode,
    NextStep, Outcome, PrState, QueueStateName, RequestedState, StatusSource, setting,
};
use signalbox_domain::token::EnumCase;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

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

pub(super) fn in_both_cases(description: &str, words: &[&str]) -> RefOr<Schema> {
    let lower = words.iter().map(|word| word.to_lowercase());
    let both = words.iter().map(|word| (*word).to_owned()).chain(lower);
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .description(Some(format!(
            "{description} Replies are in upper case, or in lower case for a token with the \
             compatibility profile `v1-live`; requests may use any case."
        )))
        .enum_values(Some(both))
        .build()
        .into()
}

/// The schema of each enum in both cases.
macro_rules! described {
    ($($name:ident, $description:literal, [$($word:expr),+ $(,)?];)+) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    in_both_cases($description, &[$($word),+])
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
                    in_both_cases($description, <$all>::NAMES)
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
}

described! {
    MergeabilityWord, "The mergeability that the git host reports.",
        ["UNSPECIFIED", "IN_PROGRESS", "MERGEABLE", "NOT_MERGEABLE"];
    CulpritWord, "What a pull request conflicts with.", ["QUEUE_PR", "BASE_BRANCH"];
    ConclusionWord, "The end of a stay in the queue.", ["MERGED", "FAILED", "CANCELLED"];
    RunStatusWord, "The status of a test run.",
        ["IN_PROGRESS", "FAILED", "CANCELLED", "SUCCEEDED"];
}

/// The schema of each enum whose names are always in one case.
macro_rules! in_one_case {
    ($($name:ident, $description:literal, $all:ty;)+) => {
        $(
            #[derive(Debug)]
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    ObjectBuilder::new()
                        .schema_type(SchemaType::new(Type::String))
                        .description(Some($description))
                        .enum_values(Some(<$all>::NAMES.iter().copied()))
                        .build()
                        .into()
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
}

/// The enum of the setting `mode`, for requests that have it without the other settings.
#[derive(Debug)]
pub(crate) struct ModeWord;

impl PartialSchema for ModeWord {
    fn schema() -> RefOr<Schema> {
        in_both_cases(setting("mode").map_or("", |spec| spec.doc()), Mode::NAMES)
    }
}

impl ToSchema for ModeWord {}
