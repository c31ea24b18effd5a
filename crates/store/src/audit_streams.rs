//! Positions of the streams of the audit log.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::audit::stream::AuditStream;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::time::Timestamp;

/// Which entries each stream has sent. All nodes share a stream; one at a time leases it.
#[async_trait]
pub trait AuditStreams: Send + Sync {
    /// Leases a stream until a time. Returns false if another node has it.
    async fn lease_audit_stream(
        &self,
        stream: AuditStream,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<bool>;

    /// Ends the lease of a stream.
    async fn release_audit_stream(&self, stream: AuditStream) -> StoreResult<()>;

    /// Returns at most `limit` organizations with entries that the stream has not sent, by id, with
    /// the sequence number of the last sent one.
    async fn audit_stream_backlog(
        &self,
        stream: AuditStream,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, u64)>>;

    /// Records that the stream has sent an organization's entries up to a sequence number.
    async fn note_streamed(
        &self,
        stream: AuditStream,
        organization: OrganizationId,
        sequence: u64,
    ) -> StoreResult<()>;
}
