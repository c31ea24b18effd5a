//! The secret key and its rotation.

use crate::tables::{CheckLock, KeyRecord, Tables};
use tributary_domain::audit::{Action, AuditContext, FieldChange};
use tributary_domain::keyring::SecretKeyId;
use tributary_domain::keyring::alert::{AlertSecretRotation, StoredAlertSecrets};
use tributary_domain::keyring::rotation::{
    RotationStart, SecretKeyRotation, StoredCheck, StoredKeys,
};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::records::{SEALED_COLUMNS, audit_row};
use tributary_store::{
    KeyReplaced, REENCRYPTED_AT_ONCE, ReencryptRequest, ReencryptedRows, RotationEnd, StoreError,
};

/// Name of the key in the audit log.
const TARGET: &str = "secret_key";
/// Name of an app's alert secret in the audit log.
const ALERT_SECRET_FIELD: &str = "alertWebhookSecret";

fn corrupt(record: KeyRecord) -> StoreError {
    StoreError::corrupt("instance", "value", record.name())
}

fn read_check(bytes: &[u8]) -> Result<StoredCheck, StoreError> {
    StoredCheck::from_bytes(bytes).ok_or_else(|| corrupt(KeyRecord::Check))
}

/// Returns what is stored about the keys.
pub async fn stored_keys<T: Tables>(tables: &T) -> Result<StoredKeys, T::Failure> {
    let check = tables.key_record(KeyRecord::Check).await?;
    let kept = tables.key_record(KeyRecord::Kept).await?;
    Ok(StoredKeys {
        check: check.as_deref().map(read_check).transpose()?,
        rotation: read_rotation(tables).await?,
        kept: kept.map(SealedSecret::from_bytes),
    })
}

async fn read_rotation<T: Tables>(tables: &T) -> Result<Option<SecretKeyRotation>, T::Failure> {
    let bytes = tables.key_record(KeyRecord::Rotation).await?;
    let read = |bytes: Vec<u8>| {
        SecretKeyRotation::from_bytes(&bytes).ok_or_else(|| corrupt(KeyRecord::Rotation))
    };
    Ok(bytes.map(read).transpose()?)
}

/// Locks the check value and returns it.
async fn lock_check<T: Tables>(
    tables: &T,
    lock: CheckLock,
) -> Result<Option<StoredCheck>, T::Failure> {
    let bytes = tables.lock_key_check(lock).await?;
    Ok(bytes.as_deref().map(read_check).transpose()?)
}

/// Fails if one of these new values is not encrypted with the key in use. The node follows the key
/// within seconds, so the caller may repeat the request. Call this before reading stored values that
/// are written again: the end of a rotation waits for them.
pub(super) async fn admit_sealed<'a, T: Tables>(
    tables: &T,
    values: impl IntoIterator<Item = &'a SealedSecret>,
) -> Result<(), T::Failure> {
    let check = lock_check(tables, CheckLock::Storing).await?;
    let is_admitted = |value| check.is_none_or(|check| check.admits(value));
    if values.into_iter().all(is_admitted) {
        return Ok(());
    }
    Err(StoreError::unavailable("admit_sealed", KeyReplaced).into())
}

/// Begins a rotation, with an audit entry for each organization. Returns false if another key is in use, or if a rotation is unfinished.
pub async fn begin_key_rotation<T: Tables>(
    tables: &T,
    start: &RotationStart,
    origin: &AuditContext,
) -> Result<bool, T::Failure> {
    let check = lock_check(tables, CheckLock::Replacing).await?;
    if check != Some(start.expected) || read_rotation(tables).await?.is_some() {
        return Ok(false);
    }
    let (check, rotation) = (start.check.to_bytes(), start.rotation.to_bytes());
    for (record, value) in [
        (KeyRecord::Check, check.as_slice()),
        (KeyRecord::Rotation, &rotation),
        (KeyRecord::Kept, start.kept.as_bytes()),
    ] {
        tables.write_key_record(record, Some(value)).await?;
    }
    audit_all(tables, Action::SecretKeyRotationBegun, origin).await?;
    Ok(true)
}

/// Writes an entry about the secret key to the log of each organization.
async fn audit_all<T: Tables>(
    tables: &T,
    action: Action,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    for organization in tables.all_organizations().await? {
        let row = audit_row(organization, origin, action, None, TARGET, &[]);
        tables.insert_audit(&row).await?;
    }
    Ok(())
}

/// Encrypts the next rows of a column again.
pub async fn reencrypt<T: Tables>(
    tables: &T,
    request: &ReencryptRequest,
) -> Result<ReencryptedRows, T::Failure> {
    let mut done = ReencryptedRows {
        last: None,
        changed: 0,
        unreadable: Vec::new(),
    };
    let Some(column) = SEALED_COLUMNS.get(request.column) else {
        return Ok(done);
    };
    let limit = REENCRYPTED_AT_ONCE;
    let cells = tables
        .outdated_cells(column, request.key, &request.after, limit)
        .await?;
    for cell in cells {
        let new = column.reencrypt(&cell, &*request.reencrypt)?;
        if new.unreadable > 0 {
            done.unreadable.push(cell.key.clone());
        }
        if let Some(value) = &new.value
            && tables.replace_cell(column, &cell, value).await?
        {
            done.changed += new.changed;
        }
        done.last = Some(cell.key);
    }
    if done.changed > 0
        && let Some(mut rotation) = read_rotation(tables).await?
    {
        rotation.reencrypted += done.changed;
        let bytes = rotation.to_bytes();
        tables
            .write_key_record(KeyRecord::Rotation, Some(&bytes))
            .await?;
    }
    Ok(done)
}

/// Ends a rotation unless more than `unreadable` rows are left.
pub async fn finish_key_rotation<T: Tables>(
    tables: &T,
    unreadable: u64,
    origin: &AuditContext,
) -> Result<RotationEnd, T::Failure> {
    let check = lock_check(tables, CheckLock::Replacing).await?;
    let (Some(check), Some(_)) = (check, read_rotation(tables).await?) else {
        return Ok(RotationEnd::NotRotating);
    };
    let remaining = count_outdated_rows(tables, check.key()).await?;
    if remaining > unreadable {
        return Ok(RotationEnd::Remaining(remaining));
    }
    tables.write_key_record(KeyRecord::Rotation, None).await?;
    audit_all(tables, Action::SecretKeyRotated, origin).await?;
    Ok(RotationEnd::Finished)
}

/// Counts the rows with values that are not encrypted with a key.
pub async fn count_outdated_rows<T: Tables>(
    tables: &T,
    key: SecretKeyId,
) -> Result<u64, T::Failure> {
    let mut count = 0;
    for column in &SEALED_COLUMNS {
        count += tables.count_outdated(column, key).await?;
    }
    Ok(count)
}

/// Stores an app's alert secret unless one is stored. Returns the stored one.
pub async fn keep_alert_secret<T: Tables>(
    tables: &T,
    app: AppId,
    sealed: &SealedSecret,
) -> Result<SealedSecret, T::Failure> {
    admit_sealed(tables, [sealed]).await?;
    tables.insert_alert_secret(app, sealed).await?;
    let stored = tables.stored_alert_secrets(app).await?;
    Ok(stored.map_or_else(|| sealed.clone(), |stored| stored.current))
}

/// Replaces the secret that an app's alerts are signed with. Returns what is stored.
pub async fn rotate_alert_secret<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    rotation: &AlertSecretRotation,
    origin: &AuditContext,
) -> Result<StoredAlertSecrets, T::Failure> {
    admit_sealed(tables, [&rotation.derived, &rotation.successor]).await?;
    tables.require_app(organization, app).await?;
    let stored = tables.stored_alert_secrets(app).await?;
    let secrets = rotation.replace(stored, origin.at)?;
    tables.write_alert_secrets(app, &secrets).await?;
    let changes = [FieldChange {
        field: ALERT_SECRET_FIELD.to_owned(),
        before: Some("set".to_owned()),
        after: Some("new value".to_owned()),
    }];
    let action = Action::AppUpdated;
    let row = audit_row(organization, origin, action, Some(app), app, &changes);
    tables.insert_audit(&row).await?;
    Ok(secrets)
}
