//! The migrations of both databases are generated from one source, and create the columns that the
//! program expects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use diesel::QueryableByName;
use diesel::sql_types::{Bool, Text};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use signalbox_testkit::postgres::Server;
use tempfile::TempDir;

/// The databases, by the names of their folders.
const DATABASES: [&str; 2] = ["postgres", "sqlite"];

/// A column type of `sql_types.rs`, with its names in the scripts and in the catalogs of both
/// databases, in the order of [`DATABASES`].
struct Mapping {
    ours: &'static str,
    scripts: [&'static str; 2],
    catalogs: [&'static str; 2],
}

const fn mapping(
    ours: &'static str,
    scripts: [&'static str; 2],
    catalogs: [&'static str; 2],
) -> Mapping {
    Mapping { ours, scripts, catalogs }
}

const MAPPINGS: [Mapping; 8] = [
    mapping("Id", ["UUID", "BLOB"], ["uuid", "BLOB"]),
    mapping("Moment", ["TIMESTAMPTZ", "INTEGER"], ["timestamp with time zone", "INTEGER"]),
    mapping("Document", ["JSONB", "TEXT"], ["jsonb", "TEXT"]),
    mapping("Text", ["TEXT", "TEXT"], ["text", "TEXT"]),
    mapping("BigInt", ["BIGINT", "INTEGER"], ["bigint", "INTEGER"]),
    mapping("Integer", ["INTEGER", "INTEGER"], ["integer", "INTEGER"]),
    mapping("Bool", ["BOOLEAN", "INTEGER"], ["boolean", "INTEGER"]),
    mapping(
        "Position",
        [
            "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        ],
        ["bigint", "INTEGER"],
    ),
];

/// Tables that no store reads: a probe of whether the database can be written to.
const NOT_IN_SCHEMA: [&str; 1] = ["write_probe"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations")
}

/// The script for a database.
fn render(name: &str, source: &str, database: usize) -> String {
    let other = format!(" -- only on {}", DATABASES[1 - database]);
    let own = format!(" -- only on {}", DATABASES[database]);
    let mut script =
        format!("-- Made from migrations/source/{name}.sql: change that and run `just gen`.\n");
    for line in source.lines().filter(|line| !line.ends_with(&other)) {
        let line = line.strip_suffix(&own).unwrap_or(line);
        if line.starts_with("--") {
            script.push_str(line);
        } else if line == ");" && DATABASES[database] == "sqlite" {
            // A value of another type is an error, as on PostgreSQL.
            script.push_str(") STRICT;");
        } else {
            for word in line.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
                let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
                match MAPPINGS.iter().find(|mapping| mapping.ours == bare) {
                    Some(mapping) => {
                        script.push_str(mapping.scripts[database]);
                        script.push_str(&word[bare.len()..]);
                    }
                    None => script.push_str(word),
                }
            }
        }
        script.push('\n');
    }
    script
}

#[test]
fn scripts_of_both_databases_are_generated_from_one_source() {
    let update = std::env::var_os("SIGNALBOX_UPDATE").is_some();
    let mut known = Vec::new();
    for file in fs::read_dir(folder().join("source")).expect("a folder").flatten() {
        let name = file.file_name().to_string_lossy().trim_end_matches(".sql").to_owned();
        let source = fs::read_to_string(file.path()).expect("a source");
        for (database, folder_name) in DATABASES.iter().enumerate() {
            let path = folder().join(folder_name).join(&name).join("up.sql");
            let script = render(&name, &source, database);
            if update {
                fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                fs::write(&path, script).expect("written");
            } else {
                let kept = fs::read_to_string(&path).unwrap_or_default();
                assert!(kept == script, "{} is stale: run `just gen`", path.display());
            }
        }
        known.push(name);
    }
    for database in DATABASES {
        for made in fs::read_dir(folder().join(database)).expect("a folder").flatten() {
            let name = made.file_name().to_string_lossy().into_owned();
            assert!(known.contains(&name), "{database}/{name} has no source");
        }
    }
}

/// `table.column` with its type and whether it may be null.
type Columns = BTreeMap<String, (String, bool)>;

/// The columns of `schema.rs`, with the types of a database's catalog.
fn expected(database: usize) -> Columns {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema.rs");
    let text = fs::read_to_string(path).expect("the schema");
    let tables = text.split_once("tables! {\n").expect("tables").1;
    let mut found = Columns::new();
    let mut table = String::new();
    for statement in tables.split([',', '{', '}']) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        if let [name, "->", kind] = words[..] {
            let (ours, nullable) = match kind.strip_prefix("Nullable<") {
                Some(rest) => (rest.trim_end_matches('>'), true),
                None => (kind, false),
            };
            let mapping = MAPPINGS.iter().find(|it| it.ours == ours);
            let mapping = mapping.unwrap_or_else(|| panic!("unknown column type {ours}"));
            let kind = mapping.catalogs[database].to_owned();
            found.insert(format!("{table}.{name}"), (kind, nullable));
        } else if let Some(key) = words.iter().position(|word| word.starts_with('(')) {
            words[key - 1].clone_into(&mut table);
        }
    }
    found
}

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Bool)]
    nullable: bool,
}

fn compare(found: Vec<Found>, database: usize) {
    let expected = expected(database);
    assert!(expected.len() > 200, "{}", expected.len());
    let in_schema = |name: &str| !NOT_IN_SCHEMA.iter().any(|table| name.starts_with(table));
    let found: Columns = found
        .into_iter()
        .filter(|it| in_schema(&it.name))
        .map(|it| (it.name, (it.kind, it.nullable)))
        .collect();
    for (name, column) in &expected {
        assert_eq!(found.get(name), Some(column), "{name} on {}", DATABASES[database]);
    }
    for name in found.keys() {
        assert!(expected.contains_key(name), "{name} is not in schema.rs");
    }
}

async fn on_postgres<T: QueryableByName<diesel::pg::Pg> + Send + 'static>(
    url: &str,
    sql: &str,
) -> Vec<T> {
    let mut conn = AsyncPgConnection::establish(url).await.expect("a connection");
    diesel::sql_query(sql).load(&mut conn).await.expect("rows")
}

/// An empty, migrated database.
async fn postgres() -> String {
    let url = Server::shared().create_database();
    let database = signalbox_persistence::connect(&url).await.expect("a database");
    database.migrate().await.expect("migrated");
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_has_the_columns_of_the_schema() {
    let sql = "SELECT class.relname || '.' || attname AS name, \
        format_type(atttypid, atttypmod) AS kind, NOT attnotnull AS nullable \
        FROM pg_attribute JOIN pg_class class ON class.oid = attrelid \
        JOIN pg_namespace space ON space.oid = relnamespace \
        WHERE nspname = 'public' AND relkind IN ('r', 'p') AND NOT relispartition \
        AND attnum > 0 AND NOT attisdropped AND relname NOT LIKE '\\_\\_diesel%'";
    compare(on_postgres(&postgres().await, sql).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_has_the_columns_of_the_schema() {
    use diesel::{Connection, RunQueryDsl};
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("test.db").display().to_string();
    let database = signalbox_persistence::connect(&format!("sqlite://{path}")).await;
    database.expect("a database").migrate().await.expect("migrated");
    let mut conn = diesel::SqliteConnection::establish(&path).expect("a connection");
    let sql = "SELECT tables.name || '.' || columns.name AS name, columns.type AS kind, \
        columns.\"notnull\" = 0 AS nullable FROM pragma_table_list AS tables \
        JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' \
        AND tables.name NOT LIKE '\\_\\_diesel%' ESCAPE '\\' AND tables.name NOT LIKE 'sqlite%'";
    compare(RunQueryDsl::load(diesel::sql_query(sql), &mut conn).expect("columns"), 1);
    let loose = "SELECT name, '' AS kind, FALSE AS nullable FROM pragma_table_list \
        WHERE type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite%' \
        AND name NOT LIKE '\\_\\_diesel%' ESCAPE '\\'";
    let loose: Vec<Found> = RunQueryDsl::load(diesel::sql_query(loose), &mut conn).expect("tables");
    assert_eq!(loose.len(), 0, "every table is strict");
}

/// Queries of an operator on PostgreSQL: times are timestamps, ids are UUIDs, documents are JSON.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_stores_its_native_types() {
    use signalbox_conformance::stores::Sample;
    use signalbox_domain::time::Timestamp;
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        count: i64,
    }
    let url = postgres().await;
    let database = signalbox_persistence::connect(&url).await.expect("a database");
    let stores = database.stores();
    let mut sample = Sample::new(&stores).await;
    sample.submit(1).await;
    let now: Timestamp = database.now().await.expect("a time").expect("of the server");
    let org = signalbox_domain::ports::Org {
        id: signalbox_domain::ids::OrgId(uuid::Uuid::from_u128(7)),
        slug: signalbox_domain::ids::OrgSlug::new("recent").expect("a slug"),
        created_at: now,
    };
    stores.account.orgs.create(&org).await.expect("created");
    let queue = sample.queue.id;
    for (sql, expected) in [
        ("SELECT count(*) FROM orgs WHERE created_at > now() - interval '1 day'".to_owned(), 1),
        ("SELECT count(*) FROM orgs WHERE created_at < now() - interval '1 day'".to_owned(), 1),
        (
            "SELECT count(*) FROM entries WHERE document ->> 'pr' = '1' \
                AND document @> '{\"version\": 1}'"
                .to_owned(),
            1,
        ),
        (format!("SELECT count(*) FROM journal WHERE queue_id = '{queue}'"), 1),
    ] {
        let counted: Vec<Count> = on_postgres(&url, &sql).await;
        assert_eq!(counted[0].count, expected, "{sql}");
    }
}
