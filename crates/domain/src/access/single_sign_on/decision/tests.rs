//! Who gets which account.

use super::*;
use crate::keyring::seal::SealedSecret;
use crate::vocabulary::id::OrganizationId;
use crate::vocabulary::revision::Revision;
use crate::vocabulary::time::Timestamp;
use rstest::rstest;

const ME: UserId = UserId::from_bytes([1; 16]);
const OTHER: UserId = UserId::from_bytes([2; 16]);
const MAX: usize = SINGLE_SIGN_ON_MEMBERS_MAX;

fn settings(issuer: &str) -> SingleSignOn {
    SingleSignOn {
        organization: OrganizationId::from_bytes([1; 16]),
        issuer: Issuer::parse(issuer, false).unwrap(),
        client_id: "client".to_owned(),
        client_secret: SealedSecret::from_bytes(Vec::new()),
        email_domains: vec![
            HostName::parse("example.com").unwrap(),
            HostName::parse("xn--exmple-cua.com").unwrap(),
        ],
        default_role: Role::Viewer,
        allows_passwords: false,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        revision: Revision::FIRST,
    }
}

fn identity(email: Option<&str>) -> ProvenIdentity {
    ProvenIdentity {
        digest: Digest::of(b"me"),
        email: email.map(|text| Email::parse(text).unwrap()),
        is_email_verified: true,
        hosted_domain: None,
    }
}

const NOBODY: SignOnFacts = SignOnFacts {
    state: IdentityState::Unknown,
    connecting: None,
    member: None,
    invited_as: None,
    was_removed: false,
    members: 3,
};

const fn member(role: Role, is_linked: bool) -> MemberFacts {
    MemberFacts {
        id: OTHER,
        role,
        is_linked,
    }
}

fn with(change: impl FnOnce(&mut SignOnFacts)) -> SignOnFacts {
    let mut facts = NOBODY;
    change(&mut facts);
    facts
}

#[rstest]
#[case::new(NOBODY, Ok(SignOnDecision::Create(Role::Viewer)))]
#[case::known(with(|it| it.state = IdentityState::Linked(ME)), Ok(SignOnDecision::SignIn(ME)))]
#[case::known_under_an_address_of_another(
    with(|it| (it.state, it.member) = (IdentityState::Linked(ME), Some(member(Role::Owner, false)))),
    Ok(SignOnDecision::SignIn(ME))
)]
#[case::member_by_address(with(|it| it.member = Some(member(Role::Admin, false))), Ok(SignOnDecision::Link(OTHER)))]
#[case::owner_by_address(
    with(|it| it.member = Some(member(Role::Owner, false))),
    Err(SignOnRefusal::OwnerNotConnected)
)]
#[case::reused_address(with(|it| it.member = Some(member(Role::Admin, true))), Err(SignOnRefusal::AccountTaken))]
#[case::reused_address_of_an_owner(
    with(|it| it.member = Some(member(Role::Owner, true))),
    Err(SignOnRefusal::AccountTaken)
)]
#[case::invited(with(|it| it.invited_as = Some(Role::Admin)), Ok(SignOnDecision::Create(Role::Admin)))]
#[case::invited_as_owner(
    with(|it| it.invited_as = Some(Role::Owner)),
    Err(SignOnRefusal::InvitedAsOwner)
)]
#[case::removed(with(|it| it.was_removed = true), Err(SignOnRefusal::Removed))]
#[case::removed_under_another_address(
    with(|it| it.state = IdentityState::Removed),
    Err(SignOnRefusal::Removed)
)]
#[case::removed_and_invited_again(
    with(|it| (it.was_removed, it.state, it.invited_as) = (true, IdentityState::Removed, Some(Role::Viewer))),
    Ok(SignOnDecision::Create(Role::Viewer))
)]
#[case::removed_and_member_again(
    with(|it| (it.state, it.member) = (IdentityState::Removed, Some(member(Role::Viewer, false)))),
    Ok(SignOnDecision::Link(OTHER))
)]
#[case::full(with(|it| it.members = MAX), Err(SignOnRefusal::TooManyMembers))]
#[case::nearly_full(with(|it| it.members = MAX - 1), Ok(SignOnDecision::Create(Role::Viewer)))]
#[case::full_but_invited(
    with(|it| (it.members, it.invited_as) = (MAX, Some(Role::Viewer))),
    Ok(SignOnDecision::Create(Role::Viewer))
)]
#[case::connecting(with(|it| it.connecting = Some(ME)), Ok(SignOnDecision::Link(ME)))]
#[case::connecting_again(
    with(|it| (it.connecting, it.state) = (Some(ME), IdentityState::Linked(ME))),
    Ok(SignOnDecision::SignIn(ME))
)]
#[case::connecting_the_identity_of_another(
    with(|it| (it.connecting, it.state) = (Some(ME), IdentityState::Linked(OTHER))),
    Err(SignOnRefusal::IdentityTaken)
)]
fn the_provider_vouches_for_its_own_organization(
    #[case] facts: SignOnFacts,
    #[case] expected: Result<SignOnDecision, SignOnRefusal>,
) {
    let me = identity(Some("me@example.com"));
    assert_eq!(
        decide(&me, &settings("https://login.example.com"), &facts),
        expected
    );
}

#[rstest]
#[case::none(None, true, None, "https://a.test", Err(SignOnRefusal::NoEmail))]
#[case::unverified(
    Some("me@example.com"),
    false,
    None,
    "https://a.test",
    Err(SignOnRefusal::EmailNotVerified)
)]
#[case::allowed(Some("me@example.com"), true, None, "https://a.test", Ok(()))]
#[case::international(Some("me@exämple.com"), true, None, "https://a.test", Ok(()))]
#[case::subdomain(
    Some("me@a.example.com"),
    true,
    None,
    "https://a.test",
    Err(SignOnRefusal::DomainNotAllowed)
)]
#[case::suffix(
    Some("me@notexample.com"),
    true,
    None,
    "https://a.test",
    Err(SignOnRefusal::DomainNotAllowed)
)]
#[case::personal_google_account(
    Some("me@example.com"),
    true,
    None,
    "https://accounts.google.com",
    Err(SignOnRefusal::DomainNotAllowed)
)]
#[case::other_workspace(
    Some("me@example.com"),
    true,
    Some("evil.test"),
    "https://accounts.google.com",
    Err(SignOnRefusal::DomainNotAllowed)
)]
#[case::own_workspace(
    Some("me@example.com"), true, Some("Example.com"), "https://accounts.google.com", Ok(())
)]
fn only_verified_addresses_at_allowed_domains_count(
    #[case] email: Option<&str>,
    #[case] is_email_verified: bool,
    #[case] hosted: Option<&str>,
    #[case] issuer: &str,
    #[case] expected: Result<(), SignOnRefusal>,
) {
    let me = ProvenIdentity {
        is_email_verified,
        hosted_domain: hosted.map(str::to_owned),
        ..identity(email)
    };
    let settings = settings(issuer);
    assert_eq!(decide(&me, &settings, &NOBODY).map(|_| ()), expected);
    // Once linked, the address does not matter.
    let linked = with(|it| it.state = IdentityState::Linked(ME));
    assert_eq!(
        decide(&me, &settings, &linked),
        Ok(SignOnDecision::SignIn(ME))
    );
}

#[rstest]
#[case(Role::Owner, true)]
#[case(Role::Admin, false)]
#[case(Role::Analyst, false)]
#[case(Role::Viewer, false)]
fn owners_always_keep_a_password(#[case] role: Role, #[case] allowed: bool) {
    let strict = settings("https://a.test");
    assert_eq!(allows_password(role, Some(&strict)), allowed);
    let lenient = SingleSignOn {
        allows_passwords: true,
        ..strict
    };
    assert!(allows_password(role, Some(&lenient)));
    assert!(allows_password(role, None));
}

#[test]
fn a_subject_belongs_to_its_issuer() {
    let at = |issuer| ProvenIdentity::digest_of(&Issuer::parse(issuer, false).unwrap(), "1");
    assert_ne!(at("https://a.test"), at("https://b.test"));
}
