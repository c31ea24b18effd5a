//! The three ways a store method ends without a value.

use tributary_domain::refusal::Refusal;

/// Why there is no value.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The rules said no. Nothing was changed; the caller hears why.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database could not commit or be read. Nothing is known to be changed; trying again is right.
    #[error("the database is unavailable ({during})")]
    Unavailable {
        /// The transaction that failed, by name.
        during: &'static str,
        /// What the database said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A stored value makes no sense: a bug, or somebody edited the database.
    #[error("{table}.{column} of {id} holds what this version cannot read")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row.
        id: String,
    },
}

/// The source of [`StoreError::Unavailable`] where the database file is damaged. Trying again does not help until an
/// operator has restored it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the database is damaged")]
pub struct DatabaseDamaged;

impl StoreError {
    /// A fault of the database.
    pub fn unavailable(
        during: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            during,
            source: source.into(),
        }
    }

    /// A value that makes no sense.
    pub fn corrupt(table: &'static str, column: &'static str, id: impl ToString) -> Self {
        Self::Corrupt {
            table,
            column,
            id: id.to_string(),
        }
    }
}
