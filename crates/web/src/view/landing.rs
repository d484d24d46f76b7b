//! What a landing consists of, on the page of a merged pull request.

use signalbox_domain::queue::{Composition, Entry, EntryState, Exit, LandingProof};
use signalbox_wording::composition;

use super::QueueAddress;
use crate::model::{Block, Cell, Section};
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
