//! Reads rows into records, and contains statements that several modules share.

use crate::Failure;
use crate::params::Param;
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Display;
use tokio_postgres::Row;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::{FromSql, Type};
use tributary_domain::app::{App, AppSecret};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::StoreError;
use tributary_store::records::{AppRow, ColumnValue, Columns, StoredRow};
use uuid::Uuid;

/// Converts an id into its SQL type.
pub(crate) const fn uuid(bytes: &[u8; 16]) -> Uuid {
    Uuid::from_bytes(*bytes)
}

/// Reads an id by column name or index.
pub(crate) fn id(
    row: &Row,
    column: impl RowIndex + Display,
) -> Result<[u8; 16], tokio_postgres::Error> {
    row.try_get(column).map(Uuid::into_bytes)
}

/// Reads a nullable id.
pub(crate) fn optional_id(
    row: &Row,
    column: impl RowIndex + Display,
) -> Result<Option<[u8; 16]>, tokio_postgres::Error> {
    let id: Option<Uuid> = row.try_get(column)?;
    Ok(id.map(Uuid::into_bytes))
}

/// A database row in the form that the records can read.
pub(crate) struct PostgresRow<'a>(pub(crate) &'a Row);

/// A column value of any supported type.
struct Cell<'a>(ColumnValue<'a>);

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *kind {
            Type::BOOL => ColumnValue::Boolean(bool::from_sql(kind, raw)?),
            Type::INT2 => ColumnValue::Integer(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => ColumnValue::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => ColumnValue::Integer(i64::from_sql(kind, raw)?),
            Type::BYTEA | Type::UUID => ColumnValue::Bytes(raw),
            _ => ColumnValue::Text(<&str>::from_sql(kind, raw)?),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(ColumnValue::Null))
    }

    fn accepts(kind: &Type) -> bool {
        [
            Type::BOOL,
            Type::INT2,
            Type::INT4,
            Type::INT8,
            Type::BYTEA,
            Type::UUID,
            Type::TEXT,
        ]
        .contains(kind)
    }
}

impl StoredRow for PostgresRow<'_> {
    type Failure = Failure;

    fn value(&self, index: usize) -> Result<ColumnValue<'_>, Failure> {
        let Cell(value) = self.0.try_get(index)?;
        Ok(value)
    }

    fn unreadable(&self, index: usize) -> Failure {
        let column = self
            .0
            .columns()
            .get(index)
            .map_or("?", |column| column.name());
        StoreError::corrupt("row", "value", column).into()
    }
}

/// Reads a record from the first columns of a row.
pub(crate) fn read_row<T: for<'a> Columns<'a>>(row: &Row) -> Result<T, Failure> {
    read_row_at(row, 0)
}

/// Reads a record from the columns starting at an index.
pub(crate) fn read_row_at<T: for<'a> Columns<'a>>(row: &Row, first: usize) -> Result<T, Failure> {
    T::from_row(&PostgresRow(row), first)
}

/// The purpose of an app lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppLockMode {
    /// To read the app or its data.
    Reading,
    /// To change the app or its data. Other changes wait until this transaction ends; inserts that
    /// only refer to the app do not.
    Changing,
}

impl AppLockMode {
    const fn lock(self) -> &'static str {
        match self {
            Self::Reading => "",
            Self::Changing => "for no key update",
        }
    }
}

/// The columns of `apps`.
pub(crate) const APP_COLUMNS: &str = AppRow::COLUMNS;

/// Finds one of an organization's apps.
pub(crate) async fn find_app(
    tx: &Tx,
    organization: OrganizationId,
    app: AppId,
    purpose: AppLockMode,
) -> Result<App, Failure> {
    let lock = purpose.lock();
    let sql =
        format!("select {APP_COLUMNS} from apps where app_id = $1 and organization_id = $2 {lock}");
    let row = tx
        .query_opt(
            &sql,
            &[&uuid(app.as_bytes()), &uuid(organization.as_bytes())],
        )
        .await?
        .ok_or(Refusal::AppNotFound)?;
    // Read after locking; otherwise the secrets could be older than the app row.
    let mut secrets = app_secrets(tx, &[app]).await?;
    Ok(read_row::<AppRow>(&row)?.read(secrets.remove(&app).unwrap_or_default())?)
}

/// Finds an app by id, for endpoints without an organization.
pub(crate) async fn app_by_id(tx: &Tx, app: Uuid) -> Result<Option<App>, Failure> {
    let sql = format!("select {APP_COLUMNS} from apps where app_id = $1");
    let rows = tx.query(&sql, &[&app]).await?;
    Ok(read_apps(tx, &rows).await?.pop())
}

/// Reads apps and their secrets.
pub(crate) async fn read_apps(tx: &Tx, rows: &[Row]) -> Result<Vec<App>, Failure> {
    let rows = rows
        .iter()
        .map(read_row::<AppRow>)
        .collect::<Result<Vec<_>, Failure>>()?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<AppId> = rows
        .iter()
        .map(|row| AppId::from_bytes(row.app_id))
        .collect();
    let mut secrets = app_secrets(tx, &ids).await?;
    let apps = ids.iter().zip(rows);
    apps.map(|(id, row)| Ok(row.read(secrets.remove(id).unwrap_or_default())?))
        .collect()
}

/// Rejects an app that does not belong to the organization.
pub(crate) async fn require_app(
    tx: &Tx,
    organization: OrganizationId,
    app: AppId,
    purpose: AppLockMode,
) -> Result<(), Failure> {
    let lock = purpose.lock();
    let sql = format!("select 1 from apps where app_id = $1 and organization_id = $2 {lock}");
    tx.query_opt(
        &sql,
        &[&uuid(app.as_bytes()), &uuid(organization.as_bytes())],
    )
    .await?
    .ok_or(Refusal::AppNotFound)?;
    Ok(())
}

/// Finds the names of the apps' stored secrets.
pub(crate) async fn app_secrets(
    tx: &Tx,
    apps: &[AppId],
) -> Result<BTreeMap<AppId, BTreeSet<AppSecret>>, Failure> {
    let ids: Vec<Uuid> = apps.iter().map(|app| uuid(app.as_bytes())).collect();
    let rows = tx
        .query(
            "select app_id, name from app_secrets where app_id = any($1)",
            &[&ids],
        )
        .await?;
    let mut secrets: BTreeMap<AppId, BTreeSet<AppSecret>> = BTreeMap::new();
    for row in &rows {
        let app = AppId::from_bytes(id(row, 0)?);
        let secret = AppSecret::parse(row.try_get(1)?)
            .ok_or_else(|| StoreError::corrupt("app_secrets", "name", app))?;
        secrets.entry(app).or_default().insert(secret);
    }
    Ok(secrets)
}

/// Prefixes each column with its table, for joins.
pub(crate) fn qualified(table: &str, columns: &str) -> String {
    let columns: Vec<String> = columns
        .split(", ")
        .map(|column| format!("{table}.{column}"))
        .collect();
    columns.join(", ")
}

/// Builds a `where` clause from optional conditions. Each combination is a separate statement,
/// which the server plans for exactly these conditions.
pub(crate) struct Conditions<'a> {
    sql: String,
    params: Vec<&'a dyn Param>,
}

impl<'a> Conditions<'a> {
    /// Starts with a mandatory condition.
    pub(crate) fn new(column: &str, value: &'a dyn Param) -> Self {
        Self {
            sql: format!("{column} = $1"),
            params: vec![value],
        }
    }

    /// Adds a comparison such as `link_id <` if there is a value.
    pub(crate) fn and<T: Param>(mut self, comparison: &str, value: Option<&'a T>) -> Self {
        if let Some(value) = value {
            self.params.push(value);
            self.sql = format!("{} and {comparison} ${}", self.sql, self.params.len());
        }
        self
    }

    /// Adds an `= any` condition if there are values.
    pub(crate) fn and_any<T: Param>(mut self, column: &str, values: Option<&'a T>) -> Self {
        if let Some(values) = values {
            self.params.push(values);
            self.sql = format!("{} and {column} = any(${})", self.sql, self.params.len());
        }
        self
    }

    /// Ends the statement: newest first, with a limit.
    pub(crate) fn newest(mut self, key: &str, rows: &'a i64) -> (String, Vec<&'a dyn Param>) {
        self.params.push(rows);
        let position = self.params.len();
        let sql = format!("{} order by {key} desc limit ${position}", self.sql);
        (sql, self.params)
    }
}
