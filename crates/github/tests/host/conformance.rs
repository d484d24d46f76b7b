//! What every git host promises.

use async_trait::async_trait;
use signalbox_conformance::git_host::HostWorld;
use signalbox_conformance::git_place::GitPlace;
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{Forge, GitHost, LandedNote, Repository};
use signalbox_domain::queue::{Land, MergeMethod};

use crate::world::World;

#[async_trait]
impl HostWorld for World {
    fn place(&self) -> &GitPlace {
        self
    }

    fn host(&self) -> &dyn GitHost {
        self.host.as_ref()
    }

    fn repository(&self) -> &Repository {
        &self.repository
    }

    fn pushed(&self, branch: &str) {
        self.double.pushed(branch);
    }

    async fn open(&self, branch: &str) -> PrNumber {
        let number = self.double.open(branch, "main", &format!("change {branch}"));
        PrNumber(u32::try_from(number).expect("small"))
    }

    async fn close(&self, pr: PrNumber) {
        self.double.close(u64::from(pr.0));
    }

    fn knows_conflicting_paths(&self) -> bool {
        false
    }

    async fn close_landed(&self, order: &Land, landed: &Sha) {
        for change in &order.changes {
            let note = LandedNote {
                pr: change.pr,
                head: change.head.clone(),
                sha: landed.clone(),
                rewritten: order.method != MergeMethod::MergeCommit,
            };
            let closed = self.host.close_landed(&self.repository, &note).await;
            assert_eq!(closed.expect("closed"), None, "nothing was pushed later");
        }
    }

    fn report(&self, commit: &Sha, name: &str) {
        self.double.report(commit.as_str(), name, "completed", Some("success"));
    }
}

signalbox_conformance::git_host_conformance!(async { World::new() });

#[tokio::test(flavor = "multi_thread")]
async fn a_squash_names_all_of_its_authors() {
    signalbox_conformance::git_host::a_squash_names_all_of_its_authors(&World::new()).await;
}
