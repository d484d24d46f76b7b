//! Reads uploads that were received.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use signalbox_domain::ports::LeasedUpload;
use signalbox_services::{Error, UPLOAD_RENEWAL_SECONDS};

use crate::wiring::{App, chain};

/// Reads waiting uploads, one after the other, until there is none or the server stops.
pub(super) async fn read_uploads(app: Arc<App>) -> Result<(), Error> {
    while !app.stopping.load(Ordering::SeqCst) {
        let Some(leased) = app.uploads.lease(1).await?.pop() else { break };
        read(&app, leased).await?;
    }
    Ok(())
}

/// Reads an upload and renews its lease. A lost lease stops it: another server reads the upload
/// then.
async fn read(app: &App, leased: LeasedUpload) -> Result<(), Error> {
    let (id, seen) = (leased.record.id, leased.clone());
    let heartbeat = async {
        loop {
            tokio::time::sleep(Duration::from_secs(u64::from(UPLOAD_RENEWAL_SECONDS))).await;
            match app.uploads.renew(&seen).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let error = chain("upload", &error);
                    tracing::warn!(upload.id = %id, %error, "could not renew a lease");
                }
            }
        }
    };
    tokio::select! {
        done = app.uploads.read(leased) => done,
        () = heartbeat => {
            tracing::warn!(upload.id = %id, "an upload's lease was lost");
            Ok(())
        }
    }
}
