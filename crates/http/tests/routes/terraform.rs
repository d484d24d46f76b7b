//! The public service's Terraform provider and other clients take turns at a queue's settings: each
//! reply has what was sent and everything else as it was, and the queue knows what has changed since
//! Terraform last wrote it.

use std::collections::BTreeSet;

use actix_web::test::TestRequest;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use signalbox_domain::ports::Loaded;
use signalbox_domain::queue::{
    LineSyntax, ManagedState, RequestedState, SETTINGS, SettingKind, SettingSpec,
};
use signalbox_domain::token::EnumCase;

use crate::support::{Grant, Server};

/// A change of a queue.
#[derive(Clone, Debug)]
struct Change {
    by_terraform: bool,
    keys: Map<String, Value>,
}

/// A value of a setting, as a client of the public service sends it.
fn value(spec: &SettingSpec) -> BoxedStrategy<Value> {
    let names = || prop::collection::vec("[a-z]{1,8}", 0..4);
    match spec.kind {
        SettingKind::Whole { min, max, .. } => {
            prop_oneof![Just(min), Just(max), min..=max].prop_map(Value::from).boxed()
        }
        SettingKind::Flag => any::<bool>().prop_map(Value::from).boxed(),
        SettingKind::Word(words) => select(words).prop_map(|it| it.to_lowercase().into()).boxed(),
        SettingKind::Text { .. } => "[a-z:-]{1,20}".prop_map(Value::from).boxed(),
        SettingKind::Names { .. } => names().prop_map(Value::from).boxed(),
        SettingKind::Lines(syntax) => {
            let rule = match syntax {
                LineSyntax::Freeze => "Fri 16:00/Mon 08:00[UTC] weekend",
                LineSyntax::TargetRule => "api/** api",
                LineSyntax::Capacity => "ios 2",
            };
            select(vec![vec![], vec![rule]]).prop_map(Value::from).boxed()
        }
        SettingKind::Rules => {
            let rule = |name: &String| json!({ "targetPattern": name, "policy": "isolate" });
            names().prop_map(move |names| names.iter().map(rule).collect()).boxed()
        }
    }
}

/// A change of some settings, and perhaps the state. Terraform drops the own list of required statuses
/// whenever its configuration has none.
fn change() -> impl Strategy<Value = Change> {
    let setting = |spec: &'static SettingSpec| {
        prop::option::weighted(0.2, value(spec)).prop_map(|it| it.map(|value| (spec.name, value)))
    };
    let settings: Vec<_> = SETTINGS.iter().map(setting).collect();
    let state = prop::option::weighted(0.3, select(RequestedState::NAMES));
    (any::<bool>(), settings, state).prop_map(|(by_terraform, settings, state)| {
        let state = state.map(|state| ("state", state.to_lowercase().into()));
        let keys = settings.into_iter().flatten().chain(state);
        let mut keys: Map<String, Value> =
            keys.map(|(name, value)| (name.to_owned(), value)).collect();
        if by_terraform && !keys.contains_key("requiredStatuses") {
            keys.insert("deleteRequiredStatuses".to_owned(), json!(true));
        }
        Change { by_terraform, keys }
    })
}

/// What a client knows about a queue: its state and settings.
fn known(queue: Value) -> Map<String, Value> {
    let Value::Object(mut queue) = queue else { panic!("no object: {queue}") };
    queue.retain(|key, _| !key.starts_with("paused") && key != "enqueuedPullRequests");
    queue
}

async fn send(server: &Server, token: &str, change: &Change) -> Value {
    let mut body = change.keys.clone();
    body.insert("repo".to_owned(), json!({"host": "git.test", "owner": "acme", "name": "calc"}));
    body.insert("targetBranch".to_owned(), json!("main"));
    let mut request = TestRequest::post()
        .uri("/v1/updateQueue")
        .insert_header(("x-api-token", token))
        .set_json(&body);
    if change.by_terraform {
        request = request.insert_header(("x-source", "terraform"));
    }
    let reply = server.call(request).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

/// The queue's management, and the fields that drifted.
async fn management(server: &Server) -> (ManagedState, BTreeSet<String>) {
    let queues = &server.stores.queue.queues;
    let key = queues.list(None, None).await.expect("queues").remove(0);
    let loaded = queues.load(key.queue, None).await.expect("loaded");
    let Some(Loaded::Fresh(queue, _)) = loaded else { panic!("no queue") };
    let drift = queue.header.management.iter().flat_map(|it| &it.drift);
    (queue.header.managed_state(), drift.map(|it| it.field.clone()).collect())
}

async fn replies_echo_and_drift_is_known(changes: &[Change]) {
    let server = Server::new().await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    let read = async || known(server.post_as(&token, "getQueue", json!({})).await.json());
    let mut expected = read().await;
    let mut applied = None;
    for change in changes {
        let mut keys = change.keys.clone();
        if keys.remove("deleteRequiredStatuses").is_some() {
            keys.insert("requiredStatuses".to_owned(), json!([]));
        }
        expected.extend(keys);
        assert_eq!(known(send(&server, &token, change).await), expected, "the reply");
        assert_eq!(read().await, expected, "the queue");
        if change.by_terraform {
            applied = Some(expected.clone());
        }
        let differs = |applied: &Map<String, Value>| -> BTreeSet<String> {
            let fields = applied.iter().filter(|(key, value)| expected.get(*key) != Some(*value));
            fields.map(|(key, _)| key.clone()).collect()
        };
        let (state, drift) = management(&server).await;
        match applied.as_ref().map(differs) {
            None => assert_eq!(state, ManagedState::Manual),
            Some(differs) if differs.is_empty() => assert_eq!(state, ManagedState::Terraform),
            Some(differs) => {
                assert_eq!((state, drift), (ManagedState::TerraformWithDrift, differs));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn replies_echo_what_was_sent_and_drift_is_known(changes in prop::collection::vec(change(), 1..8)) {
        actix_web::rt::System::new().block_on(replies_echo_and_drift_is_known(&changes));
    }
}

#[actix_web::test]
async fn a_mode_switch_shows_what_terraform_requested_and_can_be_repeated() {
    let server = Server::new().await;
    let token = server.grant(Grant { case: EnumCase::Lower, ..Grant::default() }).await;
    server.submitted("b").await;
    let Value::Object(keys) = json!({"mode": "parallel", "state": "draining"}) else {
        panic!("an object")
    };
    let change = Change { by_terraform: true, keys };
    for _ in 0..2 {
        let reply = send(&server, &token, &change).await;
        assert_eq!((&reply["mode"], &reply["state"]), (&json!("parallel"), &json!("draining")));
    }
    server.settle().await;
    let queue = known(server.post_as(&token, "getQueue", json!({})).await.json());
    assert_eq!((&queue["mode"], &queue["state"]), (&json!("parallel"), &json!("draining")));
    assert_eq!(management(&server).await.0, ManagedState::Terraform);
}
