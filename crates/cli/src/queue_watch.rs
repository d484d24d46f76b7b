//! Following a queue: `signalbox queue watch` and `signalbox queue submit --wait`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use signalbox_client::{Client, ClientError, Entry, QueueRef, Reply};
use signalbox_domain::queue::PrState;
use signalbox_terminal::{
    Exit, Screen, Signals, causes, complain, is_closed, is_interactive, one_line, say_json,
};

use crate::queue::QueueArgs;
use crate::queue_status::{described, line, read, state};
use crate::{CliError, clock, say};

/// How long to wait between two requests.
const PAUSE: Duration = Duration::from_secs(2);
/// How often in a row the server may be out of reach: a restart is shorter.
const MAX_FAILURES: u32 = 30;

/// Counts calls that failed in a row.
#[derive(Default)]
struct Patience(u32);

impl Patience {
    /// The value of a call; `None` after a failure that may pass.
    fn of<T>(&mut self, called: Result<T, CliError>) -> Result<Option<T>, CliError> {
        let error = match called {
            Ok(value) => {
                self.0 = 0;
                return Ok(Some(value));
            }
            Err(error) => error,
        };
        let may_pass = matches!(&error, CliError::Client { call: error } if error.is_transient());
        self.0 += 1;
        if !may_pass || self.0 > MAX_FAILURES {
            return Err(error);
        }
        if self.0 == 1 {
            complain(&format!("retrying: {}", causes(&error)));
        }
        Ok(None)
    }
}

/// Follows a queue until interrupted, or until it is empty. On a terminal the picture is replaced;
/// elsewhere each change is a line.
pub(crate) async fn watch(place: &QueueArgs, until_empty: bool) -> Result<(), CliError> {
    if !is_interactive() || place.format.is_json() {
        return follow(place, until_empty, None).await;
    }
    // A signal must not leave the terminal on the other screen.
    let mut signals = Signals::new().map_err(CliError::Signals)?;
    let screen = Screen::open();
    tokio::select! {
        done = follow(place, until_empty, Some(&screen)) => done,
        () = signals.next() => Ok(()),
    }
}

async fn follow(
    place: &QueueArgs,
    until_empty: bool,
    screen: Option<&Screen>,
) -> Result<(), CliError> {
    let (client, queue) = (place.server.client()?, place.queue());
    let (mut patience, mut shown) = (Patience::default(), BTreeMap::new());
    let as_json = place.format.is_json();
    while !is_closed() {
        if let Some(status) = patience.of(read(&client, &queue).await)? {
            let entries = &status.queue.value.enqueued_pull_requests;
            if let Some(screen) = screen {
                screen.draw(&described(&status, place, clock::now()));
            } else {
                for number in changes(&mut shown, entries, as_json) {
                    if let Some(entry) = left(&client, &queue, number).await? {
                        print(&printed(&entry, as_json), as_json);
                    }
                }
            }
            if until_empty && entries.is_empty() {
                return Ok(());
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn print(text: &str, as_json: bool) {
    if as_json { say_json(&text) } else { say(text) }
}

/// Prints each new or changed entry; returns the ones that have left.
fn changes(shown: &mut BTreeMap<u64, String>, entries: &[Reply<Entry>], as_json: bool) -> Vec<u64> {
    let text = |entry: &Reply<Entry>| (entry.value.pr_number, printed(entry, as_json));
    let now: BTreeMap<u64, String> = entries.iter().map(text).collect();
    for number in entries.iter().map(|entry| entry.value.pr_number) {
        if let Some(text) = now.get(&number).filter(|text| shown.get(&number) != Some(text)) {
            print(text, as_json);
        }
    }
    let gone = shown.keys().filter(|number| !now.contains_key(number)).copied().collect();
    *shown = now;
    gone
}

/// A pull request as a line.
fn printed(entry: &Reply<Entry>, as_json: bool) -> String {
    if as_json { entry.json.to_string() } else { line(&entry.value).trim_start().to_owned() }
}

/// A pull request that has left the queue.
async fn left(
    client: &Client,
    queue: &QueueRef,
    number: u64,
) -> Result<Option<Reply<Entry>>, ClientError> {
    let Ok(number) = u32::try_from(number) else { return Ok(None) };
    match client.entry(queue, number).await {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if error.is_transient() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits until a submitted pull request is merged, failed or cancelled. The exit code says which.
pub(crate) async fn wait(place: &QueueArgs, number: u32) -> Result<ExitCode, CliError> {
    let (client, queue) = (place.server.client()?, place.queue());
    let (mut patience, mut shown) = (Patience::default(), String::new());
    let as_json = place.format.is_json();
    loop {
        let entry = client.entry(&queue, number).await.map_err(CliError::from);
        if let Some(reply) = patience.of(entry)? {
            let entry = &reply.value;
            let text = if as_json {
                reply.json.to_string()
            } else {
                let reason = one_line(entry.reason.as_deref().unwrap_or_default());
                format!("#{number} {} ({reason})", state(entry))
            };
            if shown != text {
                print(&text, as_json);
                shown = text;
            }
            let failed = || {
                if !as_json {
                    say(&format!("why: signalbox queue why {number} {}", place.flags()));
                }
                Exit::Failed.into()
            };
            match PrState::parse(&entry.state.to_uppercase()) {
                Some(PrState::Merged) => return Ok(ExitCode::SUCCESS),
                Some(PrState::Failed) => return Ok(failed()),
                Some(PrState::Cancelled) => return Ok(Exit::Cancelled.into()),
                Some(
                    PrState::NotReady
                    | PrState::Pending
                    | PrState::Testing
                    | PrState::TestsPassed
                    | PrState::PendingFailure,
                )
                | None => {}
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
