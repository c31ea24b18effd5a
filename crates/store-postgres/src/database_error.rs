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
            // PgBouncer passes only a few settings on.
            SqlState::PROTOCOL_VIOLATION if message.contains("startup parameter") => {
                "; PgBouncer does not accept this setting in the URL; set it for the role or the \
                 database, such as `alter role … set search_path = …`"
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

/// Returns whether the database aborted the transaction in favour of another one.
pub(crate) fn is_serialization_failure(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
    })
}

/// Returns whether the server does not accept writes. A new connection may reach the primary.
pub(crate) fn is_read_only_server(error: &tokio_postgres::Error) -> bool {
    // 25001 is the answer to the check at the begin of a transaction (`begin.rs`).
    [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::ACTIVE_SQL_TRANSACTION,
    ]
    .iter()
    .any(|code| error.code() == Some(code))
}

/// Returns whether the connection is lost, and the transaction with it.
pub(crate) fn is_connection_lost(error: &tokio_postgres::Error) -> bool {
    if error.as_db_error().is_some() {
        return is_session_ended(error);
    }
    error.is_closed()
        || std::error::Error::source(error)
            .is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Returns whether the server ended the session.
fn is_session_ended(error: &tokio_postgres::Error) -> bool {
    // 57P: server shutdown or session termination; 08: connection error; 25P03: idle timeout.
    error.as_db_error().is_some_and(|db_error| {
        let code = db_error.code().code();
        code.starts_with("57P") || code.starts_with("08") || code == "25P03"
    })
}

/// Returns whether the error is a violation of this unique constraint. On a shard of a distributed
/// database, the name of the constraint ends with the number of the shard.
pub(crate) fn is_unique_violation(error: &tokio_postgres::Error, constraint: &str) -> bool {
    error.as_db_error().is_some_and(|db_error| {
        *db_error.code() == SqlState::UNIQUE_VIOLATION
            && db_error
                .constraint()
                .is_some_and(|name| is_constraint(name, constraint))
    })
}

/// Returns whether a constraint has this name, with or without the number of a shard.
fn is_constraint(name: &str, constraint: &str) -> bool {
    let Some(rest) = name.strip_prefix(constraint) else {
        return false;
    };
    let is_number =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_empty() || rest.strip_prefix('_').is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::is_constraint;

    #[test]
    fn the_number_of_a_shard_does_not_change_the_constraint() {
        for name in ["users_email_unique", "users_email_unique_102008"] {
            assert!(is_constraint(name, "users_email_unique"), "{name}");
        }
        for name in [
            "users_email",
            "users_email_unique_",
            "users_email_unique_v2",
            "users_email_unique2",
            "users_email_unique_10_8",
            "app_users_email_unique",
        ] {
            assert!(!is_constraint(name, "users_email_unique"), "{name}");
        }
    }
}
