//! Sessions of signed-in users.

use crate::tables::Tables;
use tributary_domain::access::credential::SignInFacts;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::UserId;
use tributary_store::NewSession;
use tributary_store::records::audit_row;

/// Starts a session. Compares the credential again, because a reset, new settings or a first factor may
/// have ended the sessions that began with it while it was checked.
pub async fn begin_session<T: Tables>(
    tables: &T,
    new: &NewSession,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let found = tables.lock_account(new.session.user).await?;
    let (user, hash) = found.ok_or(Refusal::MemberNotFound)?;
    let settings = tables.single_sign_on(user.organization).await?;
    new.credential.admit(SignInFacts {
        role: user.role,
        password_hash: &hash,
        factors: &tables.factors(user.id).await?,
        single_sign_on: settings.as_ref(),
    })?;
    tables.remove_expired_sessions(origin.at).await?;
    tables.insert_session(new).await?;
    tables.note_sign_in(user.id, origin.at).await?;
    let (action, changes) = (Action::UserSignedIn, new.session.method.changes());
    let row = audit_row(user.organization, origin, action, None, user.id, &changes);
    tables.insert_audit(&row).await
}

/// Ends all sessions of a user but one. Returns how many.
pub async fn end_other_sessions<T: Tables>(
    tables: &T,
    user: UserId,
    kept: Digest,
    origin: &AuditContext,
) -> Result<u64, T::Failure> {
    let found = tables.lock_account(user).await?;
    let (found, _) = found.ok_or(Refusal::MemberNotFound)?;
    let ended = tables.end_other_sessions(user, kept).await?;
    if ended > 0 {
        let action = Action::UserSessionsEnded;
        let row = audit_row(found.organization, origin, action, None, user, &[]);
        tables.insert_audit(&row).await?;
    }
    Ok(ended)
}

/// Replaces the password that was checked, and all sessions by a new one.
pub async fn change_password<T: Tables>(
    tables: &T,
    new: &NewSession,
    password_hash: &str,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let found = tables.lock_account(new.session.user).await?;
    let (user, hash) = found.ok_or(Refusal::MemberNotFound)?;
    let factors = tables.factors(user.id).await?;
    new.credential.admit_replacement(&hash, &factors)?;
    tables.replace_password(user.id, password_hash).await?;
    tables.insert_session(new).await?;
    let action = Action::UserPasswordChanged;
    let row = audit_row(user.organization, origin, action, None, user.id, &[]);
    tables.insert_audit(&row).await
}
