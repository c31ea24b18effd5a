//! Statement parameters.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// A statement parameter with its type, which an unprepared statement needs.
pub(crate) trait Param: ToSql + Sync {
    /// The SQL type.
    fn sql_type(&self) -> Type;

    /// The elements of an array; empty for other types.
    fn elements(&self) -> Vec<&dyn Param>;
}

/// A Rust type with a fixed SQL type.
pub(crate) trait SqlTyped {
    /// The SQL type.
    const TYPE: Type;

    /// The elements of an array; empty for other types.
    fn elements(&self) -> Vec<&dyn Param> {
        Vec::new()
    }
}

impl<T: SqlTyped + ToSql + Sync> Param for T {
    fn sql_type(&self) -> Type {
        T::TYPE
    }

    fn elements(&self) -> Vec<&dyn Param> {
        SqlTyped::elements(self)
    }
}

macro_rules! typed {
    ($($rust:ty = $sql:ident;)*) => {$(
        impl SqlTyped for $rust {
            const TYPE: Type = Type::$sql;
        }
    )*};
}

macro_rules! arrays {
    ($($element:ty = $sql:ident;)*) => {$(
        impl SqlTyped for Vec<$element> {
            const TYPE: Type = Type::$sql;

            fn elements(&self) -> Vec<&dyn Param> {
                self.iter().map(|element| element as &dyn Param).collect()
            }
        }
    )*};
}

typed! {
    Uuid = UUID;
    i32 = INT4;
    i64 = INT8;
    bool = BOOL;
    String = TEXT;
    &str = TEXT;
    &[u8] = BYTEA;
}

arrays! {
    Uuid = UUID_ARRAY;
    Option<Uuid> = UUID_ARRAY;
    i32 = INT4_ARRAY;
    Option<i32> = INT4_ARRAY;
    i64 = INT8_ARRAY;
    Option<i64> = INT8_ARRAY;
    bool = BOOL_ARRAY;
    &str = TEXT_ARRAY;
    Option<&str> = TEXT_ARRAY;
    &[u8] = BYTEA_ARRAY;
    Option<&[u8]> = BYTEA_ARRAY;
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
