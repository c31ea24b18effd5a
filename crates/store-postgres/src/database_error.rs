//! Database errors, safe to log.

use std::error::Error as _;
use tokio_postgres::error::SqlState;

/// A database error without row values. PostgreSQL's error details quote whole rows, which contain
/// IP addresses and password hashes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct DatabaseError {
    text: String,
    /// Whether the database rejected a value.
    is_value_error: bool,
    /// Whether every attempt ended in a conflict.
    is_conflict: bool,
    /// Whether the server cancelled the statement, usually because it took too long.
    is_cancelled: bool,
}

impl DatabaseError {
    /// An error that this crate detects itself.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_value_error: false,
            is_conflict: false,
            is_cancelled: false,
        }
    }

    /// The error for a transaction whose attempts all ended in a conflict.
    pub(crate) fn conflict() -> Self {
        Self {
            is_conflict: true,
            ..Self::new("every attempt conflicted with another transaction")
        }
    }

    /// Adds context before the message.
    pub(crate) fn with_context(self, context: &str) -> Self {
        Self {
            text: format!("{context}: {}", self.text),
            ..self
        }
    }

    /// Returns whether the database rejected a value, so that other values may succeed.
    pub(crate) const fn is_value_error(&self) -> bool {
        self.is_value_error
    }

    /// Returns whether every attempt ended in a conflict. A smaller batch has fewer conflicts.
    pub(crate) const fn is_conflict(&self) -> bool {
        self.is_conflict
    }

    /// Returns whether the server cancelled the statement.
    pub(crate) const fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }
}

impl From<&tokio_postgres::Error> for DatabaseError {
    fn from(error: &tokio_postgres::Error) -> Self {
        let Some(db_error) = error.as_db_error() else {
            // Adds the causes that the library reports: operating system or TLS errors.
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            return Self::new(text);
        };
        let (code, message) = (db_error.code().code(), db_error.message());
        let constraint = db_error
            .constraint()
            .map(|name| format!(", constraint {name}"))
            .unwrap_or_default();
        let advice = match *db_error.code() {
            // PgBouncer handed the statement to a session with different prepared statements.
            SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => {
                "; behind PgBouncer, set statement_cache to false"
            }
            _ => "",
        };
        // Classes 22 (invalid value), 23 (constraint violation) and 54 (too long for an index).
        let is_value_error = ["22", "23", "54"]
            .iter()
            .any(|class| code.starts_with(class));
        Self {
            text: format!("{message} (SQLSTATE {code}{constraint}){advice}"),
            is_value_error,
            is_conflict: false,
            is_cancelled: *db_error.code() == SqlState::QUERY_CANCELED,
        }
    }
}
