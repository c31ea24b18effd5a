//! The rows about the secret key, and the encrypted values of all tables.

use super::EngineTransaction;
use tributary_domain::keyring::SecretKeyId;
use tributary_domain::keyring::alert::StoredAlertSecrets;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::records::{CellKey, SealedCell, SealedColumn};

/// Rows of `instance` about the secret key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRecord {
    /// Check value of the key in use.
    Check,
    /// The unfinished rotation.
    Rotation,
    /// Derived keys that outlive their secret key.
    Kept,
}

impl KeyRecord {
    /// Returns the name of the row.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "secret_check",
            Self::Rotation => "secret_rotation",
            Self::Kept => "kept_keys",
        }
    }
}

/// How a transaction locks the check value of the key in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckLock {
    /// It stores encrypted values. Others may do so, too.
    Storing,
    /// It replaces the key or ends a rotation. Nothing else stores encrypted values.
    Replacing,
}

/// The secret key and encrypted values.
pub trait SecretKeyTable: EngineTransaction {
    /// Locks and returns the check value of the key in use.
    async fn lock_key_check(&self, lock: CheckLock) -> Result<Option<Vec<u8>>, Self::Failure>;

    /// Returns a row about the key.
    async fn key_record(&self, record: KeyRecord) -> Result<Option<Vec<u8>>, Self::Failure>;

    /// Writes a row about the key; `None` removes it.
    async fn write_key_record(
        &self,
        record: KeyRecord,
        value: Option<&[u8]>,
    ) -> Result<(), Self::Failure>;

    /// Returns rows after `after` with values that are not encrypted with a key.
    async fn outdated_cells(
        &self,
        column: &'static SealedColumn,
        key: SecretKeyId,
        after: &CellKey,
        limit: u32,
    ) -> Result<Vec<SealedCell>, Self::Failure>;

    /// Counts the rows with values that are not encrypted with a key.
    async fn count_outdated(
        &self,
        column: &'static SealedColumn,
        key: SecretKeyId,
    ) -> Result<u64, Self::Failure>;

    /// Replaces the value of a row. Returns false if it has changed since it was read.
    async fn replace_cell(
        &self,
        column: &'static SealedColumn,
        cell: &SealedCell,
        value: &[u8],
    ) -> Result<bool, Self::Failure>;

    /// Returns all organizations.
    async fn all_organizations(&self) -> Result<Vec<OrganizationId>, Self::Failure>;

    /// Stores the secret that an app's alerts are signed with, unless one is stored.
    async fn insert_alert_secret(
        &self,
        app: AppId,
        sealed: &SealedSecret,
    ) -> Result<(), Self::Failure>;

    /// Returns the stored secrets that an app's alerts are signed with.
    async fn stored_alert_secrets(
        &self,
        app: AppId,
    ) -> Result<Option<StoredAlertSecrets>, Self::Failure>;

    /// Writes the secrets that an app's alerts are signed with.
    async fn write_alert_secrets(
        &self,
        app: AppId,
        secrets: &StoredAlertSecrets,
    ) -> Result<(), Self::Failure>;
}
