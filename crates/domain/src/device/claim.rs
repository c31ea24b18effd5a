//! Claims of user ids and matching values. The SDK key is public, so anyone can claim anything.
//!
//! [`claim`] decides what a call changes and which claims billing may use. The store records signed
//! claims, and unsigned ones up to [`DEVICE_CLAIMS_MAX`], so that a support team can see what a
//! device tried.

use super::{ContactHashes, Identity, UserKey};
use crate::vocabulary::digest::Digest;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of distinct users of a device. A family shares a tablet; a device with more users
/// is a test device or claims other people's user ids, so none of its unsigned claims are used.
pub const DEVICE_USERS_MAX: usize = 3;
/// Number of a device's claims after which unsigned ones are no longer recorded. They only keep the
/// flag, because an attacker can invent any number of user ids.
pub const DEVICE_CLAIMS_MAX: usize = 50;
/// Number of a user's links after which unsigned claims by further devices are no longer recorded.
/// A real user has far fewer devices, and each settlement sorts all links of its users.
pub const USER_LINKS_MAX: usize = 1_000;
/// The same for signed claims. A stranger can use up [`USER_LINKS_MAX`] for any user, but not this:
/// only the user has a signature.
pub const SIGNED_USER_LINKS_MAX: usize = 2 * USER_LINKS_MAX;
/// Number of new claims from one address within [`ADDRESS_CLAIMS_WINDOW`] that are not flagged. The
/// flag has no further effect, because carriers share addresses.
pub const ADDRESS_CLAIMS_MAX: usize = 20;
/// Period in which claims from one address are counted.
pub const ADDRESS_CLAIMS_WINDOW: Duration = Duration::from_hours(1);
/// How often a device's matching values may change. Three accounts on one device need two changes,
/// and one is left for a corrected email address. A device that sends more is used to upload other
/// people's hashes.
pub const MATCHING_CHANGES_MAX: u32 = 3;

/// Suspicious property of a device's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdentityFlag {
    /// The device claimed more than [`DEVICE_USERS_MAX`] users.
    TooManyUsers,
    /// The device claimed a user when its address had made [`ADDRESS_CLAIMS_MAX`] other claims
    /// within an hour.
    ClaimBurst,
    /// The app requires signed user ids, and the device claimed a user without a signature.
    UnsignedUser,
    /// The device sent a wrong signature.
    WrongSignature,
    /// The device claimed a user that [`USER_LINKS_MAX`] other devices had claimed, or
    /// [`SIGNED_USER_LINKS_MAX`] with a signature.
    CrowdedUser,
    /// The device changed its matching values more than [`MATCHING_CHANGES_MAX`] times.
    TooManyMatchingChanges,
}

crate::keywords! {
    IdentityFlag {
        TooManyUsers => "tooManyUsers",
        ClaimBurst => "claimBurst",
        UnsignedUser => "unsignedUser",
        WrongSignature => "wrongSignature",
        CrowdedUser => "crowdedUser",
        TooManyMatchingChanges => "tooManyMatchingChanges",
    }
}

/// Whether an app requires signed user ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdentityMode {
    /// Unsigned claims are used.
    #[default]
    Open,
    /// Only signed claims are used.
    Signed,
}

crate::keywords! {
    IdentityMode {
        Open => "open",
        Signed => "signed",
    }
}

/// Proof that a claimed user id comes from the app's backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaimProof {
    /// The call contained no signature.
    #[default]
    Unsigned,
    /// The signature is valid.
    Signed,
    /// The signature is wrong.
    Wrong,
}

/// User of a device, as one call claims it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdentityClaim {
    /// User id assigned by the app.
    pub user: Option<UserKey>,
    /// Hashes of the user's email address and phone number, computed on the device.
    pub contact_hashes: ContactHashes,
    /// Proof of the user id.
    pub proof: ClaimProof,
    /// Whether the app requires signed user ids.
    pub mode: IdentityMode,
    /// Today's hash of the caller's IP address; `None` if the address must not be compared.
    pub address_hash: Option<Digest>,
}

/// Stored facts that a claim of a user depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimFacts {
    /// Users that the device claimed before, whether used or not.
    pub users: BTreeSet<UserKey>,
    /// Those of them with a signed claim.
    pub signed: BTreeSet<UserKey>,
    /// Claims from the same address within [`ADDRESS_CLAIMS_WINDOW`], at most
    /// [`ADDRESS_CLAIMS_MAX`].
    pub claims_from_address: usize,
    /// Devices that claimed the user, at most [`SIGNED_USER_LINKS_MAX`].
    pub links_of_user: usize,
}

/// Claim of a user to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserClaim {
    /// Claimed user.
    pub user: UserKey,
    /// Whether the app's backend signed the user id.
    pub is_signed: bool,
    /// Whether billing uses the claim.
    pub is_used: bool,
    /// Whether the device's earlier unsigned claims are no longer used.
    pub revokes_unsigned: bool,
    /// Hash of the caller's IP address.
    pub address_hash: Option<Digest>,
}

/// Changes made by a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimDecision {
    /// The updated identity.
    pub identity: Identity,
    /// The claim to record; `None` if nothing is new.
    pub user_claim: Option<UserClaim>,
}

impl IdentityClaim {
    /// Returns whether the decision depends on stored claims. If not, the store need not read them.
    pub fn needs_facts(&self, before: &Identity) -> bool {
        let is_current = self.user == before.user && self.proof == ClaimProof::Unsigned;
        self.user.is_some() && !is_current
    }
}

/// Decides what a call changes.
pub fn claim(before: &Identity, claim: &IdentityClaim, facts: &ClaimFacts) -> ClaimDecision {
    let mut identity = with_matching(before.clone(), claim.contact_hashes.clone());
    let user_claim = claim
        .user
        .as_ref()
        .filter(|_| claim.needs_facts(before))
        .and_then(|user| claim_user(&mut identity, user, claim, facts));
    ClaimDecision {
        identity,
        user_claim,
    }
}

fn claim_user(
    identity: &mut Identity,
    user: &UserKey,
    claim: &IdentityClaim,
    facts: &ClaimFacts,
) -> Option<UserClaim> {
    let is_new = !facts.users.contains(user);
    let is_over = facts.users.len() + usize::from(is_new) > DEVICE_USERS_MAX;
    let is_signed = claim.proof == ClaimProof::Signed;
    let is_required = claim.mode == IdentityMode::Signed;
    let links_max = if is_signed {
        SIGNED_USER_LINKS_MAX
    } else {
        USER_LINKS_MAX
    };
    let is_crowded = is_new && facts.links_of_user >= links_max;
    let flags = [
        (is_over, IdentityFlag::TooManyUsers),
        (
            is_new && facts.claims_from_address >= ADDRESS_CLAIMS_MAX,
            IdentityFlag::ClaimBurst,
        ),
        (
            is_required && claim.proof == ClaimProof::Unsigned,
            IdentityFlag::UnsignedUser,
        ),
        (
            claim.proof == ClaimProof::Wrong,
            IdentityFlag::WrongSignature,
        ),
        (is_crowded, IdentityFlag::CrowdedUser),
    ];
    let raised = flags.into_iter().filter(|(is_raised, _)| *is_raised);
    identity.flags.extend(raised.map(|(_, flag)| flag));
    // The app's backend vouches for a signed user, however many users the device has.
    let is_used = is_signed || !(is_over || is_required);
    let is_current = identity.user.as_ref() == Some(user);
    let is_stored = is_current && (!is_signed || facts.signed.contains(user));
    let is_known = !is_new && (!is_used || is_stored);
    // Signatures cannot be invented, so a device may have any number of signed claims.
    let is_beyond_limit = is_new && !is_signed && facts.users.len() >= DEVICE_CLAIMS_MAX;
    if is_known || is_beyond_limit || is_crowded {
        return None;
    }
    if is_used {
        identity.user = Some(user.clone());
    }
    Some(UserClaim {
        user: user.clone(),
        is_signed,
        is_used,
        revokes_unsigned: is_over,
        address_hash: claim.address_hash,
    })
}

/// Merges later matching values. A call that replaces a value counts as a change; a call that only
/// adds values does not. After [`MATCHING_CHANGES_MAX`] changes, the values stay as they are.
fn with_matching(mut identity: Identity, later: ContactHashes) -> Identity {
    if !identity.contact_hashes.is_replaced_by(&later) {
        identity.contact_hashes = identity.contact_hashes.updated(later);
    } else if identity.matching_changes < MATCHING_CHANGES_MAX {
        identity.matching_changes += 1;
        identity.contact_hashes = identity.contact_hashes.updated(later);
    } else {
        identity.flags.insert(IdentityFlag::TooManyMatchingChanges);
    }
    identity
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn user(name: &str) -> UserKey {
        UserKey::stored(name.to_owned())
    }

    fn of_user(name: &str) -> IdentityClaim {
        IdentityClaim {
            user: Some(user(name)),
            ..IdentityClaim::default()
        }
    }

    fn facts(users: usize) -> ClaimFacts {
        ClaimFacts {
            users: (0..users).map(|number| user(&number.to_string())).collect(),
            ..ClaimFacts::default()
        }
    }

    use ClaimProof::{Signed, Unsigned, Wrong};
    use IdentityFlag::{TooManyUsers, UnsignedUser, WrongSignature};
    use IdentityMode::Open;

    #[rstest]
    #[case::the_first_user(Open, Unsigned, 0, Some(true), &[])]
    #[case::the_last_user_allowed(Open, Unsigned, 2, Some(true), &[])]
    #[case::one_user_too_many(Open, Unsigned, 3, Some(false), &[TooManyUsers])]
    #[case::the_last_recorded_claim(Open, Unsigned, 49, Some(false), &[TooManyUsers])]
    #[case::too_many_to_record(Open, Unsigned, 50, None, &[TooManyUsers])]
    #[case::a_signature_beats_the_cap(Open, Signed, 3, Some(true), &[TooManyUsers])]
    #[case::signed_claims_are_all_recorded(Open, Signed, 50, Some(true), &[TooManyUsers])]
    #[case::wrong_in_open_mode(Open, Wrong, 0, Some(true), &[WrongSignature])]
    #[case::unsigned(IdentityMode::Signed, Unsigned, 0, Some(false), &[UnsignedUser])]
    #[case::wrong(IdentityMode::Signed, Wrong, 0, Some(false), &[WrongSignature])]
    #[case::signed(IdentityMode::Signed, Signed, 0, Some(true), &[])]
    fn decides_whether_a_new_claim_is_used(
        #[case] mode: IdentityMode,
        #[case] proof: ClaimProof,
        #[case] users: usize,
        #[case] is_used: Option<bool>,
        #[case] flags: &[IdentityFlag],
    ) {
        let call = IdentityClaim {
            proof,
            mode,
            ..of_user("new")
        };
        let before = Identity {
            user: Some(user("before")),
            ..Identity::default()
        };
        let decided = claim(&before, &call, &facts(users));
        let recorded = decided.user_claim.as_ref();
        assert_eq!(recorded.map(|claim| claim.is_used), is_used);
        assert_eq!(
            recorded.is_some_and(|claim| claim.revokes_unsigned),
            recorded.is_some() && flags.contains(&TooManyUsers)
        );
        assert_eq!(decided.identity.flags, flags.iter().copied().collect());
        let expected = if is_used == Some(true) {
            "new"
        } else {
            "before"
        };
        assert_eq!(decided.identity.user, Some(user(expected)));
    }

    #[test]
    fn a_repeated_claim_changes_nothing() {
        let before = Identity {
            user: Some(user("1")),
            ..Identity::default()
        };
        let decided = claim(&before, &of_user("1"), &ClaimFacts::default());
        assert_eq!(
            (decided.identity, decided.user_claim),
            (before.clone(), None)
        );
        // An unused claim is not recorded twice, and a known user may come back.
        let decided = claim(&before, &of_user("2"), &facts(4));
        assert_eq!(
            (decided.identity.user, decided.user_claim),
            (before.user.clone(), None)
        );
        let decided = claim(&before, &of_user("0"), &facts(3));
        assert!(decided.user_claim.is_some_and(|claim| claim.is_used));
        assert_eq!(decided.identity.user, Some(user("0")));
        // A first signature is recorded; the same one again is not.
        let signed = IdentityClaim {
            proof: Signed,
            ..of_user("1")
        };
        let mut facts = facts(2);
        let decided = claim(&before, &signed, &facts);
        assert!(decided.user_claim.is_some_and(|claim| claim.is_signed));
        facts.signed = BTreeSet::from([user("1")]);
        assert_eq!(claim(&before, &signed, &facts).user_claim, None);
    }

    #[rstest]
    #[case::below(19, false)]
    #[case::at_the_limit(20, true)]
    fn a_burst_from_one_address_only_flags(#[case] others: usize, #[case] is_flagged: bool) {
        let facts = ClaimFacts {
            claims_from_address: others,
            ..ClaimFacts::default()
        };
        let decided = claim(&Identity::default(), &of_user("new"), &facts);
        let flags = &decided.identity.flags;
        assert_eq!(flags.contains(&IdentityFlag::ClaimBurst), is_flagged);
        assert!(decided.user_claim.is_some_and(|claim| claim.is_used));
    }

    #[rstest]
    #[case::below(Unsigned, 999, true)]
    #[case::at_the_limit(Unsigned, 1_000, false)]
    #[case::signed_beyond_the_limit(Signed, 1_000, true)]
    #[case::signed_at_its_limit(Signed, 2_000, false)]
    fn a_crowded_user_gets_no_further_links(
        #[case] proof: ClaimProof,
        #[case] links: usize,
        #[case] is_recorded: bool,
    ) {
        let call = IdentityClaim {
            proof,
            ..of_user("new")
        };
        let facts = ClaimFacts {
            links_of_user: links,
            ..ClaimFacts::default()
        };
        let decided = claim(&Identity::default(), &call, &facts);
        assert_eq!(decided.user_claim.is_some(), is_recorded);
        assert_eq!(decided.identity.user.is_some(), is_recorded);
        let flags = &decided.identity.flags;
        assert_eq!(flags.contains(&IdentityFlag::CrowdedUser), !is_recorded);
        // A device that has a link keeps it.
        let linked = ClaimFacts {
            users: BTreeSet::from([user("new")]),
            ..facts
        };
        let decided = claim(&Identity::default(), &call, &linked);
        assert!(decided.identity.flags.is_empty() && decided.identity.user.is_some());
    }

    #[test]
    fn matching_values_change_three_times() {
        let email = |text: &str| IdentityClaim {
            contact_hashes: ContactHashes {
                email: Some(text.to_owned()),
                ..ContactHashes::default()
            },
            ..IdentityClaim::default()
        };
        let mut identity = Identity::default();
        for text in ["0", "1", "1", "2", "3", "4", "5"] {
            identity = claim(&identity, &email(text), &ClaimFacts::default()).identity;
            let is_flagged = !identity.flags.is_empty();
            assert_eq!(is_flagged, ["4", "5"].contains(&text), "{text}");
        }
        assert_eq!(identity.contact_hashes.email.as_deref(), Some("3"));
        assert_eq!(identity.matching_changes, MATCHING_CHANGES_MAX);
        let phone = IdentityClaim {
            contact_hashes: ContactHashes {
                phone: Some("p".to_owned()),
                ..ContactHashes::default()
            },
            ..IdentityClaim::default()
        };
        let identity = claim(&identity, &phone, &ClaimFacts::default()).identity;
        assert_eq!(identity.contact_hashes.phone.as_deref(), Some("p"), "added");
    }
}
