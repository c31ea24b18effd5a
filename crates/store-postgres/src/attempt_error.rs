//! Why one attempt of a transaction failed, and whether another attempt may succeed.

use crate::Failure;
use crate::database_error::{DatabaseError, is_connection_lost, is_serialization_failure};
use tributary_store::StoreError;

/// Why an attempt returned no value.
pub(crate) enum AttemptError {
    /// The work returned an error.
    Final(StoreError),
    /// A database error that a retry would not fix or could make worse.
    Unavailable(DatabaseError),
    /// A database error after which certainly nothing was stored.
    Retryable(DatabaseError),
    /// Another transaction was first. Nothing was stored.
    Conflict,
}

/// Classifies an error before the commit was sent.
pub(crate) fn classify_before_commit(failure: Failure) -> AttemptError {
    match failure {
        Failure::Store(error) => AttemptError::Final(error),
        Failure::Conflict => AttemptError::Conflict,
        Failure::Postgres(error)
            if is_serialization_failure(&error) || is_connection_lost(&error) =>
        {
            AttemptError::Retryable(DatabaseError::from(&error))
        }
        Failure::Postgres(error) => AttemptError::Unavailable(DatabaseError::from(&error)),
    }
}

/// Classifies an error of the commit.
pub(crate) fn classify_commit_error(error: &tokio_postgres::Error) -> AttemptError {
    let loggable = DatabaseError::from(error);
    if is_serialization_failure(error) {
        return AttemptError::Retryable(loggable);
    }
    let is_constraint_violation = error
        .as_db_error()
        .is_some_and(|db_error| db_error.code().code().starts_with("23"));
    AttemptError::Unavailable(if is_constraint_violation {
        loggable
    } else {
        loggable.with_context("commit outcome unknown")
    })
}
