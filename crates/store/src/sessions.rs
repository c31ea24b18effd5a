//! Dashboard sessions.

use crate::{Organization, StoreResult};
use async_trait::async_trait;
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::factor::FactorState;
use tributary_domain::access::person::User;
use tributary_domain::access::session::Session;
use tributary_domain::access::session_client::SessionClient;
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::UserId;
use tributary_domain::vocabulary::time::Timestamp;

/// A new session.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Session.
    pub session: Session,
    /// Digest of the session token.
    pub digest: Digest,
    /// What was checked before the session starts.
    pub credential: SignInCredential,
}

/// A session with its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSession {
    /// The session.
    pub session: Session,
    /// The user as stored now, so that a changed role applies to the next request.
    pub user: User,
    /// Organization of the user.
    pub organization: Organization,
    /// Whether the user has a second factor, and needs one.
    pub factors: FactorState,
}

/// Sessions. Removing an account ends its sessions.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Starts a session, and removes all expired sessions. Refused if the credential changed after it
    /// was checked.
    async fn begin_session(&self, session: NewSession, origin: AuditContext) -> StoreResult<()>;

    /// Returns the session with this digest, even if it has expired.
    async fn session(&self, digest: Digest) -> StoreResult<Option<UserSession>>;

    /// Records the last use of a session.
    async fn note_session_use(
        &self,
        digest: Digest,
        at: Timestamp,
        client: SessionClient,
    ) -> StoreResult<()>;

    /// Records that the user of a session proved who they are.
    async fn note_session_proof(&self, digest: Digest, at: Timestamp) -> StoreResult<()>;

    /// Returns the newest [`SESSIONS_LISTED_MAX`](tributary_domain::access::session::SESSIONS_LISTED_MAX) sessions of a user, with the digests of their
    /// tokens, including expired ones.
    async fn sessions_of(&self, user: UserId) -> StoreResult<Vec<(Digest, Session)>>;

    /// Ends sessions of a user; sessions of others stay. Returns how many it ended.
    async fn end_sessions_of(
        &self,
        user: UserId,
        digests: Vec<Digest>,
        origin: AuditContext,
    ) -> StoreResult<u64>;

    /// Ends all sessions of a user but one. Returns how many it ended.
    async fn end_other_sessions(
        &self,
        user: UserId,
        kept: Digest,
        origin: AuditContext,
    ) -> StoreResult<u64>;

    /// Ends a session by a sign-out. Idempotent.
    async fn end_session(&self, digest: Digest, origin: AuditContext) -> StoreResult<()>;

    /// Changes a user's password. Ends all of the user's sessions and starts the given new session.
    /// Refused if the credential of the new session is not the current password.
    async fn change_password(
        &self,
        session: NewSession,
        password_hash: String,
        origin: AuditContext,
    ) -> StoreResult<()>;
}
