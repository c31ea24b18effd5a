//! Statement parameters.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// A statement parameter with its type, which an unprepared statement needs.
pub(crate) trait Param: ToSql + Sync {
    /// The SQL type.
    fn sql_type(&self) -> Type;
}

/// A Rust type with a fixed SQL type.
pub(crate) trait SqlTyped {
    /// The SQL type.
    const TYPE: Type;
}

impl<T: SqlTyped + ToSql + Sync> Param for T {
    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

macro_rules! typed {
    ($($rust:ty = $sql:ident;)*) => {$(
        impl SqlTyped for $rust {
            const TYPE: Type = Type::$sql;
        }
    )*};
}

typed! {
    Uuid = UUID;
    i64 = INT8;
    bool = BOOL;
    String = TEXT;
    &str = TEXT;
    &[u8] = BYTEA;
    Vec<Uuid> = UUID_ARRAY;
    Vec<Option<Uuid>> = UUID_ARRAY;
    Vec<i32> = INT4_ARRAY;
    Vec<Option<i32>> = INT4_ARRAY;
    Vec<i64> = INT8_ARRAY;
    Vec<Option<i64>> = INT8_ARRAY;
    Vec<bool> = BOOL_ARRAY;
    Vec<&str> = TEXT_ARRAY;
    Vec<Option<&str>> = TEXT_ARRAY;
    Vec<&[u8]> = BYTEA_ARRAY;
    Vec<Option<&[u8]>> = BYTEA_ARRAY;
}

impl<T: SqlTyped> SqlTyped for Option<T> {
    const TYPE: Type = T::TYPE;
}

/// Returns only the values, for a prepared statement.
pub(crate) fn values<'a>(params: &[&'a dyn Param]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| *param as _).collect()
}

/// Returns the values with their types, for an unprepared statement.
pub(crate) fn typed<'a>(params: &[&'a dyn Param]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params
        .iter()
        .map(|param| (*param as _, param.sql_type()))
        .collect()
}

/// Collects one column from many rows, for `unnest`.
pub(crate) fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// Returns `$1, $2, …` for this many columns.
pub(crate) fn placeholders(columns: usize) -> String {
    let marks: Vec<String> = (1..=columns).map(|number| format!("${number}")).collect();
    marks.join(", ")
}
