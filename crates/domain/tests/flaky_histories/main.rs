//! Recorded histories of a repository's flaky tests: uploads, incidents, monitors and decisions of
//! users, step by step. A change of the rules shows here as a diff; an intended one is recorded with
//! `SIGNALBOX_UPDATE=1`. The digest at the end of a line covers every detail of its step.

mod reports;
mod repository;

use std::path::{Path, PathBuf};

use repository::Repository;

/// The number of recorded histories.
const HISTORIES: u64 = 12;
/// The steps of each.
const STEPS: u32 = 130;

/// Numbers that a seed determines (xorshift64*).
#[derive(Clone, Debug)]
struct Numbers(u64);

impl Numbers {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below a limit.
    fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit.max(1))).expect("below a small limit")
    }

    /// Whether something with this chance, in percent, happens.
    fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < chance
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let limit = u32::try_from(of.len()).expect("few");
        &of[usize::try_from(self.below(limit)).expect("small")]
    }
}

fn file(seed: u64) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flaky_histories/recorded");
    folder.join(format!("{seed:02}.txt"))
}

fn history(seed: u64) -> String {
    let mut repository = Repository::new(seed);
    let mut lines = String::new();
    for _ in 0..STEPS {
        lines.push_str(&repository.step());
        lines.push('\n');
    }
    lines
}

#[test]
fn recorded_histories_of_flaky_tests_replay_unchanged() {
    let update = std::env::var_os("SIGNALBOX_UPDATE").is_some();
    for seed in 0..HISTORIES {
        let (path, now) = (file(seed), history(seed));
        if update {
            std::fs::write(&path, &now).expect("written");
            continue;
        }
        let recorded = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = recorded.lines().zip(now.lines()).find(|(was, is)| was != is);
        assert_eq!(differs, None, "{}: record it with SIGNALBOX_UPDATE=1", path.display());
        assert_eq!(recorded.lines().count(), now.lines().count(), "{}", path.display());
    }
}
