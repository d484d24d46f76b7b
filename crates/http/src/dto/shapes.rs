//! The schemas of numbers and texts that several requests have.

use signalbox_services::EventService;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The numbers up to 4,294,967,295 with more digits than nine, without leading zeros.
const LONG: &str = "[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|\
    4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|\
    42949672[0-8][0-9]|429496729[0-5]";

/// A name of `git check-ref-format`.
const BRANCH: &str = r"^(?!(@|HEAD)$)(?![-/])(?!.*(\.\.|@\{|//))(?!.*[/.]$)(?!(.*/)?\.)(?!.*\.[lL][oO][cC][kK](/|$))[^\x00-\x20\x7f-\x9f~^:?*\[\\]+$";

/// A number from 0 to 255.
const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";

/// A host name whose last part is no number.
const HOST_NAME: &str =
    r"(?!([^:/?]*\.)?([0-9]+|0[xX][0-9A-Fa-f]*)\.?([:/?]|$))[0-9A-Z_a-z-]+(\.[0-9A-Z_a-z-]+)*\.?";

/// The URLs that the guard of webhooks accepts, as far as their text says.
fn hook_url() -> String {
    let address = format!(r"({OCTET}\.){{3}}{OCTET}|\[[0-9A-Fa-f:.]+\]");
    format!(r"^https://({address}|{HOST_NAME})(:[0-9]{{0,5}})?([/?][!$-;=?-\[\]_a-z~]*)?$")
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

fn binary() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
}

/// A number as an integer or as a decimal string.
fn number(lowest: u32, pattern: String, description: &str) -> RefOr<Schema> {
    let integer = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(lowest))
        .maximum(Some(u32::MAX));
    let decimal = text().pattern(Some(pattern));
    OneOfBuilder::new().item(integer).item(decimal).description(Some(description)).into()
}

/// A schema by name.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    $schema
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

shapes! {
    /// [`BranchName`](signalbox_domain::ids::BranchName).
    BranchText = text()
        .description(Some("The name of a branch without `refs/heads/`, by the rules of `git check-ref-format`, at most 244 bytes."))
        .max_length(Some(244))
        .pattern(Some(BRANCH))
        .into();
    /// [`Sha`](signalbox_domain::ids::Sha), in any case.
    ShaText = text()
        .description(Some("The object id of a commit."))
        .pattern(Some("^([0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})$"))
        .into();
    /// [`RepoName`](signalbox_domain::ids::RepoName) as one text.
    RepoText = text()
        .description(Some("A repository: `host/owner/name`."))
        .pattern(Some(r"^[A-Za-z0-9._:-]{1,253}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,254}){2,}$"))
        .into();
    /// A time.
    TimeText = text()
        .description(Some("A time by RFC 3339."))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .into();
    /// A position in the log of events.
    PositionText = text()
        .description(Some("A position in the log of events."))
        .pattern(Some("^[0-9]{1,18}$"))
        .into();
    /// An address that messages are sent to.
    HookText = text()
        .description(Some("A URL that starts with `https://`, without a user and a fragment, at most 2048 bytes."))
        .max_length(Some(2048))
        .pattern(Some(hook_url()))
        .into();
    /// A form with files.
    FilesForm = ObjectBuilder::new()
        .property("file", ArrayBuilder::new().items(binary()))
        .required("file")
        .description(Some("Reports, one part each; the parts may have any names."))
        .into();
    /// A pattern of branches.
    BranchPatternText = text()
        .description(Some("A pattern of branches: `*` is any text, `?` is one character; at most 255 bytes."))
        .min_length(Some(1))
        .max_length(Some(255))
        .into();
    /// A label of a monitor.
    LabelText = text().description(Some("A label.")).min_length(Some(1)).max_length(Some(100)).into();
    /// A body that is not text.
    BinaryBody = binary().into();
    /// A pull request's number.
    PrNumberChoice = number(
        0,
        format!("^0*([0-9]{{1,9}}|{LONG})$"),
        "A pull request's number, or the same as a decimal string.",
    );
    /// A pull request's number, which is not 0.
    PrNumberFromOne = number(
        1,
        format!("^0*([1-9][0-9]{{0,8}}|{LONG})$"),
        "A pull request's number from 1, or the same as a decimal string.",
    );
    /// The name of an event.
    EventWord = text()
        .description(Some("The name of an event."))
        .enum_values(Some(EventService::kinds()))
        .into();
}
