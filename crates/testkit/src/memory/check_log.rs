//! The store of check output.

use async_trait::async_trait;
use signalbox_domain::ids::{OrgId, RunId};
use signalbox_domain::ports::{CheckLog, CheckOutput, MAX_CHECK_OUTPUT, StoreError};
use signalbox_domain::time::Timestamp;

use super::MemoryDatabase;

#[async_trait]
impl CheckLog for MemoryDatabase {
    async fn write(&self, output: &CheckOutput) -> Result<(), StoreError> {
        let key = (output.org, output.run, output.check.clone());
        // As in the databases: without NUL, which PostgreSQL cannot store, and truncated.
        let mut text = output.text.replace('\0', "\u{fffd}");
        text.truncate(text.floor_char_boundary(MAX_CHECK_OUTPUT));
        self.tables().check_outputs.insert(key, CheckOutput { text, ..output.clone() });
        Ok(())
    }

    async fn replace(&self, output: &CheckOutput, written: Timestamp) -> Result<bool, StoreError> {
        let known = self.read(output.org, output.run, &output.check).await?;
        if known.is_none_or(|known| known.at != written) {
            return Ok(false);
        }
        self.write(output).await.map(|()| true)
    }

    async fn read(
        &self,
        org: OrgId,
        run: RunId,
        check: &str,
    ) -> Result<Option<CheckOutput>, StoreError> {
        Ok(self.tables().check_outputs.get(&(org, run, check.to_owned())).cloned())
    }

    async fn written(&self, org: OrgId, run: RunId) -> Result<Option<Timestamp>, StoreError> {
        let tables = self.tables();
        let of_run = tables.check_outputs.iter().filter(|(key, _)| (key.0, key.1) == (org, run));
        Ok(of_run.map(|(_, output)| output.at).max())
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let mut left = limit;
        let mut pruned = 0;
        tables.check_outputs.retain(|_, output| {
            let goes = left > 0 && output.at < before;
            if goes {
                left -= 1;
                pruned += 1;
            }
            !goes
        });
        Ok(pruned)
    }
}
