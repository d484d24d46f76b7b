//! Queues that Terraform manages, and what else has changed them since.

use crate::time::Timestamp;
use crate::words::words;

use super::{Actor, Header, QueueState, RequestedState, SETTINGS};

/// The name of the state among the fields of a queue, as the API names it.
const STATE: &str = "state";

words!(
    /// The tool that a change of a queue came from.
    ChangeSource {
        /// The API, the command line or the pages, used directly.
        Direct = "DIRECT",
        /// Terraform or `OpenTofu`.
        Terraform = "TERRAFORM",
    }
);

/// Changes that were recorded without a source were made directly.
impl Default for ChangeSource {
    fn default() -> Self {
        Self::Direct
    }
}

words!(
    /// Whether Terraform manages a queue.
    ManagedState {
        /// Terraform has never written it.
        Manual = "MANUAL",
        /// It is as Terraform left it.
        Terraform = "TERRAFORM",
        /// It was changed directly since Terraform last wrote it.
        TerraformWithDrift = "TERRAFORM_WITH_DRIFT",
    }
);

#[cfg(feature = "serde")]
impl ChangeSource {
    /// Whether it is the source of a change that is recorded without one.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Header {
    /// Whether Terraform manages the queue, and whether it was changed otherwise since.
    pub fn managed_state(&self) -> ManagedState {
        ManagedState::of(self.management.as_ref())
    }
}

impl ManagedState {
    pub(super) fn of(management: Option<&Management>) -> Self {
        match management {
            None => Self::Manual,
            Some(it) if it.drift.is_empty() => Self::Terraform,
            Some(_) => Self::TerraformWithDrift,
        }
    }
}

/// Terraform's management of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Management {
    /// Who ran Terraform last.
    pub applied_by: Actor,
    /// When Terraform last wrote the queue.
    pub applied_at: Timestamp,
    /// What differs from the queue that Terraform left: the state first, then settings in the order
    /// of [`SETTINGS`]. A change that is reverted is no longer in it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub drift: Vec<Drift>,
}

/// A field of a queue that was changed directly since Terraform last wrote the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Drift {
    /// The name of the setting in the API, or `state`.
    pub field: String,
    /// Its value when Terraform last wrote the queue, as text; `None` if it was not set.
    pub applied: Option<String>,
    /// Who changed it last.
    pub by: Actor,
    /// When it was changed last.
    pub at: Timestamp,
}

impl Management {
    /// The management of a queue that Terraform has written now.
    pub const fn applied(by: Actor, at: Timestamp) -> Self {
        Self { applied_by: by, applied_at: at, drift: Vec::new() }
    }

    /// The management after a direct change.
    pub(super) fn drifted(
        &self,
        before: &Header,
        after: &Header,
        by: &Actor,
        at: Timestamp,
    ) -> Self {
        let known = |name: &str| self.drift.iter().find(|drift| drift.field == name);
        let drift = fields(before).zip(fields(after)).filter_map(|((name, old), (_, new))| {
            let known = known(name);
            let applied = known.map_or_else(|| old.clone(), |drift| drift.applied.clone());
            if new == applied {
                return None;
            }
            let unchanged = known.filter(|_| old == new).cloned();
            Some(unchanged.unwrap_or_else(|| {
                let (field, by) = (name.to_owned(), by.clone());
                Drift { field, applied, by, at }
            }))
        });
        Self { drift: drift.collect(), ..self.clone() }
    }
}

/// The state and the settings of a queue, by name, as text.
fn fields(header: &Header) -> impl Iterator<Item = (&'static str, Option<String>)> {
    let state = (STATE, Some(requested(&header.state).as_str().to_owned()));
    let settings = SETTINGS.iter().map(|spec| (spec.name, spec.text(&header.settings)));
    std::iter::once(state).chain(settings)
}

/// The state that clients have requested: a queue that switches modes runs or drains.
const fn requested(state: &QueueState) -> RequestedState {
    match state {
        QueueState::Paused { .. } => RequestedState::Paused,
        QueueState::Draining | QueueState::SwitchingModes { draining: true, .. } => {
            RequestedState::Draining
        }
        QueueState::Running | QueueState::SwitchingModes { draining: false, .. } => {
            RequestedState::Running
        }
    }
}
