//! All attacks of strangers at the same time, beside honest clients, who must not notice them.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::harness::{On, System};
use crate::strangers::{
    STRANGER, client, damaged, half_a_question, large_body, public_bundle, public_id, question,
    report, sign_in, with_spool,
};

/// Honest requests whose duration counts.
const HONEST: usize = 200;
/// Below this a difference of durations is noise of a machine that runs other tests as well.
const NOISE: Duration = Duration::from_millis(50);

/// How many requests of each attack may begin: some with each honest request, so that they overlap
/// with it, and the attackers' own work does not take all of the machine.
struct Attacks {
    halves: Semaphore,
    large: Semaphore,
    bundles: Semaphore,
    tokens: Semaphore,
    streams: Semaphore,
    calls: Semaphore,
}

impl Attacks {
    fn new() -> Self {
        let none = || Semaphore::new(0);
        let (halves, large, bundles) = (none(), none(), none());
        let (tokens, streams, calls) = (none(), none(), none());
        Self { halves, large, bundles, tokens, streams, calls }
    }

    /// Lets those begin that belong to an honest request with that number.
    fn begin_with(&self, number: usize) {
        self.halves.add_permits(3);
        let every = |of: usize| usize::from(number.is_multiple_of(of));
        self.large.add_permits(every(4));
        self.bundles.add_permits(every(10));
        self.tokens.add_permits(every(3));
        self.streams.add_permits(every(2));
        self.calls.add_permits(4);
    }

    /// No more of them begin.
    fn end(&self) {
        let Self { halves, large, bundles, tokens, streams, calls } = self;
        for all in [halves, large, bundles, tokens, streams, calls] {
            all.close();
        }
    }
}

/// Whether the next one may begin, as soon as it may; `false` when it is over.
async fn next(attack: &Semaphore) -> bool {
    attack.acquire().await.is_ok_and(|permit| {
        permit.forget();
        true
    })
}

/// Sends what CI jobs, scripts and users send, one after the other, and checks each reply. Returns
/// the durations.
async fn honest(system: &System, first: usize, attacks: &Attacks) -> Vec<Duration> {
    let browser = client(Ipv4Addr::LOCALHOST);
    let mut took = Vec::new();
    for number in first..first + HONEST {
        attacks.begin_with(number);
        let begun = std::time::Instant::now();
        match number % 4 {
            0 => {
                let reply = question(system, ("x-api-token", system.token())).await;
                assert_eq!(reply.status, 200, "question {number}: {}", reply.text);
            }
            1 => {
                let reply = report(system, number).await;
                assert_eq!(reply.status, 200, "report {number}: {}", reply.text);
            }
            2 => {
                system.call("getQueue", json!({})).await;
            }
            _ => {
                let (status, _) = sign_in(system, &browser, system.token()).await;
                assert_eq!(status, 303, "sign-in {number}");
            }
        }
        took.push(begun.elapsed());
    }
    attacks.end();
    took
}

/// The duration that 99 of 100 requests do not exceed.
fn p99(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() * 99 / 100 - 1]
}

/// All attacks at the same time, until they end: with a public id, the token of a viewer, and one of
/// another organization.
async fn attack(system: &System, attacks: &Attacks, public: &str, [viewer, other]: [&str; 2]) {
    let wrong = damaged(viewer);
    let stranger = client(STRANGER);
    let halves = async {
        let mut open = Vec::new();
        while next(&attacks.halves).await {
            open.push(half_a_question(system, public).await);
        }
        open
    };
    let large = async {
        while next(&attacks.large).await {
            large_body(system, "/hooks/nowhere.example").await;
        }
    };
    let bundles = async {
        let mut number = 0;
        while next(&attacks.bundles).await {
            public_bundle(system, public, number).await;
            number += 1;
        }
    };
    let tokens = async {
        while next(&attacks.tokens).await {
            sign_in(system, &stranger, &wrong).await;
        }
    };
    let streams = async {
        let (_, cookie) = sign_in(system, &stranger, viewer).await;
        let mut open = Vec::new();
        while next(&attacks.streams).await {
            let request = stranger.get(format!("{}/ui/events?topics=org", system.url()));
            open.push(request.header("cookie", &cookie).send().await);
        }
        open
    };
    let calls = async {
        let mut sent = JoinSet::new();
        while next(&attacks.calls).await {
            let request = stranger.post(format!("{}/v1/listQueues", system.url()));
            sent.spawn(request.header("x-api-token", other).json(&json!({})).send());
        }
        for reply in sent.join_all().await {
            let status = reply.expect("a reply").status().as_u16();
            assert!(status == 200 || status == 503, "{status}");
        }
    };
    // The connections and streams stay open until all of it is over.
    let _open = tokio::join!(halves, large, bundles, tokens, streams, calls);
}

/// Every honest request succeeds. Returns the 99th percentiles without attacks and beside them.
async fn served_beside_attacks(on: On) -> (Duration, Duration) {
    let mut system = System::new(on, "exit 0\n", 1).await;
    with_spool(&mut system, 64).await;
    let public = public_id(&system);
    let (_, viewer) = system.token_with(&["--org", "acme", "--name", "greedy"]);
    system.run(&["org", "create", "other"]);
    let (_, other) = system.token_with(&["--org", "other", "--name", "busy"]);
    let quiet = async |first: usize| p99(honest(&system, first, &Attacks::new()).await);
    quiet(0).await;
    let before = quiet(HONEST).await;
    let attacks = Attacks::new();
    let hostile = honest(&system, 2 * HONEST, &attacks);
    let attacked = attack(&system, &attacks, &public, [&viewer, &other]);
    let (hostile, ()) = tokio::join!(hostile, attacked);
    let hostile = p99(hostile);
    // The machine may have become busier meanwhile, or less busy.
    let quiet = before.max(quiet(3 * HONEST).await);
    assert_eq!(system.get("/readyz").await, "ready\n");
    (quiet, hostile)
}

#[tokio::test(flavor = "multi_thread")]
async fn honest_clients_are_served_beside_a_hostile_mix_on_sqlite() {
    served_beside_attacks(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn honest_clients_are_served_beside_a_hostile_mix_on_postgres() {
    served_beside_attacks(On::Postgres).await;
}

/// The attackers share the machine with the server, so a busy one makes it fail.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "compares durations: run it alone, on a machine that does nothing else"]
async fn the_p99_beside_a_hostile_mix_is_within_twice_the_quiet_one() {
    for on in [On::Sqlite, On::Postgres] {
        let (quiet, hostile) = served_beside_attacks(on).await;
        assert!(
            hostile <= 2 * quiet.max(NOISE),
            "{on:?}: 99 of 100 requests take {hostile:?} beside attacks, and {quiet:?} without"
        );
    }
}
