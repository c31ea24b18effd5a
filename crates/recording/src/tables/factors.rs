//! Second factors.

use super::EngineTransaction;
use tributary_domain::access::factor::Factor;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{FactorId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

/// Second factors and recovery codes.
pub trait FactorTable: EngineTransaction {
    /// Locks the factors of a user. Returns the user's organization, whether it requires a factor, and
    /// the hash of the user's password.
    async fn lock_factors(
        &self,
        user: UserId,
    ) -> Result<Option<(OrganizationId, bool, String)>, Self::Failure>;

    /// Returns a user's factors, oldest first.
    async fn factors(&self, user: UserId) -> Result<Vec<Factor>, Self::Failure>;

    /// Stores a factor. Returns false if it is a passkey that is registered already.
    async fn insert_factor(&self, factor: &Factor) -> Result<bool, Self::Failure>;

    /// Writes the last use of a factor, and what proofs it no longer accepts.
    async fn write_factor_use(&self, factor: &Factor) -> Result<(), Self::Failure>;

    /// Removes a factor.
    async fn delete_factor(&self, factor: FactorId) -> Result<(), Self::Failure>;

    /// Replaces a user's recovery codes.
    async fn write_recovery_codes(
        &self,
        user: UserId,
        codes: &[Digest],
    ) -> Result<(), Self::Failure>;

    /// Marks a recovery code as used. Returns false if it is unknown or was used.
    async fn spend_recovery_code(
        &self,
        user: UserId,
        code: Digest,
        at: Timestamp,
    ) -> Result<bool, Self::Failure>;

    /// Writes whether an organization requires a second factor.
    async fn write_factor_requirement(
        &self,
        organization: OrganizationId,
        is_required: bool,
    ) -> Result<(), Self::Failure>;
}
