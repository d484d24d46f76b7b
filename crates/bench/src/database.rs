//! Throw-away databases of both kinds.

use signalbox_persistence::Database;
use signalbox_testkit::postgres::Server;
use tempfile::TempDir;
use uuid::Uuid;

use crate::failure::{During, Failure};
use crate::floor_store::FloorStore;
use crate::setup::Setup;

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// A file, with `synchronous = FULL` as the product sets it.
    Sqlite,
    /// A server on this machine without fsync, as the tests use it.
    Postgres,
}

impl On {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }

    /// An id in a statement.
    pub(crate) fn id(self, id: Uuid) -> String {
        match self {
            Self::Sqlite => format!("x'{}'", id.simple()),
            Self::Postgres => format!("'{id}'::uuid"),
        }
    }
}

/// A new database with the product's schema, opened by the product and by the floors.
pub(crate) struct Fresh {
    /// Its kind.
    pub(crate) on: On,
    /// Where it is.
    pub(crate) url: String,
    /// The product's stores.
    pub(crate) database: Database,
    /// The database of the floors.
    pub(crate) floor: FloorStore,
    _folder: TempDir,
    _server: Option<Server>,
}

impl Fresh {
    /// A new one. PostgreSQL is started for it, and stopped with it.
    pub(crate) async fn new(setup: &Setup, on: On) -> Result<Self, Failure> {
        let server = (on == On::Postgres).then(Server::start);
        Self::on(setup, server).await
    }

    /// A new one on a PostgreSQL with fsync.
    pub(crate) async fn with_fsync(setup: &Setup) -> Result<Self, Failure> {
        Self::on(setup, Some(Server::start_with_fsync())).await
    }

    async fn on(setup: &Setup, server: Option<Server>) -> Result<Self, Failure> {
        let folder = setup.folder()?;
        let on = if server.is_some() { On::Postgres } else { On::Sqlite };
        let file = || format!("sqlite://{}", folder.path().join("bench.db").display());
        let url = server.as_ref().map_or_else(file, Server::create_database);
        let database = signalbox_persistence::connect(&url).await.during("the database")?;
        database.migrate().await.during("the schema")?;
        // Fills tables without their constraints, and vacuums.
        let floor = server.as_ref().map_or_else(|| url.clone(), |it| it.as_superuser(&url));
        let floor = FloorStore::open(&floor).await?;
        Ok(Self { on, url, database, floor, _folder: folder, _server: server })
    }
}
