//! Random merges, compared with git's own.

use std::collections::BTreeSet;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::Built;
use signalbox_domain::queue::{ConflictWith, MergeMethod};

use super::{Acts as _, HostWorld, build, change};
use crate::git_place::{GitPlace, git_in};

/// A deterministic random number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Edits files at random: lines, whole files, names.
fn edit(place: &GitPlace, numbers: &mut Numbers, mark: &str) {
    for _ in 0..=numbers.below(3) {
        let name = format!("dir{}/file{}.txt", numbers.below(2), numbers.below(4));
        let path = place.clone_folder().join(&name);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        match numbers.below(6) {
            0 => std::fs::remove_file(&path).expect("removed"),
            1 => {
                let name = format!("moved-{mark}-{}.txt", numbers.below(3));
                std::fs::rename(&path, place.clone_folder().join(name)).expect("moved");
            }
            _ => {
                let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
                let at = usize::try_from(numbers.below(lines.len().max(1) as u64)).expect("small");
                if let Some(line) = lines.get_mut(at) {
                    *line = format!("{mark} {}", numbers.below(2));
                }
                std::fs::write(&path, lines.join("\n") + "\n").expect("written");
            }
        }
    }
}

/// Forty merges of random edits: if git merges cleanly, the candidate has git's tree; otherwise the
/// conflict is reported, with git's conflicting paths if the host knows them.
pub async fn merges_equal_those_of_git(world: &dyn HostWorld) {
    let place = world.place();
    let lines: Vec<String> = (0..12).map(|line| format!("line {line}")).collect();
    let text = lines.join("\n") + "\n";
    let files: Vec<String> = (0..8).map(|at| format!("dir{}/file{}.txt", at % 2, at / 2)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|it| (it.as_str(), text.as_str())).collect();
    world.base(&files);
    let (mut clean, mut conflicts) = (0, 0);
    for seed in 0..40 {
        let mut numbers = Numbers(seed * 7_919 + 1);
        let mut heads = Vec::new();
        for name in ["ours", "theirs"] {
            place.git(&["checkout", "-q", "-B", name, "main"]);
            edit(place, &mut numbers, name);
            place.commit(&[], name);
            heads.push(world.push(name));
        }
        let changes = vec![change(PrNumber(1), &heads[1])];
        let request = build(&heads[0], changes, MergeMethod::Squash);
        let built = world.build(&request).await;
        place.git(&["checkout", "-q", "-B", "reference", "ours"]);
        let merged = git_in(&place.clone_folder(), &["merge", "-q", "--no-edit", "theirs"]);
        match built {
            Built::Candidate { candidate, .. } => {
                clean += 1;
                assert!(merged.status.success(), "seed {seed}: git finds a conflict");
                let tree = place.git(&["rev-parse", "HEAD^{tree}"]);
                assert_eq!(candidate.tree.as_str(), tree, "seed {seed}");
            }
            Built::Conflict { pr, with, paths } => {
                conflicts += 1;
                assert!(!merged.status.success(), "seed {seed}: git merges it");
                assert_eq!((pr, with), (PrNumber(1), ConflictWith::Target));
                let unmerged = place.git(&["diff", "--name-only", "--diff-filter=U"]);
                let told: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
                if world.knows_conflicting_paths() {
                    assert_eq!(told, unmerged.lines().collect(), "seed {seed}");
                }
                assert!(!told.is_empty(), "seed {seed}: {unmerged}");
                place.git(&["merge", "--abort"]);
            }
            other @ (Built::MergedBefore { .. } | Built::Mismatch(_)) => {
                panic!("seed {seed}: {other:?}")
            }
        }
    }
    assert!(clean > 5 && conflicts > 5, "{clean} clean, {conflicts} conflicts");
}
