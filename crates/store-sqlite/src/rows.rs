//! Reads rows into records, and contains statements that several modules share.

use crate::Failure;
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeSet;
use tributary_domain::app::{App, AppSecret};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::StoreError;
use tributary_store::records::{AppRow, ColumnValue, Columns, StoredRow};

/// The columns of `apps`.
pub(crate) const APP_COLUMNS: &str = AppRow::COLUMNS;

/// A database row in the form that the records can read.
pub(crate) struct SqliteRow<'a>(pub(crate) &'a Row<'a>);

impl StoredRow for SqliteRow<'_> {
    type Failure = rusqlite::Error;

    fn value(&self, index: usize) -> rusqlite::Result<ColumnValue<'_>> {
        Ok(match self.0.get_ref(index)? {
            ValueRef::Null => ColumnValue::Null,
            ValueRef::Integer(number) => ColumnValue::Integer(number),
            ValueRef::Text(text) => {
                ColumnValue::Text(str::from_utf8(text).map_err(|_| self.unreadable(index))?)
            }
            ValueRef::Blob(bytes) => ColumnValue::Bytes(bytes),
            ValueRef::Real(_) => return Err(self.unreadable(index)),
        })
    }

    fn unreadable(&self, index: usize) -> rusqlite::Error {
        rusqlite::Error::FromSqlConversionFailure(index, Type::Null, "unexpected value type".into())
    }
}

/// Reads a record from the first columns of a row.
pub(crate) fn read_row<T: for<'a> Columns<'a>>(row: &Row<'_>) -> rusqlite::Result<T> {
    T::from_row(&SqliteRow(row), 0)
}

/// Reads a record from the columns of a row starting at an index.
pub(crate) fn read_row_at<T: for<'a> Columns<'a>>(
    row: &Row<'_>,
    first: usize,
) -> rusqlite::Result<T> {
    T::from_row(&SqliteRow(row), first)
}

/// Finds one of an organization's apps.
pub(crate) fn find_app(
    connection: &Connection,
    organization: OrganizationId,
    app: AppId,
) -> Result<App, Failure> {
    let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1 and organization_id = ?2");
    let row = connection
        .prepare_cached(&sql)?
        .query_row(
            (app.as_bytes(), organization.as_bytes()),
            read_row::<AppRow>,
        )
        .optional()?
        .ok_or(Refusal::AppNotFound)?;
    Ok(row.read(app_secrets(connection, app)?)?)
}

/// Finds an app by id, in any organization.
pub(crate) fn app_by_id(connection: &Connection, app: AppId) -> Result<Option<App>, Failure> {
    let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1");
    let row = connection
        .prepare_cached(&sql)?
        .query_row([app.as_bytes()], read_row::<AppRow>)
        .optional()?;
    match row {
        Some(row) => Ok(Some(row.read(app_secrets(connection, app)?)?)),
        None => Ok(None),
    }
}

/// Rejects an app that does not belong to the organization.
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

/// Finds the names of an app's stored secrets.
pub(crate) fn app_secrets(
    connection: &Connection,
    app: AppId,
) -> Result<BTreeSet<AppSecret>, Failure> {
    let mut statement =
        connection.prepare_cached("select name from app_secrets where app_id = ?1")?;
    let names = statement.query_map([app.as_bytes()], |row| row.get::<_, String>(0))?;
    names
        .map(|name| {
            let secret = AppSecret::parse(&name?);
            secret.ok_or_else(|| StoreError::corrupt("app_secrets", "name", app).into())
        })
        .collect()
}

/// Writes ids as a JSON array, for `app_id in (select unhex(value) from json_each(?))`.
pub(crate) fn app_list(apps: &[AppId]) -> String {
    let number = |app: &AppId| u128::from_be_bytes(*app.as_bytes());
    let quoted = apps.iter().map(|app| format!("\"{:032x}\"", number(app)));
    format!("[{}]", quoted.collect::<Vec<_>>().join(","))
}

/// Returns the exclusive upper bound of a page: the given id, or a value above every id.
pub(crate) fn page_start(before: Option<[u8; 16]>) -> Vec<u8> {
    // All ones, and longer than any id, so every id sorts before it.
    before.map_or_else(|| vec![0xff; 17], |id| id.to_vec())
}
