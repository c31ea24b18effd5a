//! Rows of second factors.

use super::columns::row;
use crate::StoreError;
use tributary_domain::access::factor::{Factor, FactorKind, FactorVerifier};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::{FactorId, UserId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `factors`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct FactorRow {
        pub factor_id: [u8; 16],
        pub user_id: [u8; 16],
        pub kind: String,
        pub name: String,
        pub created_at: i64,
        pub last_used_at: Option<i64>,
        pub sealed_secret: Option<Vec<u8>>,
        pub last_step: Option<i64>,
    }
}

impl FactorRow {
    /// Converts a factor to columns.
    pub fn write(factor: &Factor) -> Self {
        let FactorVerifier::Totp { sealed, last_step } = &factor.verifier;
        Self {
            factor_id: *factor.id.as_bytes(),
            user_id: *factor.user.as_bytes(),
            kind: factor.kind().as_str().to_owned(),
            name: factor.name.as_str().to_owned(),
            created_at: factor.created_at.as_millis(),
            last_used_at: factor.last_used_at.map(Timestamp::as_millis),
            sealed_secret: Some(sealed.as_bytes().to_vec()),
            last_step: *last_step,
        }
    }

    /// Reads the factor.
    pub fn read(self) -> Result<Factor, StoreError> {
        let id = FactorId::from_bytes(self.factor_id);
        let corrupt = |column| StoreError::corrupt("factors", column, id);
        let verifier = match FactorKind::parse(&self.kind) {
            Some(FactorKind::Totp) => FactorVerifier::Totp {
                sealed: self
                    .sealed_secret
                    .map(SealedSecret::from_bytes)
                    .ok_or_else(|| corrupt("sealed_secret"))?,
                last_step: self.last_step,
            },
            None => return Err(corrupt("kind")),
        };
        Ok(Factor {
            id,
            user: UserId::from_bytes(self.user_id),
            name: Name::parse(&self.name).map_err(|_| corrupt("name"))?,
            created_at: Timestamp::from_millis(self.created_at),
            last_used_at: self.last_used_at.map(Timestamp::from_millis),
            verifier,
        })
    }
}
