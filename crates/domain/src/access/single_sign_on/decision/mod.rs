//! Decides which account a person gets whom the provider identified.

use super::settings::{Issuer, SingleSignOn};
use crate::access::person::{Email, Role};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::UserId;
use crate::vocabulary::web_url::HostName;

/// Members up to which the provider creates accounts. The provider belongs to a tenant, and could
/// otherwise fill the database.
pub const SINGLE_SIGN_ON_MEMBERS_MAX: usize = 2_000;

/// A person whom the provider identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenIdentity {
    /// Digest of issuer and subject, which never changes. The address may.
    pub digest: Digest,
    /// Email address.
    pub email: Option<Email>,
    /// Whether the provider has verified the address.
    pub is_email_verified: bool,
    /// Google's Workspace domain.
    pub hosted_domain: Option<String>,
}

impl ProvenIdentity {
    /// Returns the digest of a subject at an issuer.
    pub fn digest_of(issuer: &Issuer, subject: &str) -> Digest {
        // An issuer contains no line break.
        Digest::of(format!("{}\n{subject}", issuer.as_str()).as_bytes())
    }

    /// Returns whether the settings accept the address: its domain is allowed, and the provider may
    /// vouch for it.
    fn is_allowed(&self, email: &Email, settings: &SingleSignOn) -> bool {
        let allows = |domain: &str| {
            settings
                .email_domains
                .iter()
                .any(|one| one.as_str() == domain)
        };
        let domain = email.as_str().rsplit('@').next().unwrap_or_default();
        // International domains are stored in their ASCII form.
        let domain = HostName::parse(domain);
        let is_hosted = || {
            let hosted = self.hosted_domain.as_deref().unwrap_or_default();
            allows(&hosted.to_ascii_lowercase())
        };
        domain.is_ok_and(|domain| allows(domain.as_str()))
            && (!settings.issuer.needs_hosted_domain() || is_hosted())
    }
}

/// What the organization knows of an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityState {
    /// Never seen.
    Unknown,
    /// Linked to this account.
    Linked(UserId),
    /// Its account was removed.
    Removed,
}

/// The member with the identity's email address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberFacts {
    /// Account.
    pub id: UserId,
    /// Role.
    pub role: Role,
    /// Whether another identity is linked to the account.
    pub is_linked: bool,
}

/// Facts about one organization. Accounts of other organizations do not count, whatever their
/// address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignOnFacts {
    /// The identity.
    pub state: IdentityState,
    /// Signed-in member who connects the own account.
    pub connecting: Option<UserId>,
    /// The member with the address.
    pub member: Option<MemberFacts>,
    /// Role of a valid invitation for the address.
    pub invited_as: Option<Role>,
    /// Whether a member with the address was removed.
    pub was_removed: bool,
    /// Number of members.
    pub members: usize,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignOnDecision {
    /// Sign in.
    SignIn(UserId),
    /// Link the identity to this account and sign in.
    Link(UserId),
    /// Create a member with this role, link the identity and sign in.
    Create(Role),
}

/// Why a person whom the provider identified cannot sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignOnRefusal {
    /// No valid address.
    #[error(
        "The provider sent no email address. Ask the people who manage it to include the email claim."
    )]
    NoEmail,
    /// The address is not verified.
    #[error("The provider has not verified your email address. Ask the people who manage it.")]
    EmailNotVerified,
    /// The address is at another domain.
    #[error(
        "Your email address is not at a domain that this organization accepts. Ask an owner of the organization."
    )]
    DomainNotAllowed,
    /// The address belongs to an owner whose account is not connected.
    #[error(
        "An owner connects the account first: sign in with your password, open Team and Single sign-on, and choose Connect my account."
    )]
    OwnerNotConnected,
    /// The address belongs to an account that another identity is linked to.
    #[error(
        "Another person at the provider already uses the account with your email address. Ask an owner of the organization to remove that member."
    )]
    AccountTaken,
    /// The identity is linked to another account.
    #[error("You are connected to another account of this organization.")]
    IdentityTaken,
    /// The member was removed.
    #[error("You were removed from this organization. Ask an owner to invite you again.")]
    Removed,
    /// The address is invited as an owner.
    #[error("You are invited as an owner. Open the link of the invitation and choose a password.")]
    InvitedAsOwner,
    /// Too many members.
    #[error(
        "This organization has too many members for the provider to add another. Ask an owner to invite you."
    )]
    TooManyMembers,
    /// The sign-in was completed before.
    #[error("This sign-in was completed already. Start again.")]
    UsedBefore,
    /// The settings were removed, or name another provider now.
    #[error("The organization's single sign-on changed meanwhile. Start again.")]
    SettingsChanged,
}

impl SignOnRefusal {
    /// Returns a code for the audit log.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoEmail => "no_email",
            Self::EmailNotVerified => "email_not_verified",
            Self::DomainNotAllowed => "domain_not_allowed",
            Self::OwnerNotConnected => "owner_not_connected",
            Self::AccountTaken => "account_taken",
            Self::IdentityTaken => "identity_taken",
            Self::Removed => "removed",
            Self::InvitedAsOwner => "invited_as_owner",
            Self::TooManyMembers => "too_many_members",
            Self::UsedBefore => "used_before",
            Self::SettingsChanged => "settings_changed",
        }
    }
}

/// Decides which account the identity gets.
pub fn decide(
    identity: &ProvenIdentity,
    settings: &SingleSignOn,
    facts: &SignOnFacts,
) -> Result<SignOnDecision, SignOnRefusal> {
    match (facts.state, facts.connecting) {
        (IdentityState::Linked(user), None) => return Ok(SignOnDecision::SignIn(user)),
        (IdentityState::Linked(user), Some(me)) if user == me => {
            return Ok(SignOnDecision::SignIn(user));
        }
        (IdentityState::Linked(_), Some(_)) => return Err(SignOnRefusal::IdentityTaken),
        // The member is signed in and has just signed in at the provider, which proves both.
        (_, Some(me)) => return Ok(SignOnDecision::Link(me)),
        (IdentityState::Unknown | IdentityState::Removed, None) => {}
    }
    let email = identity.email.as_ref().ok_or(SignOnRefusal::NoEmail)?;
    if !identity.is_email_verified {
        return Err(SignOnRefusal::EmailNotVerified);
    }
    if !identity.is_allowed(email, settings) {
        return Err(SignOnRefusal::DomainNotAllowed);
    }
    if let Some(member) = facts.member {
        return match member {
            MemberFacts {
                is_linked: true, ..
            } => Err(SignOnRefusal::AccountTaken),
            // A person who manages the provider must not become an owner by naming an owner's address.
            MemberFacts {
                role: Role::Owner, ..
            } => Err(SignOnRefusal::OwnerNotConnected),
            MemberFacts { id, .. } => Ok(SignOnDecision::Link(id)),
        };
    }
    match facts.invited_as {
        Some(Role::Owner) => Err(SignOnRefusal::InvitedAsOwner),
        Some(role) => Ok(SignOnDecision::Create(role)),
        None if facts.was_removed || facts.state == IdentityState::Removed => {
            Err(SignOnRefusal::Removed)
        }
        None if facts.members >= SINGLE_SIGN_ON_MEMBERS_MAX => Err(SignOnRefusal::TooManyMembers),
        None => Ok(SignOnDecision::Create(settings.default_role)),
    }
}

/// Returns whether a member may sign in with a password. Owners always may, so that a provider that
/// fails or changes sides does not lock the organization out.
pub fn allows_password(role: Role, settings: Option<&SingleSignOn>) -> bool {
    role == Role::Owner || settings.is_none_or(|settings| settings.allows_passwords)
}

#[cfg(test)]
mod tests;
