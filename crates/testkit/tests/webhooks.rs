//! The use cases of webhooks on stores in memory, with failing receivers and dying servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use signalbox_conformance::fake_host::{FakeHost, FakeHosts};
use signalbox_domain::ids::{OrgId, OrgSlug, RepoName, TokenId};
use signalbox_domain::ports::{LeasedEndpoint, Org, Stores};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_domain::webhook::{EndpointId, EndpointSettings, MessageState, OffReason, Sent};
use signalbox_services::{Context, WebhookLimits, WebhookParts, WebhookService};
use signalbox_testkit::fake_webhooks::FakeWebhooks;
use signalbox_testkit::memory::MemoryDatabase;
use uuid::Uuid;

const KIND: &str = "pull_request.merged";

struct Fixture {
    clock: Arc<ManualClock>,
    stores: Stores,
    hooks: Arc<FakeWebhooks>,
    service: WebhookService,
    caller: Caller,
}

impl Fixture {
    async fn new(backlog: u32) -> Self {
        let clock = Arc::new(ManualClock::default());
        let stores = MemoryDatabase::new().stores();
        let slug = OrgSlug::new("acme").expect("a slug");
        let org = Org {
            id: OrgId(Uuid::from_u128(9)),
            slug,
            created_at: Timestamp::from_unix_seconds(0),
        };
        let org = stores.account.orgs.create(&org).await.expect("an organization");
        let host = Arc::new(FakeHost::new(clock.clone(), |_| {
            signalbox_domain::queue::CheckConclusion::Success
        }));
        let context = Context {
            stores: stores.clone(),
            hosts: Arc::new(FakeHosts::one(&"git.test".parse().expect("a host"), host)),
            clock: clock.clone(),
            ids: Arc::new(CountingIds::default()),
            observer: Arc::new(Quiet),
            notifier: Arc::new(Quiet),
            events: Arc::new(signalbox_conformance::PlainEvents),
        };
        let hooks = Arc::new(FakeWebhooks::default());
        let parts = WebhookParts {
            log: hooks.clone(),
            catalog: hooks.clone(),
            sender: hooks.clone(),
            secrets: hooks.clone(),
        };
        let limits = WebhookLimits { endpoints: 50, backlog };
        let service = WebhookService::new(context, parts, limits);
        let caller = Caller {
            org: org.id,
            org_slug: org.slug,
            token: TokenId(Uuid::nil()),
            name: "ci".to_owned(),
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
            source: None,
        };
        Self { clock, stores, hooks, service, caller }
    }

    async fn endpoint(&self, name: &str) -> EndpointId {
        let settings = EndpointSettings {
            url: format!("https://{name}.test/"),
            description: String::new(),
            kinds: Vec::new(),
        };
        let created = self.service.create_endpoint(&self.caller, settings, true).await;
        created.expect("an endpoint").endpoint.id
    }

    fn happens(&self, count: usize) -> Vec<Uuid> {
        let now = signalbox_domain::ports::Clock::now(&*self.clock);
        (0..count).map(|_| self.hooks.happens(self.caller.org, KIND, now)).collect()
    }

    async fn fan_out(&self) {
        while self.service.fan_out().await.expect("messages") > 0 {}
    }

    async fn leased(&self) -> Vec<LeasedEndpoint> {
        let healthy = self.service.lease(99, false).await.expect("leases");
        let failing = self.service.lease(99, true).await.expect("leases");
        [healthy, failing].concat()
    }

    /// Runs one turn of every endpoint.
    async fn turns(&self) {
        for leased in self.leased().await {
            let due = self.service.due(&leased, self.service.turn_end(), 999).await;
            for message in due.expect("messages") {
                self.service.deliver(&leased, &message).await.expect("kept or lost");
            }
            self.service.release(&leased).await.expect("released");
        }
    }

    async fn waiting(&self, id: EndpointId) -> u64 {
        self.stores.webhook.endpoints.waiting(self.caller.org, id).await.expect("a count")
    }
}

fn failed() -> Sent {
    Sent::Answered { status: 500, abort: false, retry_after: None, body: String::new() }
}

#[tokio::test]
async fn every_message_arrives_under_one_id_although_servers_die_and_receivers_fail() {
    for seed in 1_u64..40 {
        let fixture = Fixture::new(1_000).await;
        let id = fixture.endpoint("a").await;
        let (mut state, mut ids, mut events) = (seed, BTreeMap::new(), Vec::new());
        let mut draw = |range: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % range
        };
        for _ in 0..30 {
            events.extend(fixture.happens(usize::try_from(draw(3)).expect("small")));
            fixture.fan_out().await;
            for leased in fixture.leased().await {
                let due = fixture.service.due(&leased, fixture.service.turn_end(), 9).await;
                for message in due.expect("messages") {
                    if draw(4) == 0 {
                        fixture.hooks.answer([failed()]);
                    }
                    if draw(5) == 0 {
                        // The server dies after the post: another one has the lease by then.
                        fixture.service.hand_back(true).await.expect("ended");
                    }
                    fixture.service.deliver(&leased, &message).await.expect("kept or lost");
                }
                if draw(2) == 0 {
                    fixture.service.release(&leased).await.expect("released");
                }
            }
            fixture.clock.advance(Span::minutes(u32::try_from(draw(9)).expect("small")));
        }
        for _ in 0..12 {
            fixture.clock.advance(Span::hours(11));
            fixture.turns().await;
        }
        assert_eq!(fixture.waiting(id).await, 0, "seed {seed}");
        for (_, message, body) in fixture.hooks.posted() {
            ids.entry(body).or_insert_with(BTreeSet::new).insert(message);
        }
        assert_eq!(ids.len(), events.len(), "seed {seed}: none is lost");
        assert!(ids.values().all(|ids| ids.len() == 1), "seed {seed}: one id each");
    }
}

#[tokio::test]
async fn an_endpoint_with_a_full_backlog_gets_no_more_until_it_has_room() {
    let fixture = Fixture::new(5).await;
    let (slow, quick) = (fixture.endpoint("slow").await, fixture.endpoint("quick").await);
    let events = fixture.happens(12);
    fixture.fan_out().await;
    assert_eq!((fixture.waiting(slow).await, fixture.waiting(quick).await), (5, 5));
    for leased in fixture.leased().await.iter().filter(|it| it.endpoint.id == quick) {
        let due =
            fixture.service.due(leased, fixture.service.turn_end(), 99).await.expect("messages");
        for message in due {
            assert!(fixture.service.deliver(leased, &message).await.expect("kept"));
        }
    }
    fixture.fan_out().await;
    assert_eq!((fixture.waiting(slow).await, fixture.waiting(quick).await), (5, 5));
    fixture.service.hand_back(true).await.expect("ended");
    for _ in 0..3 {
        fixture.turns().await;
        fixture.fan_out().await;
    }
    assert_eq!((fixture.waiting(slow).await, fixture.waiting(quick).await), (0, 0));
    assert_eq!(fixture.hooks.posted().len(), 2 * events.len(), "each once");
}

#[tokio::test]
async fn an_endpoint_that_fails_for_five_days_is_disabled_without_effect_on_others() {
    let fixture = Fixture::new(1_000).await;
    let dead = fixture.endpoint("dead").await;
    let endpoint =
        async |id| fixture.service.endpoint(&fixture.caller, id).await.expect("an endpoint");
    for _ in 0..24 {
        fixture.happens(1);
        fixture.fan_out().await;
        let due = fixture.leased().await;
        for leased in due {
            let due = fixture.service.due(&leased, fixture.service.turn_end(), 99).await;
            for message in due.expect("messages") {
                fixture.hooks.answer([failed()]);
                assert!(fixture.service.deliver(&leased, &message).await.expect("kept"));
            }
            fixture.service.release(&leased).await.expect("released");
        }
        fixture.clock.advance(Span::hours(6));
    }
    let off = endpoint(dead).await.health.off.expect("off");
    assert_eq!(off.reason, OffReason::Failing);
    let alive = fixture.endpoint("alive").await;
    fixture.hooks.posted();
    fixture.happens(3);
    fixture.fan_out().await;
    fixture.turns().await;
    let posted = fixture.hooks.posted();
    assert_eq!(posted.len(), 3);
    assert!(posted.iter().all(|it| it.0 == "https://alive.test/"), "{posted:?}");
    assert!(endpoint(alive).await.health.is_on());
    let filter = signalbox_domain::ports::MessageFilter {
        state: Some(MessageState::Failed),
        ..Default::default()
    };
    let failed =
        fixture.stores.webhook.endpoints.messages(fixture.caller.org, dead, &filter, None, 999);
    assert!(!failed.await.expect("messages").is_empty(), "the first ones have used all attempts");
}

#[tokio::test]
async fn a_turn_ends_and_a_limited_token_is_refused() {
    let fixture = Fixture::new(1_000).await;
    fixture.endpoint("a").await;
    fixture.happens(1);
    fixture.fan_out().await;
    let leased = fixture.leased().await.remove(0);
    let end = fixture.service.turn_end();
    assert_eq!(fixture.service.due(&leased, end, 9).await.expect("one").len(), 1);
    fixture.clock.advance(Span::minutes(1));
    assert!(fixture.service.due(&leased, end, 9).await.expect("none").is_empty());
    let scopes = Scope::ALL.into_iter().filter(|it| *it != Scope::QueueAdmin).collect();
    let less = Caller { scopes, ..fixture.caller.clone() };
    assert!(fixture.service.endpoints(&less).await.is_err());
    let repos = vec![RepoName::parse("git.test/acme/calc").expect("a name")];
    let limited = Caller { repos, ..fixture.caller.clone() };
    assert!(fixture.service.endpoints(&limited).await.is_err());
}

#[tokio::test]
async fn a_retry_after_is_respected_up_to_ten_hours() {
    for (asked, left_alone) in [(20, 20), (7_200, 7_200), (90_000, 36_000)] {
        let fixture = Fixture::new(1_000).await;
        fixture.endpoint("busy").await;
        fixture.happens(1);
        fixture.fan_out().await;
        let retry_after = Some(Span::seconds(asked));
        fixture.hooks.answer([Sent::Answered {
            status: 503,
            abort: false,
            retry_after,
            body: String::new(),
        }]);
        fixture.turns().await;
        assert_eq!(fixture.hooks.posted().len(), 1);
        fixture.clock.advance(Span::seconds(left_alone - 1));
        fixture.turns().await;
        assert_eq!(fixture.hooks.posted().len(), 0, "{asked} s were requested");
        // Jitter adds at most a tenth.
        fixture.clock.advance(Span::seconds(left_alone / 10 + 1));
        fixture.turns().await;
        assert_eq!(fixture.hooks.posted().len(), 1, "{asked} s have passed");
    }
}
