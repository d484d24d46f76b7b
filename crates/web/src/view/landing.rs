//! What a landing consists of, and how it differs from what it should be, on the page of a merged
//! pull request.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{Composition, Entry, EntryState, Exit, LandingProof};
use signalbox_wording::{Tone, compare_landing, composition, undo_landing};

use super::QueueAddress;
use crate::model::{Block, Cell, Section, Table};
use crate::text::plain;

/// The record of the landing, if the queue landed the pull request.
pub(super) fn section(place: &QueueAddress, entry: &Entry) -> Option<Section> {
    let EntryState::Ended(Exit::Merged { sha, tested_tree, landed_tree, proof, .. }) = &entry.state
    else {
        return None;
    };
    let proof = proof.as_deref()?;
    let mut facts = vec![("Target before", Cell::to_copy(proof.base.to_string()))];
    for (pr, head) in &proof.changes {
        facts.push((
            "Change",
            Cell::text(format!("#{pr}")).link(place.pr(*pr)).sub(head.to_string()),
        ));
    }
    facts
        .push(("Merge method", Cell::text(proof.method.as_str().to_lowercase().replace('_', " "))));
    if let Some(sha) = sha {
        facts.push(("Commit", Cell::to_copy(sha.to_string())));
    }
    facts.push(("Tree", tree(tested_tree.as_ref().zip(landed_tree.as_ref()), proof)));
    facts.extend(proof.composition.as_ref().map(|it| ("Composition", checked(it))));
    Some(Section::new("landing", "What landed").with(Block::Details(facts)))
}

/// How a landing differs from what it should be, and how to undo it, if a check has found that.
pub(super) fn incident(place: &QueueAddress, entry: &Entry) -> Option<Section> {
    let EntryState::Ended(Exit::Merged { proof: Some(proof), .. }) = &entry.state else {
        return None;
    };
    let mismatch = proof.mismatch.as_ref()?;
    let notice = Block::notice(
        Tone::Bad,
        "stop",
        "What landed is not the target with the changes of its pull requests.",
        "The queue was paused when this was found. Undo the landing with a pull request before you \
         resume the queue. The pull requests that landed need a new commit before they can be submitted \
         again.",
    );
    let mut facts = vec![
        ("Expected base", Cell::to_copy(mismatch.base.to_string())),
        ("Commit", Cell::to_copy(mismatch.commit.to_string())),
        ("Its tree", Cell::to_copy(mismatch.found.to_string())),
    ];
    let expected = mismatch.expected.as_ref();
    facts.extend(expected.map(|tree| ("Expected tree", Cell::to_copy(tree.to_string()))));
    let mut section = Section::new("incident", "This landing is wrong").with(notice);
    section = section.with(Block::Details(facts));
    if !mismatch.paths.is_empty() {
        let mut paths = Table::new("wrong-paths", "Paths that differ", &["Path that differs"]);
        for (at, path) in mismatch.paths.iter().enumerate() {
            paths.push(at, vec![Cell::code(plain(path, 1_000))]);
        }
        section = section.with(Block::Table(paths));
    }
    let prs: Vec<PrNumber> = proof.changes.iter().map(|(pr, _)| *pr).collect();
    let undo = undo_landing(&place.branch, &prs, mismatch);
    let compare = compare_landing(&place.branch, mismatch);
    Some(section.with(Block::Part("List its commits and show what it changed:", compare)).with(
        Block::Part(
            "Undo all of these commits on a new branch, if none of them is the work of others:",
            undo,
        ),
    ))
}

fn tree<T: ToString + PartialEq>(trees: Option<(&T, &T)>, proof: &LandingProof) -> Cell {
    let Some((tested, landed)) = trees else { return Cell::text("–") };
    let why = if tested == landed {
        "the tested tree"
    } else if proof.exact {
        "not the tested tree"
    } else {
        "the clean merge of the target and the tested candidate"
    };
    Cell::to_copy(landed.to_string()).sub(why.to_owned())
}

fn checked(it: &Composition) -> Cell {
    let about: Vec<&str> =
        it.why_not.iter().chain(&it.merged_by_host).map(String::as_str).collect();
    Cell::text(composition(it)).sub(plain(&about.join(", "), 600))
}
