//! The tests of a generated repository.

use signalbox_domain::time::Span;

use super::Shape;
use super::plan::{Calendar, Kind, Name, Period, PlannedTest};
use crate::simulation::random::Random;

/// Tests of a file.
const PER_FILE: usize = 10;
/// Failing runs of flaky tests, in thousandths.
const RATES: [u32; 4] = [20, 50, 100, 300];

/// Decides which tests have which faults, and when.
pub(super) struct Generator<'a> {
    shape: &'a Shape,
    calendar: Calendar,
    random: Random,
    tests: Vec<PlannedTest>,
    /// Stable tests without a part yet, in random order.
    free: Vec<usize>,
}

impl<'a> Generator<'a> {
    pub(super) fn new(shape: &'a Shape, calendar: Calendar, mut random: Random) -> Self {
        let whole = Period { from: calendar.start, until: calendar.end() };
        let tests: Vec<PlannedTest> =
            (0..size(shape.tests)).map(|number| stable(number, whole)).collect();
        let mut free: Vec<usize> = (0..tests.len()).collect();
        for at in (1..free.len()).rev() {
            let other = random.below(small(at + 1));
            free.swap(at, size(other));
        }
        Self { shape, calendar, random, tests, free }
    }

    pub(super) fn tests(mut self) -> Vec<PlannedTest> {
        self.flaky();
        self.dependent_on_order();
        self.on_one_platform();
        self.new_ones();
        self.renamed();
        self.deleted();
        self.broken();
        self.broken_by_a_helper();
        self.tests
    }

    /// So many thousandths of all tests, at least `least`.
    fn share(&self, per_mille: u32, least: u32) -> u32 {
        (self.shape.tests * per_mille / 1_000).max(least)
    }

    fn free(&mut self) -> Option<&mut PlannedTest> {
        let at = self.free.pop()?;
        self.tests.get_mut(at)
    }

    /// An hour of a workday within these thousandths of the time.
    fn workday(&mut self, from: u32, until: u32) -> signalbox_domain::time::Timestamp {
        let day = self.calendar.workday(self.random.between(from, until));
        self.calendar.at(day, self.random.between(600, 900))
    }

    /// Of each rate: half the whole time, a quarter until it is fixed, a quarter from a change on.
    fn flaky(&mut self) {
        for rate in RATES {
            for number in 0..self.share(20, 2) {
                let (start, end) = (self.calendar.start, self.calendar.end());
                let wrong = match number % 4 {
                    1 => Period { from: start, until: self.workday(400, 700) },
                    3 => Period { from: self.workday(300, 600), until: end },
                    _ => Period { from: start, until: end },
                };
                let Some(test) = self.free() else { return };
                (test.kind, test.wrong) = (Kind::Flaky(rate), wrong);
            }
        }
    }

    fn dependent_on_order(&mut self) {
        for number in 0..self.share(10, 2) {
            let polluter = size(self.random.below(self.shape.tests));
            let Some(test) = self.free() else { return };
            test.kind = if number % 2 == 0 { Kind::RandomOrder } else { Kind::FixedOrder };
            test.polluter = polluter;
        }
    }

    fn on_one_platform(&mut self) {
        for _ in 0..self.share(10, 2) {
            let from = self.workday(100, 700);
            let longest = (self.calendar.days / 5).clamp(3, 14);
            let until = from.plus(Span::days(self.random.between(3, longest)));
            let Some(test) = self.free() else { return };
            (test.kind, test.wrong) = (Kind::Platform, Period { from, until });
        }
    }

    /// Tests that come later; one in eight is flaky from the beginning.
    fn new_ones(&mut self) {
        for number in 0..self.share(100, 8) {
            let from = self.workday(150, 850);
            let period = Period { from, until: self.calendar.end() };
            let mut test = stable(self.tests.len(), period);
            if number % 8 == 0 {
                test.kind = Kind::Flaky(100);
            }
            self.tests.push(test);
        }
    }

    /// Tests with another name, or in another file, from some day on; a quarter of them are flaky.
    fn renamed(&mut self) {
        let is_flaky = |(_, test): &(usize, &PlannedTest)| {
            matches!(test.kind, Kind::Flaky(50 | 300)) && test.exists == test.wrong
        };
        let mut flaky: Vec<usize> =
            self.tests.iter().enumerate().filter(is_flaky).map(|(at, _)| at).collect();
        for number in 0..self.share(50, 4) {
            let since = self.workday(250, 850);
            let at = if number % 4 == 0 { flaky.pop() } else { self.free.pop() };
            let Some(test) = at.and_then(|at| self.tests.get_mut(at)) else { continue };
            let Some(Name { file, text, .. }) = test.names.first().cloned() else { continue };
            let renamed = if number % 2 == 0 {
                Name { since, file, text: format!("{text}, with a longer name") }
            } else {
                Name { since, file: format!("moved/{file}"), text }
            };
            test.names.push(renamed);
        }
    }

    /// Tests that go; the first one is flaky.
    fn deleted(&mut self) {
        for number in 0..self.share(10, 2) {
            let until = self.workday(400, 700);
            let Some(test) = self.free() else { return };
            test.exists.until = until;
            if number == 0 {
                test.kind = Kind::Flaky(100);
            }
        }
    }

    /// One to four tests that a change breaks, about every ten days.
    fn broken(&mut self) {
        for number in 0..(self.calendar.days / 10).max(3) {
            let slot = 900 / (self.calendar.days / 10).max(3);
            let from = self.workday(60 + number * slot, 60 + (number + 1) * slot);
            let until = from.plus(Span::hours(self.random.between(8, 72)));
            for _ in 0..self.random.between(1, 4) {
                let Some(test) = self.free() else { return };
                test.broken.push((Period { from, until }, false));
            }
        }
    }

    /// A helper that breaks 40 % of the tests on `main` for half a day.
    fn broken_by_a_helper(&mut self) {
        let from = self.calendar.at(self.calendar.workday(900), 600);
        let until = from.plus(Span::hours(12));
        for test in &mut self.tests {
            if self.random.per_mille(400) {
                test.broken.push((Period { from, until }, true));
            }
        }
    }
}

fn stable(number: usize, period: Period) -> PlannedTest {
    let name = Name {
        since: period.from,
        file: format!("tests/part_{}.rs", number / PER_FILE),
        text: format!("{} adds up", word(number)),
    };
    PlannedTest {
        kind: Kind::Stable,
        names: vec![name],
        exists: period,
        wrong: period,
        broken: Vec::new(),
        polluter: 0,
    }
}

/// A word for a number: its digits as letters.
pub(super) fn word(number: usize) -> String {
    let digits = number.to_string().into_bytes();
    digits.into_iter().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
