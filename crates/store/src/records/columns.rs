//! Rows of tables, read by both engines from one list of columns.
//!
//! [`row!`] declares a row once. The list of its columns in a statement and the places that they are read from both come
//! from that declaration, so that a new column is a line here and a value in each engine's insert.

use std::borrow::Cow;

/// A value of a column, as an engine hands it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnValue<'a> {
    /// No value.
    Null,
    /// A truth value, where the engine has them.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A text.
    Text(&'a str),
    /// Bytes, or an id.
    Bytes(&'a [u8]),
}

/// What a column is read as.
pub trait FromColumn<'a>: Sized {
    /// Reads a value; nothing when it is of another kind.
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

/// A row as an engine hands it out.
pub trait StoredRow {
    /// Why a column cannot be read.
    type Failure;

    /// The value of the column at a place.
    fn value(&self, place: usize) -> Result<ColumnValue<'_>, Self::Failure>;

    /// What is said of a column whose value is of another kind than its row says.
    fn unreadable(&self, place: usize) -> Self::Failure;

    /// Reads the column at a place.
    fn column<'a, T: FromColumn<'a>>(&'a self, place: usize) -> Result<T, Self::Failure> {
        T::read(self.value(place)?).ok_or_else(|| self.unreadable(place))
    }
}

/// Something that is read from the columns of a row.
pub trait Columns<'a>: Sized {
    /// Its columns, as a statement lists them.
    const COLUMNS: &'static str;
    /// How many they are.
    const COUNT: usize;

    /// Reads it from the columns that begin at a place.
    fn from_row<R: StoredRow>(row: &'a R, first: usize) -> Result<Self, R::Failure>;
}

/// Declares a row of a table: its columns in the order of statements.
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
                let mut places = first..;
                let mut next = || places.next().unwrap_or(usize::MAX);
                Ok(Self {
                    $first: row.column(next())?,
                    $($column: row.column(next())?,)*
                })
            }
        }
    };
}

pub(super) use row;
