//! Positions of the streams of the audit log.

use super::fixtures::{SharedStore, app, at, organization};
use std::collections::BTreeMap;
use tributary_domain::audit::stream::AuditStream;
use tributary_domain::vocabulary::id::OrganizationId;

async fn backlog(store: &SharedStore, stream: AuditStream) -> BTreeMap<OrganizationId, u64> {
    let found = store.audit_stream_backlog(stream, 1_000).await;
    found.expect("a backlog").into_iter().collect()
}

/// A stream has a backlog until all entries of an organization are noted, and again after new ones.
pub async fn a_stream_continues_where_it_stopped(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    app(store, &one).await;
    let (file, syslog) = (AuditStream::File, AuditStream::Syslog);
    let first = backlog(store, file).await;
    assert_eq!(first[&one.organization()], 0);
    assert_eq!(first[&other.organization()], 0);
    for sequence in [1, 2] {
        let noted = store
            .note_streamed(file, one.organization(), sequence)
            .await;
        noted.expect("a position");
        let position = backlog(store, file).await.get(&one.organization()).copied();
        assert_eq!(position, (sequence < 2).then_some(sequence));
    }
    app(store, &one).await;
    assert_eq!(backlog(store, file).await[&one.organization()], 2);
    // Streams are independent.
    assert_eq!(backlog(store, syslog).await[&one.organization()], 0);
    let limited = store.audit_stream_backlog(syslog, 1).await;
    assert_eq!(limited.expect("a backlog").len(), 1);
}

/// One node at a time has a stream, until it releases it or its lease ends.
pub async fn a_stream_is_leased_by_one_node(store: &SharedStore) {
    let (file, syslog) = (AuditStream::File, AuditStream::Syslog);
    let lease = async |stream, now, until| {
        let leased = store.lease_audit_stream(stream, at(now), at(until)).await;
        leased.expect("an answer")
    };
    assert!(lease(file, 1, 60).await);
    assert!(!lease(file, 2, 61).await);
    assert!(lease(syslog, 2, 61).await);
    assert!(lease(file, 60, 120).await, "the lease has ended");
    store.release_audit_stream(file).await.expect("a release");
    assert!(lease(file, 61, 121).await);
}
