//! The contract of the store of processed webhook deliveries.

use signalbox_domain::ids::HostId;
use signalbox_domain::ports::Stores;

use super::{Sample, at};

/// A delivery is processed once per organization and host, until its record is deleted.
pub async fn a_delivery_is_recorded_once_until_its_record_is_deleted(stores: &Stores) {
    let (org, other) =
        (Sample::org(stores, "acme").await.id, Sample::org(stores, "other").await.id);
    let host = |name: &str| HostId::new(name).expect("a host");
    let (one, two) = (host("github.com"), host("git.example"));
    let deliveries = &stores.host.inbound_deliveries;
    assert!(!deliveries.was_taken(org, &one, "d-1").await.expect("a read"));
    assert!(deliveries.taken(org, &one, "d-1", at(1)).await.expect("written"));
    assert!(!deliveries.taken(org, &one, "d-1", at(2)).await.expect("written"), "the second time");
    assert!(deliveries.was_taken(org, &one, "d-1").await.expect("a read"));
    assert!(!deliveries.was_taken(org, &two, "d-1").await.expect("a read"));
    assert!(!deliveries.was_taken(other, &one, "d-1").await.expect("a read"));
    assert!(deliveries.taken(other, &one, "d-1", at(3)).await.expect("written"));
    assert_eq!(deliveries.forget(at(1), 10).await.expect("forgotten"), 0);
    assert_eq!(deliveries.forget(at(4), 1).await.expect("forgotten"), 1);
    assert!(!deliveries.was_taken(org, &one, "d-1").await.expect("a read"), "the oldest first");
    assert_eq!(deliveries.forget(at(4), 10).await.expect("forgotten"), 1);
}
