//! Reads the audit log and its chains.

use crate::rows::{app_list, page_start, read_row, read_row_at};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Params, params};
use tributary_domain::access::{AppsRead, Authorized, Environment};
use tributary_domain::audit::chain::AuditChain;
use tributary_domain::audit::{AuditContext, AuditEntry};
use tributary_domain::vocabulary::id::{AppId, AuditId, OrganizationId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::admin::{chain_audit_entries, note_action, remove_audit_entries};
use tributary_store::records::{AuditChainRow, AuditPlaceRow, AuditRow, Columns, stored_sequence};
use tributary_store::{
    ActionNote, AuditLog, AuditedChangesQuery, ChainPage, ChainedEntry, StoreResult,
};

#[async_trait]
impl AuditLog for SqliteStore {
    async fn audit_log(
        &self,
        caller: &Authorized<AppsRead>,
        app: Option<AppId>,
        page: PageRequest,
    ) -> StoreResult<Page<AuditEntry>> {
        let (organization, limit) = caller.organization_and_apps();
        let apps = limit.narrowed_to(app);
        let environment = caller.audited_environment();
        self.read("audit_log", move |connection| {
            let narrowed = if apps.is_some() {
                "and app_id in (select unhex(value) from json_each(?4))"
            } else {
                "and ?4 is null"
            };
            let sql = format!(
                "select {}, sequence from audit_log where organization_id = ?1 and audit_id < ?2 {narrowed}
                     and (?5 is null or environment = ?5)
                 order by audit_id desc limit ?3",
                AuditRow::COLUMNS
            );
            let values = params![
                organization.as_bytes(),
                page_start(page.before),
                page.limit.rows(),
                apps.map(|apps| app_list(&apps)),
                environment.map(Environment::as_str)
            ];
            let entries = read_entries(connection, &sql, values)?;
            Ok(Page::from_rows(entries, page.limit))
        })
        .await
    }

    async fn audited_changes(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        query: AuditedChangesQuery,
    ) -> StoreResult<Vec<AuditEntry>> {
        let (organization, limit) = caller.organization_and_apps();
        let apps = limit.narrowed_to(Some(app)).unwrap_or_default();
        let environment = caller.audited_environment();
        self.read("audited_changes", move |connection| {
            let sql = format!(
                "select {}, sequence from audit_log
                 where organization_id = ?1
                     and app_id in (select unhex(value) from json_each(?2))
                     and audit_id >= ?3 and audit_id < ?4
                     and action in (select value from json_each(?5))
                     and (?6 is null or environment = ?6)
                 order by audit_id desc limit ?7",
                AuditRow::COLUMNS
            );
            let (from, until) = query.period;
            let ids = [from, until].map(AuditId::first_at);
            let actions = query
                .actions
                .iter()
                .map(|one| format!("\"{}\"", one.as_str()));
            let actions = actions.collect::<Vec<_>>().join(",");
            let values = params![
                organization.as_bytes(),
                app_list(&apps),
                ids[0].as_bytes(),
                ids[1].as_bytes(),
                format!("[{actions}]"),
                environment.map(Environment::as_str),
                query.limit
            ];
            read_entries(connection, &sql, values)
        })
        .await
    }

    async fn audited_organizations(
        &self,
        after: Option<OrganizationId>,
        limit: u32,
    ) -> StoreResult<Vec<OrganizationId>> {
        self.read("audited_organizations", move |connection| {
            let after = after.map_or([0; 16], |after| *after.as_bytes());
            // Not from the chains: a chain that was removed must be found.
            let sql = "select organization_id from organizations
                       where organization_id > ?1 order by organization_id limit ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let organizations = statement.query_map((after, limit), |row| {
                row.get(0).map(OrganizationId::from_bytes)
            })?;
            Ok(organizations.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn audit_chain_page(
        &self,
        organization: OrganizationId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Option<ChainPage>> {
        self.read("audit_chain_page", move |connection| {
            let chain = match find_chain(connection, organization)? {
                Some(chain) => chain,
                None if is_organization(connection, organization)? => AuditChain::NEW,
                None => return Ok(None),
            };
            let after = after.max(chain.anchor.end.sequence);
            let entries = find_entries(connection, organization, after, limit)?;
            let has_more = u32::try_from(entries.len()).is_ok_and(|count| count == limit);
            Ok(Some(ChainPage {
                chain,
                entries,
                has_more,
            }))
        })
        .await
    }

    async fn note_action(&self, note: ActionNote, origin: AuditContext) -> StoreResult<()> {
        self.write_keeping_cache("note_action", move |connection| {
            run(note_action(&SqliteTables(connection), &note, &origin))
        })
        .await
    }

    async fn chain_audit_entries(&self, from: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("chain_audit_entries", move |connection| {
            run(chain_audit_entries(&SqliteTables(connection), from, limit))
        })
        .await
    }

    async fn remove_audit_entries(
        &self,
        before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        self.write("remove_audit_entries", move |connection| {
            let tables = SqliteTables(connection);
            run(remove_audit_entries(&tables, before, now, limit))
        })
        .await
    }
}

/// Reads entries with the columns of [`AuditRow`] and `sequence`.
fn read_entries(
    connection: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<Vec<AuditEntry>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, |row| {
        Ok((read_row::<AuditRow>(row)?, row.get(AuditRow::COUNT)?))
    })?;
    let entry = |row: rusqlite::Result<(AuditRow, Option<i64>)>| {
        let (row, sequence) = row?;
        Ok(row.read(sequence)?)
    };
    rows.map(entry).collect()
}

/// Finds the chain of an organization.
pub(crate) fn find_chain(
    connection: &Connection,
    organization: OrganizationId,
) -> Result<Option<AuditChain>, Failure> {
    let sql = format!(
        "select {} from audit_chains where organization_id = ?1",
        AuditChainRow::COLUMNS
    );
    let row = connection
        .prepare_cached(&sql)?
        .query_row([organization.as_bytes()], read_row::<AuditChainRow>)
        .optional()?;
    Ok(row.map(|row| row.read()))
}

/// Returns whether an organization exists. Without its chain, the verification finds its entries.
fn is_organization(connection: &Connection, organization: OrganizationId) -> Result<bool, Failure> {
    let sql = "select 1 from organizations where organization_id = ?1";
    let mut find = connection.prepare_cached(sql)?;
    Ok(find.exists([organization.as_bytes()])?)
}

fn find_entries(
    connection: &Connection,
    organization: OrganizationId,
    after: u64,
    limit: u32,
) -> Result<Vec<ChainedEntry>, Failure> {
    let sql = format!(
        "select {}, {} from audit_log where organization_id = ?1 and sequence > ?2
         order by sequence limit ?3",
        AuditPlaceRow::COLUMNS,
        AuditRow::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let after = stored_sequence(after);
    let rows = statement.query_map(params![organization.as_bytes(), after, limit], |row| {
        let place = read_row::<AuditPlaceRow>(row)?;
        Ok((place, read_row_at::<AuditRow>(row, AuditPlaceRow::COUNT)?))
    })?;
    let read = |row: rusqlite::Result<(AuditPlaceRow, AuditRow)>| {
        let (place, row) = row?;
        Ok(ChainedEntry {
            place: place.read().place,
            entry: row.hashed(),
        })
    };
    rows.map(read).collect()
}
