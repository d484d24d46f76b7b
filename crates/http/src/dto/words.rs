//! Words of states and modes: written in the case that the caller's token asks for, read in any.

use signalbox_domain::queue::{
    BisectionPart, BlockReason, Mode, Outcome, PrState, QueueStateName, RequestedState,
    StatusSource, setting,
};
use signalbox_domain::token::EnumCase;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Writes words in the case that the caller's token asks for.
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
            "{description} Replies are in upper case, or in lower case to a token made so; any \
             case is accepted."
        )))
        .enum_values(Some(both))
        .build()
        .into()
}

/// Describes each kind of word in both cases.
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
                    in_both_cases($description, <$all>::WORDS)
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
    BlockReasonWord, "What kept a pull request from being merged.", BlockReason;
    OutcomeWord, "How a time under test ended.", Outcome;
    BisectionPartWord, "What a test has to do with a bisection.", BisectionPart;
    StatusSourceWord, "Who says which statuses are required.", StatusSource;
}

described! {
    MergeabilityWord, "What the git host says about merging.",
        ["UNSPECIFIED", "IN_PROGRESS", "MERGEABLE", "NOT_MERGEABLE"];
    CulpritWord, "What a pull request conflicts with.", ["QUEUE_PR", "BASE_BRANCH"];
    ConclusionWord, "How a stay in the queue ended.", ["MERGED", "FAILED", "CANCELLED"];
    RunStatusWord, "How far a test run is.",
        ["IN_PROGRESS", "FAILED", "CANCELLED", "SUCCEEDED"];
}

/// The word of the setting `mode`, for requests that name it without the other settings.
#[derive(Debug)]
pub(crate) struct ModeWord;

impl PartialSchema for ModeWord {
    fn schema() -> RefOr<Schema> {
        in_both_cases(setting("mode").map_or("", |spec| spec.doc()), Mode::WORDS)
    }
}

impl ToSchema for ModeWord {}
