//! Errors returned by store methods.

use tributary_domain::refusal::Refusal;

/// Error returned by a store method.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A domain rule refused the request. Nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database could not be read, or a commit was not confirmed. A change may or may not have
    /// been stored; retry.
    #[error("the database is unavailable ({during})")]
    Unavailable {
        /// Name of the failed transaction.
        during: &'static str,
        /// Error reported by the database.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A stored value is unreadable: a bug, or the database was edited.
    #[error("unreadable value in {table}.{column} of {id}")]
    Corrupt {
        /// Table.
        table: &'static str,
        /// Column.
        column: &'static str,
        /// Id of the row.
        id: String,
    },
}

/// Source of [`StoreError::Unavailable`] when the database file is damaged. Retrying does not help
/// until an operator restores the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the database is damaged")]
pub struct DatabaseDamaged;

/// Source of [`StoreError::Unavailable`] when a query of a report took longer than
/// `limits.report_timeout_seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the query took longer than the time limit for reports")]
pub struct ReportTimeout;

/// Source of [`StoreError::Unavailable`] when a value is encrypted with another secret key than the one
/// in use. A node that knows both keys uses the new one within seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret key was replaced; this node uses the new one within seconds, if it knows it")]
pub struct KeyReplaced;

impl StoreError {
    /// Returns whether a report took too long.
    pub fn is_report_timeout(&self) -> bool {
        matches!(self, Self::Unavailable { source, .. } if source.is::<ReportTimeout>())
    }

    /// Creates an error for a database failure.
    pub fn unavailable(
        during: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            during,
            source: source.into(),
        }
    }

    /// Creates an error for an unreadable value.
    pub fn corrupt(table: &'static str, column: &'static str, id: impl ToString) -> Self {
        Self::Corrupt {
            table,
            column,
            id: id.to_string(),
        }
    }
}
