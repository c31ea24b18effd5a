//! Writes the audit log and its chains.

use crate::Failure;
use crate::audit_log::find_chain;
use crate::instance::write_configuration_version;
use crate::rows::read_row;
use crate::tables::SqliteTables;
use rusqlite::{OptionalExtension, params};
use tributary_domain::audit::chain::{AuditChain, ChainEnd, ChainedId};
use tributary_domain::vocabulary::id::{AuditId, OrganizationId};
use tributary_recording::AuditTable;
use tributary_store::records::{AuditChainRow, AuditPlaceRow, AuditRow, Columns, stored_sequence};

impl AuditTable for SqliteTables<'_> {
    async fn lock_audit_chain(&self, organization: OrganizationId) -> Result<AuditChain, Failure> {
        if let Some(chain) = find_chain(self.0, organization)? {
            return Ok(chain);
        }
        let row = AuditChainRow::write(organization, &AuditChain::NEW);
        let sql = format!(
            "insert into audit_chains ({}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            AuditChainRow::COLUMNS
        );
        self.0.prepare_cached(&sql)?.execute(params![
            row.organization_id,
            row.last_sequence,
            row.last_hash,
            row.removed_sequence,
            row.removed_hash,
            row.removed_at,
            row.missing,
            row.is_waiting
        ])?;
        Ok(AuditChain::NEW)
    }

    async fn write_audit_chain(
        &self,
        organization: OrganizationId,
        chain: &AuditChain,
    ) -> Result<(), Failure> {
        let row = AuditChainRow::write(organization, chain);
        let sql = "update audit_chains
                   set last_sequence = ?2, last_hash = ?3, removed_sequence = ?4,
                       removed_hash = ?5, removed_at = ?6, missing = ?7, is_waiting = ?8
                   where organization_id = ?1";
        self.0.prepare_cached(sql)?.execute(params![
            row.organization_id,
            row.last_sequence,
            row.last_hash,
            row.removed_sequence,
            row.removed_hash,
            row.removed_at,
            row.missing,
            row.is_waiting
        ])?;
        Ok(())
    }

    async fn insert_audit_row(
        &self,
        row: &AuditRow,
        place: Option<ChainEnd>,
    ) -> Result<(), Failure> {
        let sql = "insert into audit_log (organization_id, audit_id, at, actor_kind, actor_id,
                                          action, app_id, target, changes, address, request_id,
                                          environment, sequence, hash)
                   values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        self.0.prepare_cached(sql)?.execute(params![
            row.organization_id,
            row.audit_id,
            row.at,
            row.actor_kind,
            row.actor_id,
            row.action,
            row.app_id,
            row.target,
            row.changes,
            row.address,
            row.request_id,
            row.environment,
            place.map(|place| stored_sequence(place.sequence)),
            place.map(|place| *place.hash.as_bytes())
        ])?;
        Ok(())
    }

    async fn organization_to_chain(
        &self,
        from: AuditId,
    ) -> Result<Option<OrganizationId>, Failure> {
        let sql = "select organization_id from organizations
                   where exists (select 1 from audit_chains
                                 where audit_chains.organization_id = organizations.organization_id
                                   and is_waiting)
                      or exists (select 1 from audit_log
                                 where audit_log.organization_id = organizations.organization_id
                                   and sequence is null and audit_id >= ?1)
                   order by organization_id limit 1";
        let found = self
            .0
            .prepare_cached(sql)?
            .query_row([from.as_bytes()], |row| row.get(0))
            .optional()?;
        Ok(found.map(OrganizationId::from_bytes))
    }

    async fn unchained_audit_rows(
        &self,
        organization: OrganizationId,
        from: AuditId,
        limit: u32,
    ) -> Result<Vec<AuditRow>, Failure> {
        let sql = format!(
            "select {} from audit_log
             where organization_id = ?1 and sequence is null and audit_id >= ?2
             order by audit_id limit ?3",
            AuditRow::COLUMNS
        );
        let mut statement = self.0.prepare_cached(&sql)?;
        let params = params![organization.as_bytes(), from.as_bytes(), limit];
        let rows = statement.query_map(params, read_row::<AuditRow>)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn write_audit_places(
        &self,
        organization: OrganizationId,
        places: &[ChainedId],
    ) -> Result<(), Failure> {
        let sql = "update audit_log set sequence = ?3, hash = ?4
                   where organization_id = ?1 and audit_id = ?2";
        let mut statement = self.0.prepare_cached(sql)?;
        for one in places {
            statement.execute(params![
                organization.as_bytes(),
                one.id.as_bytes(),
                stored_sequence(one.place.sequence),
                one.place.hash.as_bytes()
            ])?;
        }
        Ok(())
    }

    async fn organization_to_cut(
        &self,
        before: AuditId,
    ) -> Result<Option<OrganizationId>, Failure> {
        let sql = "select organization_id from audit_chains
                   where (select audit_id from audit_log
                          where audit_log.organization_id = audit_chains.organization_id
                            and sequence > removed_sequence
                          order by sequence limit 1) < ?1
                   order by organization_id limit 1";
        let found = self
            .0
            .prepare_cached(sql)?
            .query_row([before.as_bytes()], |row| row.get(0))
            .optional()?;
        Ok(found.map(OrganizationId::from_bytes))
    }

    async fn audit_places(
        &self,
        organization: OrganizationId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ChainedId>, Failure> {
        let sql = format!(
            "select {} from audit_log where organization_id = ?1 and sequence > ?2
             order by sequence limit ?3",
            AuditPlaceRow::COLUMNS
        );
        let mut statement = self.0.prepare_cached(&sql)?;
        let params = params![organization.as_bytes(), stored_sequence(after), limit];
        let rows = statement.query_map(params, read_row::<AuditPlaceRow>)?;
        rows.map(|row| Ok(row?.read())).collect()
    }

    async fn remove_audit_rows(
        &self,
        organization: OrganizationId,
        until: u64,
    ) -> Result<u64, Failure> {
        let sql = "delete from audit_log where organization_id = ?1 and sequence <= ?2";
        let params = (organization.as_bytes(), stored_sequence(until));
        let removed = self.0.prepare_cached(sql)?.execute(params)?;
        Ok(u64::try_from(removed).unwrap_or(0))
    }

    async fn remove_unchained_audit_rows(
        &self,
        before: AuditId,
        limit: u32,
    ) -> Result<u64, Failure> {
        let sql = "delete from audit_log where (organization_id, audit_id) in (
                       select audit_log.organization_id, audit_id from organizations
                       cross join audit_log using (organization_id)
                       where sequence is null and audit_id < ?1 limit ?2)";
        let params = (before.as_bytes(), limit);
        let removed = self.0.prepare_cached(sql)?.execute(params)?;
        Ok(u64::try_from(removed).unwrap_or(0))
    }

    async fn write_configuration_version(&self, version: AuditId) -> Result<(), Failure> {
        write_configuration_version(self.0, version)
    }
}

#[cfg(test)]
mod tests {
    use crate::SqliteStore;
    use rusqlite::Connection;
    use std::sync::Arc;
    use tempfile::TempDir;
    use tributary_store::contract::audit_chain::{earlier_entries_get_a_place, tampering_is_found};
    use tributary_store::contract::fixtures::SharedStore;

    const FILE: &str = "tributary.db";

    async fn open() -> (SharedStore, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
        (Arc::new(opened.unwrap().unwrap()), folder)
    }

    /// Runs a statement on the file, as another program would.
    async fn execute(folder: &TempDir, sql: &'static str) {
        let path = folder.path().join(FILE);
        let done = tokio::task::spawn_blocking(move || {
            Connection::open(path).unwrap().execute_batch(sql).unwrap();
        });
        done.await.unwrap();
    }

    #[tokio::test]
    async fn tampering_with_sql_is_found() {
        let (store, folder) = open().await;
        tampering_is_found(&store, async |sql| execute(&folder, sql).await).await;
    }

    #[tokio::test]
    async fn entries_of_earlier_versions_get_a_place() {
        let (store, folder) = open().await;
        earlier_entries_get_a_place(&store, async |sql| execute(&folder, sql).await).await;
    }
}
