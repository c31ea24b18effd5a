//! Positions of the streams of the audit log.

use crate::PostgresStore;
use crate::rows::{id, uuid};
use async_trait::async_trait;
use tokio_postgres::Row;
use tributary_domain::audit::stream::AuditStream;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::stored_sequence;
use tributary_store::{AuditStreams, StoreResult};

#[async_trait]
impl AuditStreams for PostgresStore {
    async fn lease_audit_stream(
        &self,
        stream: AuditStream,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<bool> {
        self.write("lease_audit_stream", async move |tx| {
            let sql = "insert into audit_streams (stream, leased_until) values ($1, $2)
                       on conflict (stream) do update set leased_until = excluded.leased_until
                       where audit_streams.leased_until <= $3
                       returning stream";
            let (until, now) = (until.as_millis(), now.as_millis());
            let leased = tx.query_opt(sql, &[&stream.as_str(), &until, &now]).await?;
            Ok(leased.is_some())
        })
        .await
    }

    async fn release_audit_stream(&self, stream: AuditStream) -> StoreResult<()> {
        self.write("release_audit_stream", async move |tx| {
            let sql = "update audit_streams set leased_until = 0 where stream = $1";
            tx.execute(sql, &[&stream.as_str()]).await
        })
        .await
    }

    async fn audit_stream_backlog(
        &self,
        stream: AuditStream,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, u64)>> {
        self.read("audit_stream_backlog", async move |tx| {
            let sql = "select audit_chains.organization_id, coalesce(sequence, 0)
                       from audit_chains
                       left join audit_stream_positions as sent
                           on sent.stream = $1
                           and sent.organization_id = audit_chains.organization_id
                       where last_sequence > coalesce(sequence, 0)
                       order by audit_chains.organization_id limit $2";
            let rows = tx
                .query(sql, &[&stream.as_str(), &i64::from(limit)])
                .await?;
            let position = |row: &Row| {
                let sequence: i64 = row.try_get(1)?;
                let organization = OrganizationId::from_bytes(id(row, 0)?);
                Ok((organization, u64::try_from(sequence).unwrap_or(0)))
            };
            rows.iter().map(position).collect()
        })
        .await
    }

    async fn note_streamed(
        &self,
        stream: AuditStream,
        organization: OrganizationId,
        sequence: u64,
    ) -> StoreResult<()> {
        let organization = uuid(organization.as_bytes());
        self.write("note_streamed", async move |tx| {
            let sql = "insert into audit_stream_positions (stream, organization_id, sequence)
                       values ($1, $2, $3)
                       on conflict (stream, organization_id)
                       do update set sequence = excluded.sequence";
            let sequence = stored_sequence(sequence);
            tx.execute(sql, &[&stream.as_str(), &organization, &sequence])
                .await
        })
        .await
    }
}
