//! Claims of App Store ids.

use super::EngineTransaction;
use tributary_domain::ownership::store_id::{StoreIdClaim, StoreIdProof};
use tributary_domain::vocabulary::id::AppId;

/// Claims of App Store ids, and which app receives the postbacks of an id.
pub trait StoreIdTable: EngineTransaction {
    /// Locks an App Store id against other transactions that change its claims.
    async fn lock_store_id(&self, app_store_id: &str) -> Result<(), Self::Failure>;

    /// Returns the claims of an App Store id.
    async fn store_id_claims(&self, app_store_id: &str)
    -> Result<Vec<StoreIdClaim>, Self::Failure>;

    /// Stores a new claim of an App Store id.
    async fn insert_store_id_claim(
        &self,
        app_store_id: &str,
        claim: &StoreIdClaim,
    ) -> Result<(), Self::Failure>;

    /// Removes an app's claim of an App Store id.
    async fn remove_store_id_claim(
        &self,
        app_store_id: &str,
        app: AppId,
    ) -> Result<(), Self::Failure>;

    /// Writes the evidence for a claim.
    async fn write_store_id_proof(
        &self,
        app_store_id: &str,
        app: AppId,
        proof: Option<StoreIdProof>,
    ) -> Result<(), Self::Failure>;

    /// Writes which app receives the postbacks of an App Store id.
    async fn write_receiver(
        &self,
        app_store_id: &str,
        app: Option<AppId>,
    ) -> Result<(), Self::Failure>;
}
