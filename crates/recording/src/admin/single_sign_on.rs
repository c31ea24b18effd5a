//! Single sign-on.

use super::secret_keys::admit_sealed;
use crate::tables::Tables;
use tributary_domain::access::Actor;
use tributary_domain::access::person::{Role, User};
use tributary_domain::access::session::SignInMethod;
use tributary_domain::access::single_sign_on::{
    ATTEMPT_LIFETIME, MemberFacts, SignOnDecision, SignOnFacts, SignOnRefusal, SingleSignOn,
    SingleSignOnDraft, decide, has_password, removed_member,
};
use tributary_domain::audit::{Action, AuditContext, Changes};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_store::SignOn;
use tributary_store::records::audit_row;

/// Name of the settings in the audit log.
const TARGET: &str = "single_sign_on";

/// Replaces an organization's settings. Locks all members, so that nobody signs in with the old ones
/// meanwhile.
pub async fn replace_single_sign_on<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    draft: SingleSignOnDraft,
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<SingleSignOn, T::Failure> {
    admit_sealed(tables, &draft.client_secret).await?;
    tables.lock_members(organization).await?;
    let stored = tables.single_sign_on(organization).await?;
    let is_first = stored.is_none();
    let changed = SingleSignOn::replaced(stored, organization, draft, precondition, origin.at)?;
    let after = changed.after;
    if changed.is_new_issuer && !is_first {
        unlink_all(tables, organization).await?;
    }
    if !after.allows_passwords {
        end_password_sessions(tables, organization).await?;
    }
    tables.write_single_sign_on(&after).await?;
    let (action, changes) = (Action::SingleSignOnUpdated, &changed.changes);
    let row = audit_row(organization, origin, action, None, TARGET, changes);
    tables.insert_audit(&row).await?;
    Ok(after)
}

/// Ends the sessions that members began with a password or a passkey, which only owners may use then.
pub(super) async fn end_password_sessions<T: Tables>(
    tables: &T,
    organization: OrganizationId,
) -> Result<(), T::Failure> {
    for method in [SignInMethod::Password, SignInMethod::Passkey] {
        tables
            .end_member_sessions(organization, Some(Role::Owner), method)
            .await?;
    }
    Ok(())
}

/// Removes an organization's settings.
pub async fn remove_single_sign_on<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.lock_members(organization).await?;
    if !tables.delete_single_sign_on(organization).await? {
        return Err(Refusal::SingleSignOnNotFound.into());
    }
    unlink_all(tables, organization).await?;
    let action = Action::SingleSignOnRemoved;
    let row = audit_row(organization, origin, action, None, TARGET, &[]);
    tables.insert_audit(&row).await
}

/// Ends what the organization's provider vouched for. Refused if no owner could sign in afterwards.
async fn unlink_all<T: Tables>(tables: &T, organization: OrganizationId) -> Result<(), T::Failure> {
    let hashes = tables.owner_password_hashes(organization).await?;
    if !hashes.iter().any(|hash| has_password(hash)) {
        return Err(Refusal::OwnerNeedsPassword.into());
    }
    tables.forget_all_identities(organization).await?;
    let method = SignInMethod::SingleSignOn;
    tables.end_member_sessions(organization, None, method).await
}

/// Decides which account a person gets, and links or creates it.
pub async fn sign_on<T: Tables>(
    tables: &T,
    sign_on: &SignOn,
    origin: &AuditContext,
) -> Result<User, T::Failure> {
    let organization = sign_on.organization;
    let members = tables.lock_members(organization).await?;
    let settings = tables.single_sign_on(organization).await?;
    let settings = settings.filter(|settings| settings.issuer == sign_on.issuer);
    let changed = || Refusal::SignOnRefused(SignOnRefusal::SettingsChanged);
    let settings = settings.ok_or_else(changed)?;
    let until = origin.at.plus(ATTEMPT_LIFETIME);
    if !tables
        .use_attempt(sign_on.attempt, until, origin.at)
        .await?
    {
        return Err(Refusal::SignOnRefused(SignOnRefusal::UsedBefore).into());
    }
    let (facts, invitation) = facts(tables, &members, sign_on, origin).await?;
    let decided = decide(&sign_on.identity, &settings, &facts);
    let user = match decided.map_err(Refusal::SignOnRefused)? {
        SignOnDecision::SignIn(user) => return Ok(member(&members, user)?),
        SignOnDecision::Link(user) => {
            let user = member(&members, user)?;
            tables.forget_identities(user.id).await?;
            link(tables, sign_on, &user, origin).await?;
            let actor = by(origin, user.id);
            let action = Action::UserLinked;
            let row = audit_row(organization, &actor, action, None, user.id, &[]);
            tables.insert_audit(&row).await?;
            return Ok(user);
        }
        SignOnDecision::Create(role) => new_user(sign_on, role, origin)?,
    };
    tables.insert_user(&user, &sign_on.no_password).await?;
    if let Some(invitation) = invitation {
        tables.mark_setup_link_used(invitation, origin.at).await?;
    }
    let removed = removed_member(organization, &user.email);
    tables.unmark_removed(removed).await?;
    link(tables, sign_on, &user, origin).await?;
    let mut changes = Changes::new();
    let method = SignInMethod::SingleSignOn.as_str();
    changes.initial("method", Some(method.to_owned()));
    let changes = [user.creation_changes(), changes.into_vec()].concat();
    let actor = by(origin, user.id);
    let action = Action::UserCreated;
    let row = audit_row(organization, &actor, action, None, user.id, &changes);
    tables.insert_audit(&row).await?;
    Ok(user)
}

async fn facts<T: Tables>(
    tables: &T,
    members: &[User],
    sign_on: &SignOn,
    origin: &AuditContext,
) -> Result<(SignOnFacts, Option<Digest>), T::Failure> {
    let (organization, identity) = (sign_on.organization, &sign_on.identity);
    let mut facts = SignOnFacts {
        state: tables.identity(organization, identity.digest).await?,
        connecting: sign_on.connecting,
        member: None,
        invited_as: None,
        was_removed: false,
        members: members.len(),
    };
    let Some(email) = &identity.email else {
        return Ok((facts, None));
    };
    if let Some(user) = members.iter().find(|user| user.email == *email) {
        facts.member = Some(MemberFacts {
            id: user.id,
            role: user.role,
            is_linked: tables.is_linked(user.id).await?,
        });
    }
    let removed = removed_member(organization, email);
    facts.was_removed = tables.was_removed(removed).await?;
    let invitation = tables
        .invitation_for(organization, email, origin.at)
        .await?;
    facts.invited_as = invitation.map(|(_, role)| role);
    Ok((facts, invitation.map(|(digest, _)| digest)))
}

fn member(members: &[User], user: UserId) -> Result<User, Refusal> {
    let found = members.iter().find(|one| one.id == user);
    found.cloned().ok_or(Refusal::MemberNotFound)
}

fn new_user(sign_on: &SignOn, role: Role, origin: &AuditContext) -> Result<User, Refusal> {
    let email = sign_on.identity.email.clone();
    Ok(User {
        id: sign_on.new_user,
        organization: sign_on.organization,
        email: email.ok_or(Refusal::SignOnRefused(SignOnRefusal::NoEmail))?,
        role,
        created_at: origin.at,
    })
}

async fn link<T: Tables>(
    tables: &T,
    sign_on: &SignOn,
    user: &User,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let (organization, identity) = (sign_on.organization, sign_on.identity.digest);
    tables
        .link_identity(organization, identity, user.id, origin.at)
        .await
}

fn by(origin: &AuditContext, user: UserId) -> AuditContext {
    AuditContext {
        actor: Actor::User(user),
        ..origin.clone()
    }
}

/// Writes a sign-in that failed to the audit log.
pub async fn audit_failed_sign_on<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    reason: &str,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let mut changes = Changes::new();
    changes.initial("reason", Some(reason.to_owned()));
    let (action, changes) = (Action::UserSignInFailed, changes.into_vec());
    let row = audit_row(organization, origin, action, None, TARGET, &changes);
    tables.insert_audit(&row).await
}
