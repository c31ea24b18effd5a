//! Rows of claims of App Store ids.

use super::columns::row;
use crate::StoreError;
use tributary_domain::ownership::store_id::{StoreIdClaim, StoreIdProof};
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `app_store_claims`, without the App Store id.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct StoreIdClaimRow {
        pub app_id: [u8; 16],
        pub organization_id: [u8; 16],
        pub claimed_at: i64,
        pub proof: Option<String>,
        pub has_postback: bool,
    }
}

impl StoreIdClaimRow {
    /// Reads the claim.
    pub fn read(self) -> Result<StoreIdClaim, StoreError> {
        let app = AppId::from_bytes(self.app_id);
        let corrupt = || StoreError::corrupt("app_store_claims", "proof", app);
        let proof = |text: String| StoreIdProof::parse(&text).ok_or_else(corrupt);
        Ok(StoreIdClaim {
            app,
            organization: OrganizationId::from_bytes(self.organization_id),
            claimed_at: Timestamp::from_millis(self.claimed_at),
            proof: self.proof.map(proof).transpose()?,
            has_postback: self.has_postback,
        })
    }
}
