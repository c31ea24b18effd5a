//! Rows of tables, read by both engines from one list of columns.
//!
//! [`row!`] declares a row once. The column list for SQL statements and the column indexes both
//! follow from this declaration. A new column is one line here and one value in each engine's
//! insert.

use std::borrow::Cow;

/// A value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnValue<'a> {
    /// No value.
    Null,
    /// A boolean, for engines that have booleans.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// Text.
    Text(&'a str),
    /// Bytes, or an id.
    Bytes(&'a [u8]),
}

/// A type that can be read from a column.
pub trait FromColumn<'a>: Sized {
    /// Converts a value. Returns `None` when the value has another type.
    fn read(value: ColumnValue<'a>) -> Option<Self>;
}

impl FromColumn<'_> for bool {
    fn read(value: ColumnValue<'_>) -> Option<Self> {
        match value {
            ColumnValue::Boolean(is) => Some(is),
            ColumnValue::Integer(number) => Some(number != 0),
            _ => None,
        }
    }
}

impl FromColumn<'_> for i64 {
    fn read(value: ColumnValue<'_>) -> Option<Self> {
        match value {
            ColumnValue::Integer(number) => Some(number),
            _ => None,
        }
    }
}

impl FromColumn<'_> for i32 {
    fn read(value: ColumnValue<'_>) -> Option<Self> {
        i64::read(value).and_then(|number| number.try_into().ok())
    }
}

impl<'a> FromColumn<'a> for &'a str {
    fn read(value: ColumnValue<'a>) -> Option<Self> {
        match value {
            ColumnValue::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'a> FromColumn<'a> for Cow<'a, str> {
    fn read(value: ColumnValue<'a>) -> Option<Self> {
        <&str>::read(value).map(Cow::Borrowed)
    }
}

impl FromColumn<'_> for String {
    fn read(value: ColumnValue<'_>) -> Option<Self> {
        <&str>::read(value).map(str::to_owned)
    }
}

impl<const BYTES: usize> FromColumn<'_> for [u8; BYTES] {
    fn read(value: ColumnValue<'_>) -> Option<Self> {
        match value {
            ColumnValue::Bytes(bytes) => bytes.try_into().ok(),
            _ => None,
        }
    }
}

impl FromColumn<'_> for Vec<u8> {
    fn read(value: ColumnValue<'_>) -> Option<Self> {
        match value {
            ColumnValue::Bytes(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }
}

impl<'a, T: FromColumn<'a>> FromColumn<'a> for Option<T> {
    fn read(value: ColumnValue<'a>) -> Option<Self> {
        match value {
            ColumnValue::Null => Some(None),
            value => T::read(value).map(Some),
        }
    }
}

/// A row as an engine returns it.
pub trait StoredRow {
    /// Error when a column cannot be read.
    type Failure;

    /// Returns the value of a column.
    fn value(&self, index: usize) -> Result<ColumnValue<'_>, Self::Failure>;

    /// Builds the error for a column whose value has an unexpected type.
    fn unreadable(&self, index: usize) -> Self::Failure;

    /// Reads a column.
    fn column<'a, T: FromColumn<'a>>(&'a self, index: usize) -> Result<T, Self::Failure> {
        T::read(self.value(index)?).ok_or_else(|| self.unreadable(index))
    }
}

/// A struct that is read from the columns of a row.
pub trait Columns<'a>: Sized {
    /// Column list for statements.
    const COLUMNS: &'static str;
    /// Number of columns.
    const COUNT: usize;

    /// Reads the struct from the columns starting at `first`.
    fn from_row<R: StoredRow>(row: &'a R, first: usize) -> Result<Self, R::Failure>;
}

/// Declares a row struct. Its fields are the columns, in the order used in statements.
macro_rules! row {
    (
        $(#[$meta:meta])*
        pub struct $Row:ident $(<$life:lifetime>)? {
            pub $first:ident: $First:ty,
            $($(#[$doc:meta])* pub $column:ident: $Type:ty,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $Row $(<$life>)? {
            pub $first: $First,
            $($(#[$doc])* pub $column: $Type,)*
        }

        impl<'row $(: $life, $life)?> $crate::records::Columns<'row> for $Row $(<$life>)? {
            const COLUMNS: &'static str =
                concat!(stringify!($first) $(, ", ", stringify!($column))*);
            const COUNT: usize = [stringify!($first) $(, stringify!($column))*].len();

            fn from_row<R: $crate::records::StoredRow>(
                row: &'row R,
                first: usize,
            ) -> Result<Self, R::Failure> {
                let mut indexes = first..;
                let mut next = || indexes.next().unwrap_or(usize::MAX);
                Ok(Self {
                    $first: row.column(next())?,
                    $($column: row.column(next())?,)*
                })
            }
        }
    };
}

pub(super) use row;
