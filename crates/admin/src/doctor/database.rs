//! Checks that the database is reachable, intact and up to date, and that its clock agrees.

use signalbox_config::{Config, without_password};
use signalbox_domain::ports::Clock;
use signalbox_domain::ports::Stores;
use signalbox_domain::time::Timestamp;
use signalbox_persistence::{Database, connect};
use signalbox_terminal::chain;

use super::Finding;
use crate::missing_database;

/// With a larger difference between the clocks, a server treats leases of other servers as expired.
const WORST_SKEW_MS: i64 = 5_000;
const LARGE_SKEW_MS: i64 = 500;

/// The findings about the database, and its stores if they are usable.
pub(super) async fn checks(config: &Config, clock: &dyn Clock) -> (Vec<Finding>, Option<Stores>) {
    let (name, url) = ("database", config.database_url());
    let shown = without_password(&url);
    // Opening it would make it.
    match missing_database(config) {
        Ok(None) => {}
        Ok(Some(file)) => {
            let words = format!(
                "{} is created when the server starts; if a server runs, name its data folder with \
                 --data-dir or SIGNALBOX_DATA_DIR",
                file.display()
            );
            return (vec![Finding::good(name, words)], None);
        }
        Err(error) => return (vec![Finding::bad(name, error.to_string())], None),
    }
    let database = match connect(&url).await {
        Ok(database) => database,
        Err(error) => return (vec![Finding::bad(name, chain(&shown, &error))], None),
    };
    let mut found = vec![match database.check().await {
        Ok(problems) if problems.is_empty() => Finding::good(name, format!("{shown} responds")),
        Ok(problems) => Finding::bad(name, format!("{shown} is damaged: {}", problems.join("; "))),
        Err(error) => Finding::bad(name, chain(&shown, &error)),
    }];
    let (schema, current) = migrations(&database).await;
    found.push(schema);
    found.push(skew(&database, clock).await);
    if let Ok(Some(language)) = database.foreign_messages().await {
        let words = format!(
            "its messages are in {language}, so transient errors cannot be distinguished: \
             ALTER ROLE … SET lc_messages = 'C'"
        );
        found.push(Finding::warning("database_messages", words));
    }
    if let Ok(false) = database.keeps_organizations_apart().await {
        let words = "the server's role is a superuser or bypasses row-level security, so that only the \
                     queries of Signalbox keep organizations apart: use an ordinary role";
        found.push(Finding::warning("database_role", words));
    }
    (found, current.then(|| database.stores()))
}

async fn migrations(database: &Database) -> (Finding, bool) {
    let name = "migrations";
    match database.migration_status().await {
        Ok(status) if status.pending.is_empty() => {
            (Finding::good(name, format!("all {} applied", status.applied.len())), true)
        }
        Ok(status) => {
            let words = format!(
                "{} pending: the next start or `signalbox migrate up` applies them",
                status.pending.len()
            );
            (Finding::warning(name, words), false)
        }
        Err(error) => (Finding::bad(name, chain("schema", &error)), false),
    }
}

async fn skew(database: &Database, clock: &dyn Clock) -> Finding {
    let name = "clock";
    let before = clock.now();
    let theirs = match database.now().await {
        Ok(Some(theirs)) => theirs,
        Ok(None) => return plausible(before),
        Err(error) => return Finding::warning(name, chain("the database's clock", &error)),
    };
    let after = clock.now();
    // The answer was made at some moment in between.
    let ahead = theirs.since(after).millis();
    let behind = before.since(theirs).millis();
    let skew = ahead.max(behind).max(0);
    let words = format!("it differs from the database's clock by at least {skew} ms");
    if skew > WORST_SKEW_MS {
        Finding::bad(name, format!("{words}: synchronize both clocks with NTP"))
    } else if skew > LARGE_SKEW_MS {
        Finding::warning(name, words)
    } else {
        Finding::good(name, "it agrees with the database's clock")
    }
}

/// A clock that was never set shows a time before this program was written.
fn plausible(now: Timestamp) -> Finding {
    let written = Timestamp::from_unix_seconds(1_767_225_600);
    if now < written {
        return Finding::bad("clock", format!("it shows {now}, which is in the past"));
    }
    Finding::good("clock", format!("it shows {now}"))
}
