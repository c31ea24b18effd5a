//! Rows of second factors.

use super::columns::row;
use crate::StoreError;
use tributary_domain::access::factor::passkey::{CredentialId, Passkey, PasskeyKey};
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
        pub credential_id: Option<Vec<u8>>,
        pub public_key: Option<Vec<u8>>,
        pub counter: Option<i64>,
        pub is_syncable: Option<bool>,
        pub is_synced: Option<bool>,
        pub last_challenge_at: Option<i64>,
    }
}

impl FactorRow {
    /// Converts a factor to columns.
    pub fn write(factor: &Factor) -> Self {
        let mut row = Self {
            factor_id: *factor.id.as_bytes(),
            user_id: *factor.user.as_bytes(),
            kind: factor.kind().as_str().to_owned(),
            name: factor.name.as_str().to_owned(),
            created_at: factor.created_at.as_millis(),
            last_used_at: factor.last_used_at.map(Timestamp::as_millis),
            sealed_secret: None,
            last_step: None,
            credential_id: None,
            public_key: None,
            counter: None,
            is_syncable: None,
            is_synced: None,
            last_challenge_at: None,
        };
        match &factor.verifier {
            FactorVerifier::Totp { sealed, last_step } => {
                row.sealed_secret = Some(sealed.as_bytes().to_vec());
                row.last_step = *last_step;
            }
            FactorVerifier::Passkey(passkey) => {
                row.credential_id = Some(passkey.credential.as_bytes().to_vec());
                row.public_key = Some(passkey.key.as_cose().to_vec());
                row.counter = Some(i64::from(passkey.counter));
                row.is_syncable = Some(passkey.can_sync);
                row.is_synced = Some(passkey.is_synced);
                row.last_challenge_at = passkey.last_challenge_at.map(Timestamp::as_millis);
            }
        }
        row
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
            Some(FactorKind::Passkey) => FactorVerifier::Passkey(Passkey {
                credential: self
                    .credential_id
                    .and_then(CredentialId::from_bytes)
                    .ok_or_else(|| corrupt("credential_id"))?,
                key: self
                    .public_key
                    .and_then(|key| PasskeyKey::parse(&key))
                    .ok_or_else(|| corrupt("public_key"))?,
                counter: self
                    .counter
                    .and_then(|counter| u32::try_from(counter).ok())
                    .ok_or_else(|| corrupt("counter"))?,
                can_sync: self.is_syncable.ok_or_else(|| corrupt("is_syncable"))?,
                is_synced: self.is_synced.ok_or_else(|| corrupt("is_synced"))?,
                last_challenge_at: self.last_challenge_at.map(Timestamp::from_millis),
            }),
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
