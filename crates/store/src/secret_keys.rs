//! The secret key of the instance: which one is in use, and its rotation.

use crate::StoreResult;
use crate::records::{CellKey, Reencrypt};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::access::{AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::keyring::SecretKeyId;
use tributary_domain::keyring::alert::{AlertSecretRotation, StoredAlertSecrets};
use tributary_domain::keyring::rotation::{KeyHolder, RotationStart, StoredCheck, StoredKeys};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};

/// Rows whose values are encrypted again in one transaction: few enough that a change to one of them
/// waits for milliseconds only.
pub const REENCRYPTED_AT_ONCE: u32 = 100;

/// How long a node that did not stop regularly is listed. It counts as running for a shorter time
/// (`NODE_LIFETIME`).
pub const KEY_HOLDER_KEPT: Duration = Duration::from_hours(24);

/// Which rows to encrypt again.
#[derive(Clone)]
pub struct ReencryptRequest {
    /// Position of the column in [`crate::records::SEALED_COLUMNS`].
    pub column: usize,
    /// Last row of the previous request.
    pub after: CellKey,
    /// Key in use.
    pub key: SecretKeyId,
    /// Encrypts a value.
    pub reencrypt: Arc<Reencrypt>,
}

/// What was done with some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReencryptedRows {
    /// Last row; `None` if there are no more.
    pub last: Option<CellKey>,
    /// Number of changed values.
    pub changed: u64,
    /// Rows with values that no known key decrypts.
    pub unreadable: Vec<CellKey>,
}

/// Whether a rotation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationEnd {
    /// It ended now.
    Finished,
    /// It had ended before.
    NotRotating,
    /// Rows that are not encrypted with the key in use are left.
    Remaining(u64),
}

/// The secret key.
#[async_trait]
pub trait SecretKeys: Send + Sync {
    /// Stores a check value unless one is stored.
    async fn adopt_key(&self, check: StoredCheck) -> StoreResult<()>;

    /// Returns what is stored about the keys.
    async fn stored_keys(&self) -> StoreResult<StoredKeys>;

    /// Begins a rotation. Returns false if the expected key is not in use, or if a rotation is
    /// unfinished. From then on, values that are encrypted with another key are not stored. All
    /// organizations get an entry in the audit log.
    async fn begin_key_rotation(
        &self,
        start: RotationStart,
        origin: AuditContext,
    ) -> StoreResult<bool>;

    /// Encrypts the next rows of a column again, in one transaction with the progress of the
    /// rotation. A value that changed meanwhile stays as it is.
    async fn reencrypt(&self, request: ReencryptRequest) -> StoreResult<ReencryptedRows>;

    /// Counts the rows with values that are not encrypted with a key.
    async fn count_outdated_rows(&self, key: SecretKeyId) -> StoreResult<u64>;

    /// Ends a rotation, unless more rows than `unreadable` are left. All organizations get an entry
    /// in the audit log. No value is stored meanwhile.
    async fn finish_key_rotation(
        &self,
        unreadable: u64,
        origin: AuditContext,
    ) -> StoreResult<RotationEnd>;

    /// Stores which keys a running node knows.
    async fn note_key_holder(&self, holder: KeyHolder) -> StoreResult<()>;

    /// Removes a node that stops.
    async fn forget_key_holder(&self, id: [u8; 16]) -> StoreResult<()>;

    /// Returns all nodes, including those that did not stop regularly.
    async fn key_holders(&self) -> StoreResult<Vec<KeyHolder>>;

    /// Returns the stored secrets that an app's alerts are signed with, and the app's organization.
    /// Refused if there is no such app.
    async fn alert_secrets(
        &self,
        app: AppId,
    ) -> StoreResult<(OrganizationId, Option<StoredAlertSecrets>)>;

    /// Replaces the secret that an app's alerts are signed with (`AlertSecretRotation::replace`).
    async fn rotate_alert_secret(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        rotation: AlertSecretRotation,
        origin: AuditContext,
    ) -> StoreResult<StoredAlertSecrets>;

    /// Stores the secret that an app's alerts are signed with, unless one is stored. Returns the
    /// stored one.
    async fn keep_alert_secret(
        &self,
        app: AppId,
        sealed: SealedSecret,
    ) -> StoreResult<SealedSecret>;

    /// Returns apps without a stored alert secret, by id.
    async fn apps_without_alert_secret(
        &self,
        after: AppId,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, AppId)>>;
}
