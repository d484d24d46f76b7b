//! The owners of tests, and what their tests cost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::flaky::{Delay, TestId, TestStatus, delayed};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::TestSnapshot;
use signalbox_domain::time::Span;

use super::ROWS;
use super::test_list::{List, NO_OWNER, TestsAddress, owners_of};
use crate::model::{Block, Cell, Page, Section, Table};
use crate::text::{plain, span};

/// The delays by each test.
type Delays = BTreeMap<TestId, Vec<Delay>>;

/// The unhealthy and quarantined tests of an owner. A test of several owners counts for each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Share<'a> {
    flaky: usize,
    broken: usize,
    quarantined: usize,
    failures: u64,
    pull_requests: BTreeSet<PrNumber>,
    delays: Vec<&'a Delay>,
}

impl<'a> Share<'a> {
    fn add(&mut self, test: &TestSnapshot, delays: &'a Delays) {
        match test.record.test.standing.value {
            TestStatus::Healthy => {}
            TestStatus::Flaky => self.flaky += 1,
            TestStatus::Broken => self.broken += 1,
        }
        self.quarantined += usize::from(test.quarantined);
        self.failures += u64::from(test.numbers.failures_7d);
        self.pull_requests.extend(&test.numbers.pull_requests_7d);
        self.delays.extend(delays.get(&test.record.test.id).into_iter().flatten());
    }
}

/// The shares of all owners, the costliest first; without an owner: `None`. The case of letters does not
/// matter.
fn shares<'a>(tests: &'a [TestSnapshot], delays: &'a Delays) -> Vec<(Option<&'a str>, Share<'a>)> {
    let mut shares: BTreeMap<String, (Option<&str>, Share<'_>)> = BTreeMap::new();
    for test in tests {
        for owner in owners_of(&test.record) {
            let of_owner = shares.entry(owner.to_lowercase());
            of_owner.or_insert_with(|| (Some(owner), Share::default())).1.add(test, delays);
        }
        if owners_of(&test.record).next().is_none() {
            shares.entry(String::new()).or_default().1.add(test, delays);
        }
    }
    let mut shares: Vec<_> = shares.into_values().collect();
    let cost = |it: &Share<'_>| (it.pull_requests.len(), it.failures);
    shares.sort_by_key(|(_, share)| Reverse(cost(share)));
    shares
}

/// How long branches were delayed; `–` if they were not.
pub(super) fn delay<'a>(delays: impl IntoIterator<Item = &'a Delay>) -> String {
    let time = delayed(delays);
    if time == Span::ZERO { "–".to_owned() } else { span(time) }
}

/// The page. `tests` are the flaky, broken and quarantined tests, each one once; `most`: how many of each
/// list were read, when there are more.
pub(crate) fn page(
    place: &TestsAddress,
    tests: &[TestSnapshot],
    delays: &Delays,
    most: Option<usize>,
) -> Page {
    let heads = [
        "Owner",
        "#Flaky",
        "#Broken",
        "#Quarantined",
        "#Failed runs in 7 d",
        "#Pull requests affected",
        "#Delay",
    ];
    let mut table = Table::new("owners", "Owners of tests", &heads)
        .empty("No test is flaky, broken or quarantined.");
    let shares = shares(tests, delays);
    let all = shares.len();
    for (owner, share) in shares.into_iter().take(ROWS) {
        let name = owner.unwrap_or(NO_OWNER);
        let count = |number: usize, list| {
            let cell = Cell::number(number);
            if number > 0 { cell.link(place.owned(list, name)) } else { cell }
        };
        table.push(
            table.rows.len(),
            vec![
                Cell::text(owner.map_or("No owner".to_owned(), |owner| plain(owner, 120))),
                count(share.flaky, List::Flaky),
                count(share.broken, List::Broken),
                count(share.quarantined, List::Quarantined),
                Cell::number(share.failures),
                Cell::number(share.pull_requests.len()),
                Cell::number(delay(share.delays)),
            ],
        );
    }
    let mut section = Section::plain("list")
        .with(Block::Text(
            "Owners come from CODEOWNERS, as the uploader read it. A test of several owners counts for \
             each of them. Delay: how long pull requests and the merge queue waited in the last 7 days, from a \
             failure until the same job passed on the same commit; time spent waiting for several tests at the \
             same time is counted once."
                .to_owned(),
        ))
        .with(Block::Table(table));
    if let Some(most) = most {
        let text = format!("Only the first {most} tests of each list are counted.");
        section = section.with(Block::Text(text));
    }
    if all > ROWS {
        let text = format!("Only {ROWS} of {all} owners are shown.");
        section = section.with(Block::Text(text));
    }
    Page {
        title: format!("Owners of {}", place.name()),
        above: vec![Cell::text("Tests").link(format!("/{}/flaky-tests", place.org))],
        menu: place.menu("flaky-tests/owners"),
        sections: vec![section],
        topic: format!("tests:{}", place.id),
        only_hint: true,
        ..Page::default()
    }
}
