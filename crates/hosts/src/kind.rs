//! The kinds of git hosts that a program supports.

use std::process::ExitCode;
use std::sync::Arc;

use toml::{Table, Value};

use crate::{HostSettings, Recomputer, SettingError};

/// A kind of git host: what its crate exports.
pub struct HostKind {
    /// The value of `kind` in the configuration.
    pub kind: &'static str,
    /// Reads and checks the settings of one host, without `kind`.
    pub read: fn(Table) -> Result<Arc<dyn HostSettings>, SettingError>,
    /// Every setting with an example value, without `kind`.
    pub example: fn() -> Table,
    /// Settings for hosts that no organization configures. Exactly one kind of a program has them.
    pub unconfigured: Option<fn() -> Arc<dyn HostSettings>>,
    /// Runs a helper process of this kind if the program's arguments request one.
    pub helper: Option<fn() -> Option<ExitCode>>,
    /// Composes candidates of other hosts again. At most one kind of a program does.
    pub recomputer: Option<fn() -> Arc<dyn Recomputer>>,
}

/// The kinds that a program supports.
#[derive(Clone, Copy)]
pub struct Kinds(pub &'static [HostKind]);

impl Kinds {
    /// Reads the settings of one host from its table.
    pub fn read(self, mut table: Table) -> Result<Arc<dyn HostSettings>, SettingError> {
        let names = || self.0.iter().map(|it| it.kind).collect::<Vec<_>>().join(", ");
        let given = match table.remove("kind") {
            Some(Value::String(given)) => given,
            Some(_) => {
                return Err(SettingError::new("kind", format!("must be one of {}", names())));
            }
            None => return Err(SettingError::new("", "missing field `kind`")),
        };
        let Some(known) = self.0.iter().find(|it| it.kind == given) else {
            let problem = format!("unknown kind {given:?}, expected one of {}", names());
            return Err(SettingError::new("kind", problem));
        };
        (known.read)(table)
    }

    /// The table of one host with every setting, defaults included, in the order of the kind.
    pub fn complete(self, table: &Table) -> Result<Table, SettingError> {
        let mut complete = Table::new();
        if let Some(kind) = table.get("kind") {
            complete.insert("kind".to_owned(), kind.clone());
        }
        complete.extend(self.read(table.clone())?.table());
        Ok(complete)
    }

    /// A table for each kind, with every setting.
    pub fn examples(self) -> Vec<Table> {
        let example = |kind: &HostKind| {
            let mut table = Table::new();
            table.insert("kind".to_owned(), Value::String(kind.kind.to_owned()));
            table.extend((kind.example)());
            table
        };
        self.0.iter().map(example).collect()
    }

    /// Settings for hosts that no organization configures.
    pub fn unconfigured(self) -> Option<Arc<dyn HostSettings>> {
        self.0.iter().find_map(|kind| kind.unconfigured).map(|settings| settings())
    }

    /// What composes candidates of other hosts again.
    pub fn recomputer(self) -> Option<Arc<dyn Recomputer>> {
        self.0.iter().find_map(|kind| kind.recomputer).map(|recomputer| recomputer())
    }

    /// Runs a helper process of a kind if the program's arguments request one. Call it before
    /// anything else.
    pub fn help(self) -> Option<ExitCode> {
        self.0.iter().filter_map(|kind| kind.helper).find_map(|helper| helper())
    }
}
