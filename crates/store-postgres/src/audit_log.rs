//! Reads the audit log and its chains.

use crate::params::{Param, column};
use crate::rows::{Conditions, id, optional_id, qualified, read_row, read_row_at, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, Authorized, Environment};
use tributary_domain::audit::{AuditContext, AuditEntry};
use tributary_domain::vocabulary::id::{AppId, AuditId, OrganizationId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::admin::{chain_audit_entries, note_action, remove_audit_entries};
use tributary_store::records::{AuditChainRow, AuditPlaceRow, AuditRow, Columns, stored_sequence};
use tributary_store::{
    ActionNote, AuditLog, AuditedChangesQuery, ChainPage, ChainedEntry, StoreResult,
};
use uuid::Uuid;

#[async_trait]
impl AuditLog for PostgresStore {
    async fn audit_log(
        &self,
        caller: &Authorized<AppsRead>,
        app: Option<AppId>,
        page: PageRequest,
    ) -> StoreResult<Page<AuditEntry>> {
        let (organization, limit) = caller.organization_and_apps();
        let organization = uuid(organization.as_bytes());
        let apps = limit.narrowed_to(app);
        let apps = apps.map(|apps| column(&apps, |app| uuid(app.as_bytes())));
        let before = page.before.as_ref().map(uuid);
        let environment = caller.audited_environment();
        let environment = environment.map(|environment| environment.as_str().to_owned());
        self.read_for(caller, "audit_log", async move |tx| {
            let rows = page.limit.rows();
            let (conditions, params) = Conditions::new("organization_id", &organization)
                .and_any("app_id", apps.as_ref())
                .and("environment =", environment.as_ref())
                .and("audit_id <", before.as_ref())
                .newest("audit_id", &rows);
            let entries = read_entries(tx, &conditions, &params).await?;
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
        let organization = uuid(organization.as_bytes());
        let apps = limit.narrowed_to(Some(app)).unwrap_or_default();
        let apps = column(&apps, |app| uuid(app.as_bytes()));
        let environment = caller.audited_environment();
        self.read_for(caller, "audited_changes", async move |tx| {
            find_changes(tx, (organization, &apps), environment, &query).await
        })
        .await
    }

    async fn audited_organizations(
        &self,
        after: Option<OrganizationId>,
        limit: u32,
    ) -> StoreResult<Vec<OrganizationId>> {
        self.read("audited_organizations", async move |tx| {
            let after = after.map_or(Uuid::nil(), |after| uuid(after.as_bytes()));
            // Not from the chains: a chain that was removed must be found.
            let sql = "select organization_id from organizations
                       where organization_id > $1 order by organization_id limit $2";
            let rows = tx.query(sql, &[&after, &i64::from(limit)]).await?;
            let organization = |row| Ok(OrganizationId::from_bytes(id(row, 0)?));
            rows.iter().map(organization).collect()
        })
        .await
    }

    async fn audit_chain_page(
        &self,
        organization: OrganizationId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Option<ChainPage>> {
        let organization = uuid(organization.as_bytes());
        let after = stored_sequence(after);
        self.read("audit_chain_page", async move |tx| {
            read_chain_page(tx, organization, after, limit).await
        })
        .await
    }

    async fn note_action(&self, note: ActionNote, origin: AuditContext) -> StoreResult<()> {
        self.write("note_action", async move |tx| {
            note_action(tx, &note, &origin).await
        })
        .await
    }

    async fn chain_audit_entries(&self, from: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("chain_audit_entries", async move |tx| {
            chain_audit_entries(tx, from, limit).await
        })
        .await
    }

    async fn remove_audit_entries(
        &self,
        before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        self.write("remove_audit_entries", async move |tx| {
            remove_audit_entries(tx, before, now, limit).await
        })
        .await
    }
}

async fn find_changes(
    tx: &Tx,
    (organization, apps): (Uuid, &[Uuid]),
    environment: Option<Environment>,
    query: &AuditedChangesQuery,
) -> Result<Vec<AuditEntry>, Failure> {
    let apps = apps.to_vec();
    let actions: Vec<&str> = query.actions.iter().map(|one| one.as_str()).collect();
    let from = uuid(AuditId::first_at(query.period.0).as_bytes());
    let until = uuid(AuditId::first_at(query.period.1).as_bytes());
    let environment = environment.map(Environment::as_str);
    let rows = i64::from(query.limit);
    let (conditions, params) = Conditions::new("organization_id", &organization)
        .and_any("app_id", Some(&apps))
        .and_any("action", Some(&actions))
        .and("environment =", environment.as_ref())
        .and("audit_id >=", Some(&from))
        .and("audit_id <", Some(&until))
        .newest("audit_id", &rows);
    read_entries(tx, &conditions, &params).await
}

async fn read_entries(
    tx: &Tx,
    conditions: &str,
    params: &[&dyn Param],
) -> Result<Vec<AuditEntry>, Failure> {
    let columns = AuditRow::COLUMNS;
    let sql = format!("select {columns}, sequence from audit_log where {conditions}");
    let rows = tx.query(&sql, params).await?;
    let entry = |row| Ok(read_row::<AuditRow>(row)?.read(row.try_get(AuditRow::COUNT)?)?);
    rows.iter().map(entry).collect()
}

/// Reads a page in one statement, so that the entries and the state of the chain belong together. An
/// organization without a chain has an empty one, so that the verification finds entries without their
/// chain.
async fn read_chain_page(
    tx: &Tx,
    organization: Uuid,
    after: i64,
    limit: u32,
) -> Result<Option<ChainPage>, Failure> {
    let chain = qualified("audit_chains", AuditChainRow::COLUMNS);
    let (places, entries) = (AuditPlaceRow::COLUMNS, AuditRow::COLUMNS);
    let entry = qualified("entries", entries);
    let sql = format!(
        "select {chain}, entries.audit_id, entries.sequence, entries.hash, {entry}
         from (
             select organization_id, last_sequence, last_hash, removed_sequence, removed_hash,
                    removed_at, missing, is_waiting
             from audit_chains where organization_id = $1
             union all
             select organization_id, 0::bigint, decode(repeat('00', 32), 'hex'), 0::bigint,
                    decode(repeat('00', 32), 'hex'), null::bigint, 0::bigint, false
             from (values ($1::uuid)) as wanted (organization_id)
             join organizations using (organization_id)
             where not exists (select from audit_chains where organization_id = $1)
         ) as audit_chains
         left join lateral (
             select {places}, {others} from audit_log
             where audit_log.organization_id = audit_chains.organization_id
               and sequence > greatest($2, audit_chains.removed_sequence)
             order by sequence limit $3) as entries on true
         where audit_chains.organization_id = $1
         order by entries.sequence",
        others = entries.replace(", audit_id", ""),
    );
    let rows = tx
        .query(&sql, &[&organization, &after, &i64::from(limit)])
        .await?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let chain = read_row::<AuditChainRow>(first)?.read();
    let place_at = AuditChainRow::COUNT;
    let mut entries = Vec::with_capacity(rows.len());
    for row in &rows {
        // A chain without further entries is one row with nulls.
        if optional_id(row, place_at)?.is_none() {
            break;
        }
        let place = read_row_at::<AuditPlaceRow>(row, place_at)?.read().place;
        let entry = read_row_at::<AuditRow>(row, place_at + AuditPlaceRow::COUNT)?;
        let entry = entry.hashed();
        entries.push(ChainedEntry { place, entry });
    }
    let has_more = u32::try_from(entries.len()).is_ok_and(|count| count == limit);
    Ok(Some(ChainPage {
        chain,
        entries,
        has_more,
    }))
}
