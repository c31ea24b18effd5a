//! What the database said, fit for a log.

use std::error::Error as _;
use tokio_postgres::error::SqlState;

/// What the database said, without the values that it said it of: its details quote whole rows, and a row
/// holds addresses of people and hashes of passwords.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct DatabaseError {
    text: String,
    /// Whether the database finds fault with a value that it was given.
    is_value_error: bool,
    /// Whether others were first, as often as it was tried.
    is_conflict: bool,
}

impl DatabaseError {
    /// Something that is known without asking the database.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_value_error: false,
            is_conflict: false,
        }
    }

    /// Others were first, as often as it was tried.
    pub(crate) fn conflict() -> Self {
        Self {
            is_conflict: true,
            ..Self::new("others were first every time")
        }
    }

    /// Something in front of it.
    pub(crate) fn with_context(self, context: &str) -> Self {
        Self {
            text: format!("{context}: {}", self.text),
            ..self
        }
    }

    /// Whether the database finds fault with a value that it was given: another value would have been taken.
    pub(crate) const fn is_value_error(&self) -> bool {
        self.is_value_error
    }

    /// Whether others were first, as often as it was tried. Whoever asks for less meets fewer of them.
    pub(crate) const fn is_conflict(&self) -> bool {
        self.is_conflict
    }
}

impl From<&tokio_postgres::Error> for DatabaseError {
    fn from(error: &tokio_postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else {
            // The library's own words, and what the operating system or TLS said.
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            return Self::new(text);
        };
        let (code, message) = (said.code().code(), said.message());
        let constraint = said
            .constraint()
            .map(|name| format!(", constraint {name}"))
            .unwrap_or_default();
        let advice = match *said.code() {
            // Another session's statements are met, or one's own are gone.
            SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => {
                "; behind PgBouncer, turn statement_cache off"
            }
            _ => "",
        };
        // 22: not a value of its type; 23: a constraint; 54: too long for an index.
        let of_a_value = ["22", "23", "54"]
            .iter()
            .any(|class| code.starts_with(class));
        Self {
            text: format!("{message} (SQLSTATE {code}{constraint}){advice}"),
            is_value_error: of_a_value,
            is_conflict: false,
        }
    }
}
