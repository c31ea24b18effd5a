//! Starts of sessions.

use super::EngineTransaction;
use tributary_domain::access::person::User;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::UserId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::NewSession;

/// Sessions, and what their start depends on.
pub trait SessionTable: EngineTransaction {
    /// Locks an account, so that neither its password nor its organization's single sign-on changes.
    /// Returns it with the hash of its password.
    async fn lock_account(&self, user: UserId) -> Result<Option<(User, String)>, Self::Failure>;

    /// Removes the sessions of all users that expired by `now`.
    async fn remove_expired_sessions(&self, now: Timestamp) -> Result<(), Self::Failure>;

    /// Stores a session.
    async fn insert_session(&self, new: &NewSession) -> Result<(), Self::Failure>;

    /// Ends all sessions of a locked user but one. Returns how many.
    async fn end_other_sessions(&self, user: UserId, kept: Digest) -> Result<u64, Self::Failure>;

    /// Records the last sign-in of a user.
    async fn note_sign_in(&self, user: UserId, at: Timestamp) -> Result<(), Self::Failure>;

    /// Writes the password of a locked account, and ends its sessions.
    async fn replace_password(
        &self,
        user: UserId,
        password_hash: &str,
    ) -> Result<(), Self::Failure>;
}
