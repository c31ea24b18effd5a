//! Second factors and recovery codes.

use super::secret_keys::admit_sealed;
use crate::tables::Tables;
use tributary_domain::access::factor::passkey::PasskeyUse;
use tributary_domain::access::factor::totp::is_new_step;
use tributary_domain::access::factor::{self, Factor, FactorVerifier, admit_factor, may_require};
use tributary_domain::access::single_sign_on::has_password;
use tributary_domain::audit::{Action, AuditContext, Changes};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{FactorId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::audit_row;

/// A user's factors while they are changed.
struct LockedFactors {
    organization: OrganizationId,
    is_required: bool,
    has_password: bool,
    factors: Vec<Factor>,
}

async fn lock<T: Tables>(tables: &T, user: UserId) -> Result<LockedFactors, T::Failure> {
    let found = tables.lock_factors(user).await?;
    let (organization, is_required, password_hash) = found.ok_or(Refusal::MemberNotFound)?;
    Ok(LockedFactors {
        organization,
        is_required,
        has_password: has_password(&password_hash),
        factors: tables.factors(user).await?,
    })
}

/// Adds a factor, with recovery codes if it is the first one. Returns whether the codes are stored.
/// The first one also ends the user's other sessions, which began without a second step.
pub async fn add_factor<T: Tables>(
    tables: &T,
    (new, session): (&Factor, Digest),
    recovery_codes: &[Digest],
    origin: &AuditContext,
) -> Result<bool, T::Failure> {
    let is_first = store_factor(tables, new, recovery_codes, origin).await?;
    if !is_first || tables.end_other_sessions(new.user, session).await? == 0 {
        return Ok(is_first);
    }
    let organization = lock(tables, new.user).await?.organization;
    let (origin, action) = (origin.following(), Action::UserSessionsEnded);
    let row = audit_row(organization, &origin, action, None, new.user, &[]);
    tables.insert_audit(&row).await?;
    Ok(is_first)
}

/// Stores a factor, with recovery codes if it is the first one. Returns whether the codes are stored.
pub(super) async fn store_factor<T: Tables>(
    tables: &T,
    new: &Factor,
    recovery_codes: &[Digest],
    origin: &AuditContext,
) -> Result<bool, T::Failure> {
    admit_sealed(tables, new.sealed()).await?;
    let locked = lock(tables, new.user).await?;
    admit_factor(&locked.factors, new.kind())?;
    if !tables.insert_factor(new).await? {
        return Err(Refusal::PasskeyExists.into());
    }
    let is_first = locked.factors.is_empty();
    if is_first {
        tables
            .write_recovery_codes(new.user, recovery_codes)
            .await?;
    }
    let (organization, changes) = (locked.organization, new.creation_changes());
    let action = Action::FactorAdded;
    let row = audit_row(organization, origin, action, None, new.user, &changes);
    tables.insert_audit(&row).await?;
    Ok(is_first)
}

/// Records that the code of a step was accepted. Returns false if it is not new.
pub async fn use_totp<T: Tables>(
    tables: &T,
    (user, factor): (UserId, FactorId),
    step: i64,
    at: Timestamp,
) -> Result<bool, T::Failure> {
    let locked = lock(tables, user).await?;
    let found = locked.factors.into_iter().find(|one| one.id == factor);
    let Some(mut found) = found else {
        return Ok(false);
    };
    let FactorVerifier::Totp { last_step, .. } = &mut found.verifier else {
        return Ok(false);
    };
    if !is_new_step(step, *last_step) {
        return Ok(false);
    }
    *last_step = Some(step);
    found.last_used_at = Some(at);
    tables.write_factor_use(&found).await?;
    Ok(true)
}

/// Records a use of a passkey whose signature is right. Returns false if it is not new.
pub async fn use_passkey<T: Tables>(
    tables: &T,
    (user, factor): (UserId, FactorId),
    used: PasskeyUse,
    at: Timestamp,
) -> Result<bool, T::Failure> {
    let locked = lock(tables, user).await?;
    let found = locked.factors.into_iter().find(|one| one.id == factor);
    let after = found.and_then(|found| {
        let passkey = found.passkey()?.after_use(used, at)?;
        Some(Factor {
            last_used_at: Some(at),
            verifier: FactorVerifier::Passkey(passkey),
            ..found
        })
    });
    let Some(after) = after else {
        return Ok(false);
    };
    tables.write_factor_use(&after).await?;
    Ok(true)
}

/// Uses a recovery code. Returns false if it is unknown or was used.
pub async fn use_recovery_code<T: Tables>(
    tables: &T,
    user: UserId,
    code: Digest,
    origin: &AuditContext,
) -> Result<bool, T::Failure> {
    let locked = lock(tables, user).await?;
    let is_spent = tables.spend_recovery_code(user, code, origin.at).await?;
    if is_spent {
        let action = Action::RecoveryCodeUsed;
        let row = audit_row(locked.organization, origin, action, None, user, &[]);
        tables.insert_audit(&row).await?;
    }
    Ok(is_spent)
}

/// Replaces a user's recovery codes.
pub async fn replace_recovery_codes<T: Tables>(
    tables: &T,
    user: UserId,
    codes: &[Digest],
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let locked = lock(tables, user).await?;
    if locked.factors.is_empty() {
        return Err(Refusal::FactorNotFound.into());
    }
    tables.write_recovery_codes(user, codes).await?;
    let action = Action::RecoveryCodesReplaced;
    let row = audit_row(locked.organization, origin, action, None, user, &[]);
    tables.insert_audit(&row).await
}

/// Removes a factor, and the recovery codes with the last one.
pub async fn remove_factor<T: Tables>(
    tables: &T,
    user: UserId,
    factor: FactorId,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let locked = lock(tables, user).await?;
    let has_other_sign_in = locked.has_password || tables.is_linked(user).await?;
    let (factors, is_required) = (&locked.factors, locked.is_required);
    let removed = factor::remove_factor(factors, factor, is_required, has_other_sign_in)?;
    tables.delete_factor(factor).await?;
    if locked.factors.len() == 1 {
        tables.write_recovery_codes(user, &[]).await?;
    }
    let (organization, changes) = (locked.organization, removed.removal_changes());
    let action = Action::FactorRemoved;
    let row = audit_row(organization, origin, action, None, user, &changes);
    tables.insert_audit(&row).await
}

/// Removes all factors and recovery codes of a user, and ends the user's sessions: someone else may
/// have begun them with a lost device. Returns the number of factors.
pub async fn remove_factors<T: Tables>(
    tables: &T,
    user: UserId,
    origin: &AuditContext,
) -> Result<u64, T::Failure> {
    let locked = lock(tables, user).await?;
    let mut origin = origin.clone();
    for removed in &locked.factors {
        tables.delete_factor(removed.id).await?;
        let (organization, changes) = (locked.organization, removed.removal_changes());
        let action = Action::FactorRemoved;
        let row = audit_row(organization, &origin, action, None, user, &changes);
        tables.insert_audit(&row).await?;
        origin = origin.following();
    }
    tables.write_recovery_codes(user, &[]).await?;
    tables.remove_sessions(user).await?;
    Ok(locked.factors.len() as u64)
}

/// Requires a second factor of an organization's members, or no longer.
pub async fn require_second_factor<T: Tables>(
    tables: &T,
    (organization, owner): (OrganizationId, UserId),
    is_required: bool,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.lock_members(organization).await?;
    let locked = lock(tables, owner).await?;
    if locked.organization != organization {
        return Err(Refusal::MemberNotFound.into());
    }
    may_require(is_required, !locked.factors.is_empty())?;
    let mut changes = Changes::new();
    changes.compare_values("requiresSecondFactor", locked.is_required, is_required);
    let changes = changes.into_vec();
    if changes.is_empty() {
        return Ok(());
    }
    tables
        .write_factor_requirement(organization, is_required)
        .await?;
    let action = Action::OrganizationUpdated;
    let row = audit_row(organization, origin, action, None, organization, &changes);
    tables.insert_audit(&row).await
}
