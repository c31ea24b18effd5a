//! Rows to stored shapes, and the statements that several nouns share.

use crate::Failure;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeSet;
use tributary_domain::app::{App, AppSecret};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::StoreError;
use tributary_store::records::{AppRow, AuditRow};

/// Everything of `apps`, in the order that [`app_row`] reads.
pub(crate) const APP_COLUMNS: &str =
    "app_id, organization_id, name, archived, settings, created_at, updated_at, revision";

pub(crate) fn app_row(row: &Row<'_>) -> rusqlite::Result<AppRow> {
    Ok(AppRow {
        app_id: row.get(0)?,
        organization_id: row.get(1)?,
        name: row.get(2)?,
        archived: row.get(3)?,
        settings: row.get(4)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
        revision: row.get(7)?,
    })
}

/// The app of an organization.
pub(crate) fn find_app(
    connection: &Connection,
    organization: OrganizationId,
    app: AppId,
) -> Result<App, Failure> {
    let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1 and organization_id = ?2");
    let row = connection
        .prepare_cached(&sql)?
        .query_row((app.as_bytes(), organization.as_bytes()), app_row)
        .optional()?
        .ok_or(Refusal::AppNotFound)?;
    Ok(row.read(app_secrets(connection, app)?)?)
}

/// Refuses an app that is not the organization's.
pub(crate) fn require_app(
    connection: &Connection,
    organization: OrganizationId,
    app: AppId,
) -> Result<(), Failure> {
    let found = connection
        .prepare_cached("select 1 from apps where app_id = ?1 and organization_id = ?2")?
        .exists((app.as_bytes(), organization.as_bytes()))?;
    if found {
        Ok(())
    } else {
        Err(Refusal::AppNotFound.into())
    }
}

/// The names of the secrets that are stored for an app.
pub(crate) fn app_secrets(
    connection: &Connection,
    app: AppId,
) -> Result<BTreeSet<AppSecret>, Failure> {
    let mut statement =
        connection.prepare_cached("select name from app_secrets where app_id = ?1")?;
    let names = statement.query_map([app.as_bytes()], |row| row.get::<_, String>(0))?;
    names
        .map(|name| {
            let known = AppSecret::parse(&name?);
            known.ok_or_else(|| StoreError::corrupt("app_secrets", "name", app).into())
        })
        .collect()
}

/// Writes an app that exists; its names on the instance are the business of `apps`.
pub(crate) fn update_app_row(connection: &Connection, app: &App) -> Result<(), Failure> {
    let row = AppRow::write(app);
    connection
        .prepare_cached(
            "update apps set name = ?2, archived = ?3, settings = ?4, updated_at = ?5, revision = ?6
             where app_id = ?1",
        )?
        .execute(params![
            row.app_id,
            row.name,
            row.archived,
            row.settings,
            row.updated_at,
            row.revision
        ])?;
    Ok(())
}

/// Writes a line of the audit log.
pub(crate) fn insert_audit(connection: &Connection, row: &AuditRow) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into audit_log (organization_id, audit_id, at, actor_kind, actor_id, action,
                                    app_id, target, changes, address, request_id)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
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
            row.request_id
        ])?;
    Ok(())
}

pub(crate) fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    Ok(AuditRow {
        organization_id: row.get(0)?,
        audit_id: row.get(1)?,
        at: row.get(2)?,
        actor_kind: row.get(3)?,
        actor_id: row.get(4)?,
        action: row.get(5)?,
        app_id: row.get(6)?,
        target: row.get(7)?,
        changes: row.get(8)?,
        address: row.get(9)?,
        request_id: row.get(10)?,
    })
}

/// Where a page begins: behind this id, or at the newest.
pub(crate) fn page_start(before: Option<[u8; 16]>) -> Vec<u8> {
    // Longer than any id and of the highest bytes, so that every id sorts before it.
    before.map_or_else(|| vec![0xff; 17], |id| id.to_vec())
}
