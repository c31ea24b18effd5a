//! Positions of the streams of the audit log.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::params;
use tributary_domain::audit::stream::AuditStream;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::stored_sequence;
use tributary_store::{AuditStreams, StoreResult};

#[async_trait]
impl AuditStreams for SqliteStore {
    async fn lease_audit_stream(
        &self,
        stream: AuditStream,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<bool> {
        self.write_keeping_cache("lease_audit_stream", move |connection| {
            let sql = "insert into audit_streams (stream, leased_until) values (?1, ?2)
                       on conflict (stream) do update set leased_until = excluded.leased_until
                       where audit_streams.leased_until <= ?3";
            let params = params![stream.as_str(), until.as_millis(), now.as_millis()];
            let leased = connection.prepare_cached(sql)?.execute(params)?;
            Ok(leased > 0)
        })
        .await
    }

    async fn release_audit_stream(&self, stream: AuditStream) -> StoreResult<()> {
        self.write_keeping_cache("release_audit_stream", move |connection| {
            let sql = "update audit_streams set leased_until = 0 where stream = ?1";
            connection.prepare_cached(sql)?.execute([stream.as_str()])?;
            Ok(())
        })
        .await
    }

    async fn audit_stream_backlog(
        &self,
        stream: AuditStream,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, u64)>> {
        self.read("audit_stream_backlog", move |connection| {
            let sql = "select audit_chains.organization_id, coalesce(sequence, 0)
                       from audit_chains
                       left join audit_stream_positions as sent
                           on sent.stream = ?1
                           and sent.organization_id = audit_chains.organization_id
                       where last_sequence > coalesce(sequence, 0)
                       order by audit_chains.organization_id limit ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![stream.as_str(), limit], |row| {
                let sequence: i64 = row.get(1)?;
                let organization = OrganizationId::from_bytes(row.get(0)?);
                Ok((organization, u64::try_from(sequence).unwrap_or(0)))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn note_streamed(
        &self,
        stream: AuditStream,
        organization: OrganizationId,
        sequence: u64,
    ) -> StoreResult<()> {
        self.write_keeping_cache("note_streamed", move |connection| {
            let sql = "insert into audit_stream_positions (stream, organization_id, sequence)
                       values (?1, ?2, ?3)
                       on conflict (stream, organization_id)
                       do update set sequence = excluded.sequence";
            connection.prepare_cached(sql)?.execute(params![
                stream.as_str(),
                organization.as_bytes(),
                stored_sequence(sequence)
            ])?;
            Ok(())
        })
        .await
    }
}
