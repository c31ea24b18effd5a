//! The values of statements.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// A value for a statement, with its type: a statement that is not kept has nobody else to ask for it.
pub(crate) trait Param: ToSql + Sync {
    /// Its type in the database.
    fn sql_type(&self) -> Type;
}

/// The type of a value, without one.
pub(crate) trait Typed {
    /// Its type in the database.
    const TYPE: Type;
}

impl<T: Typed + ToSql + Sync> Param for T {
    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

macro_rules! typed {
    ($($rust:ty = $sql:ident;)*) => {$(
        impl Typed for $rust {
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

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
}

/// The values alone, for a statement that knows their types.
pub(crate) fn values<'a>(params: &[&'a dyn Param]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| *param as _).collect()
}

/// The values with their types.
pub(crate) fn typed<'a>(params: &[&'a dyn Param]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params
        .iter()
        .map(|param| (*param as _, param.sql_type()))
        .collect()
}

/// One column of many rows, for `unnest`.
pub(crate) fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// `$1, $2, …`: as many as there are columns.
pub(crate) fn placeholders(columns: usize) -> String {
    let marks: Vec<String> = (1..=columns).map(|number| format!("${number}")).collect();
    marks.join(", ")
}
