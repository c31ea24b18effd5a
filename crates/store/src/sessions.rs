//! People who are signed in.

use crate::{Organization, StoreResult};
use async_trait::async_trait;
use tributary_domain::access::person::User;
use tributary_domain::access::session::Session;
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::time::Timestamp;

/// A session to be stored.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The record.
    pub session: Session,
    /// What it will be found by.
    pub digest: Digest,
}

/// Whose a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSession {
    /// The session.
    pub session: Session,
    /// The person, as of now: a role that was changed holds for the very next request.
    pub user: User,
    /// The person's organization.
    pub organization: Organization,
}

/// Sessions. They end with their person's account.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Begins a session, and forgets those of anybody that are over.
    async fn begin_session(&self, session: NewSession, origin: AuditContext) -> StoreResult<()>;

    /// The session with this digest, valid or not.
    async fn session(&self, digest: Digest) -> StoreResult<Option<UserSession>>;

    /// Writes a session's last use down.
    async fn note_session_use(&self, digest: Digest, at: Timestamp) -> StoreResult<()>;

    /// Ends a session; one that is over already stays so.
    async fn end_session(&self, digest: Digest) -> StoreResult<()>;

    /// Gives a person another password. Every session of theirs ends, and this one begins.
    async fn change_password(
        &self,
        session: NewSession,
        password_hash: String,
        origin: AuditContext,
    ) -> StoreResult<()>;
}
