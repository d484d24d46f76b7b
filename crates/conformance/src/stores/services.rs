//! The contract of use cases on several servers that share the stores.

use std::sync::Arc;

use signalbox_domain::ids::{BranchName, TokenId};
use signalbox_domain::ports::Stores;
use signalbox_domain::queue::{
    CheckConclusion, Command, DirectMergeMode, Input, MergeMethod, OptimizationMode,
    RequestedState, Settings, SettingsPatch, TestBranchConstructionMode,
};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_services::{Context, QueueChange, QueueService};
use uuid::Uuid;

use super::Sample;
use crate::fake_host::{FakeHost, FakeHosts};
use crate::plain_events::PlainEvents;

/// The number of servers.
const SERVERS: usize = 4;

fn server(sample: &Sample<'_>, ids: &Arc<CountingIds>) -> Arc<QueueService> {
    let clock = Arc::new(ManualClock::default());
    let host = FakeHost::new(clock.clone(), |_| CheckConclusion::Success);
    host.add_repository(&sample.repository.name, &[("readme", "calc")]);
    Arc::new(QueueService::new(Context {
        stores: sample.stores.clone(),
        hosts: Arc::new(FakeHosts::one(&sample.repository.name.host, Arc::new(host))),
        clock,
        ids: ids.clone(),
        observer: Arc::new(Quiet),
        events: Arc::new(PlainEvents),
        notifier: Arc::new(Quiet),
    }))
}

/// Patches of one setting each, all different from the settings of a new queue.
fn patches() -> Vec<SettingsPatch> {
    macro_rules! alone {
        ($($field:ident: $value:expr),+ $(,)?) => {
            vec![$(SettingsPatch { $field: Some($value), ..SettingsPatch::default() }),+]
        };
    }
    alone!(
        concurrency: 7,
        bisection_concurrency: 3,
        testing_timeout_minutes: 11,
        pending_failure_depth: 2,
        can_optimistically_merge: true,
        batch: true,
        batching_min_size: 9,
        batching_max_wait_time_minutes: 13,
        create_prs_for_testing_branches: false,
        comments_enabled: false,
        commands_enabled: false,
        status_check_enabled: false,
        required_statuses: vec!["lint".to_owned()],
        direct_merge_mode: DirectMergeMode::Always,
        optimization_mode: OptimizationMode::BisectionSkipRedundantTests,
        merge_method: MergeMethod::Rebase,
        extension_enabled: false,
        enqueueing_label: "ship-it".to_owned(),
        label_commands_enabled: true,
        state_labels_enabled: true,
        not_ready_timeout_hours: 5,
        test_branch_construction_mode: TestBranchConstructionMode::PushNewBranchFromTemp,
        allowed_bot_submitters: vec!["renovate[bot]".to_owned()],
    )
}

/// Of concurrent partial updates on several servers none is lost: afterwards every setting has its
/// new value, each update is one journal record, and each reply contains its own change.
pub async fn concurrent_updates_are_not_lost(stores: &Stores) {
    let sample = Sample::new(stores).await;
    let ids = Arc::new(CountingIds::default());
    let servers: Vec<_> = (0..SERVERS).map(|_| server(&sample, &ids)).collect();
    let caller = Arc::new(Caller {
        org: sample.queue.org,
        org_slug: "acme".parse().expect("a slug"),
        token: TokenId(Uuid::from_u128(1)),
        name: "terraform".to_owned(),
        scopes: Scope::ALL.to_vec(),
        repos: Vec::new(),
        compatibility: Compatibility::V1Live,
        source: None,
    });
    let mut expected = Settings::clone(&sample.world.queue.header.settings);
    let mut updates: Vec<_> = patches().into_iter().map(|patch| (patch, None)).collect();
    for (patch, _) in &updates {
        expected = patch.applied_to(&expected).expect("within bounds");
    }
    assert_ne!(expected, *sample.world.queue.header.settings);
    updates.push((SettingsPatch::default(), Some(RequestedState::Draining)));
    let count = updates.len();
    let tasks: Vec<_> = updates
        .into_iter()
        .enumerate()
        .map(|(at, (patch, state))| {
            let (server, caller) = (servers[at % SERVERS].clone(), caller.clone());
            let repo = sample.repository.name.clone();
            tokio::spawn(async move {
                let main = BranchName::new("main").expect("a branch");
                let change =
                    QueueChange { settings: patch.clone(), state, ..QueueChange::default() };
                let after = server.update_queue(&caller, &repo, &main, change).await;
                let after = after.expect("not refused").header.settings.clone();
                assert_eq!(patch.applied_to(&after).expect("within bounds"), *after);
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("an update that shows in its own reply");
    }
    let (queue, _) = sample.load().await;
    assert_eq!(*queue.header.settings, expected);
    assert_eq!(queue.header.state.name().as_str(), "DRAINING");
    let journal = stores.queue.reads.journal(sample.queue, 0, 1_000).await.expect("a journal");
    let of_updates = |input: &Input| matches!(input, Input::Command(Command::Update { .. }));
    assert_eq!(journal.iter().filter(|it| of_updates(&it.input)).count(), count);
}
