//! Second factors and recovery codes of users.

use crate::StoreResult;
use async_trait::async_trait;
use std::collections::BTreeSet;
use tributary_domain::access::factor::Factor;
use tributary_domain::access::factor::passkey::{CredentialId, PasskeyUse};
use tributary_domain::access::person::User;
use tributary_domain::access::{Authorized, MembersWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{FactorId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

/// Second factors. Removing an account removes its factors and recovery codes.
#[async_trait]
pub trait Factors: Send + Sync {
    /// Returns a user and the hash of their password, for the second step of a sign-in.
    async fn account(&self, user: UserId) -> StoreResult<Option<(User, String)>>;

    /// Returns a user's factors, oldest first.
    async fn factors_of(&self, user: UserId) -> StoreResult<Vec<Factor>>;

    /// Returns the number of recovery codes that a user has not used.
    async fn unused_recovery_codes(&self, user: UserId) -> StoreResult<u64>;

    /// Adds a factor (`domain::access::factor::admit_factor`). Refused if another user, or the same one,
    /// has registered the passkey. With the first one, the user gets these recovery codes, and all of
    /// the user's sessions but this one end. Returns whether the codes are stored.
    async fn add_factor(
        &self,
        factor: Factor,
        session: Digest,
        recovery_codes: Vec<Digest>,
        origin: AuditContext,
    ) -> StoreResult<bool>;

    /// Records that the code of a step was accepted. Returns false if it, or a newer one, was accepted
    /// before: each code is accepted once, on all nodes together.
    async fn use_totp(
        &self,
        user: UserId,
        factor: FactorId,
        step: i64,
        at: Timestamp,
    ) -> StoreResult<bool>;

    /// Returns the passkey with an id, and its user.
    async fn passkey(&self, credential: &CredentialId) -> StoreResult<Option<(User, Factor)>>;

    /// Records a use of a passkey (`domain::access::factor::passkey::Passkey::after_use`). Returns false
    /// if it is not new: each challenge is accepted once, on all nodes together.
    async fn use_passkey(
        &self,
        user: UserId,
        factor: FactorId,
        used: PasskeyUse,
        at: Timestamp,
    ) -> StoreResult<bool>;

    /// Uses a recovery code. Returns false if it is unknown or was used.
    async fn use_recovery_code(
        &self,
        user: UserId,
        code: Digest,
        origin: AuditContext,
    ) -> StoreResult<bool>;

    /// Replaces a user's recovery codes. Refused without a factor.
    async fn replace_recovery_codes(
        &self,
        user: UserId,
        codes: Vec<Digest>,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Removes a user's factor (`domain::access::factor::remove_factor`). The recovery codes go with
    /// the last one.
    async fn remove_factor(
        &self,
        user: UserId,
        factor: FactorId,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Removes all factors and recovery codes of a user, for the operator. Returns the number of
    /// factors.
    async fn remove_factors(&self, user: UserId, origin: AuditContext) -> StoreResult<u64>;

    /// Returns the members who have a factor.
    async fn members_with_factors(
        &self,
        caller: &Authorized<MembersWrite>,
    ) -> StoreResult<BTreeSet<UserId>>;

    /// Requires a second factor of all members, or no longer. Refused if the acting member `owner` has
    /// none.
    async fn require_second_factor(
        &self,
        caller: &Authorized<MembersWrite>,
        owner: UserId,
        is_required: bool,
        origin: AuditContext,
    ) -> StoreResult<()>;
}
