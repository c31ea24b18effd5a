use super::*;
use crate::access::key::tests::any_key;
use crate::access::key_limits::KeyLimits;
use crate::access::key_limits::tests::{addresses, apps};
use crate::access::person::tests::any_user;
use rstest::rstest;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Returns a key from words: permission, environment, apps, addresses and expiry.
fn key(words: &str) -> ApiKey {
    let words: Vec<&str> = words.split(' ').collect();
    let [permission, environment, apps_of, addresses_of, expiry] = words[..] else {
        panic!("five words");
    };
    ApiKey {
        permission: Permission::parse(permission).unwrap(),
        environment: Environment::parse(environment).unwrap(),
        limits: KeyLimits {
            apps: apps(apps_of),
            addresses: addresses(addresses_of),
        },
        expires_at: expiry.parse().ok().map(at),
        ..any_key()
    }
}

#[rstest]
#[case(Permission::Full, Permission::Analytics, true)]
#[case(Permission::Full, Permission::Full, true)]
#[case(Permission::ReadOnly, Permission::Full, false)]
#[case(Permission::Analytics, Permission::ReadOnly, false)]
fn permissions_cover_weaker_ones(
    #[case] one: Permission,
    #[case] other: Permission,
    #[case] covers: bool,
) {
    assert_eq!(one.covers(other), covers);
}

#[rstest]
#[case::owner(Role::Owner, [true, true, true])]
#[case::admin(Role::Admin, [true, true, true])]
#[case::analyst(Role::Analyst, [false, true, true])]
#[case::viewer(Role::Viewer, [false, false, true])]
fn roles_cover_permissions(#[case] role: Role, #[case] expected: [bool; 3]) {
    let all = [
        Permission::Full,
        Permission::ReadOnly,
        Permission::Analytics,
    ];
    assert_eq!(all.map(|permission| role.covers(permission)), expected);
}

#[rstest]
#[case::the_same("full live * * -", "full live * * -", &[])]
#[case::weaker("full live * * -", "analytics test 1 192.0.2.0/24 5000", &[])]
#[case::read_only_creates_full("read_only live * * -", "full live * * -", &["permission"])]
#[case::test_creates_live("full test * * -", "full live * * -", &["environment"])]
#[case::test_creates_test("full test * * -", "full test * * -", &[])]
#[case::all_apps("full live 12 * -", "full live * * -", &["apps"])]
#[case::another_app("full live 12 * -", "full live 13 * -", &["apps"])]
#[case::fewer_apps("full live 12 * -", "full live 2 * -", &[])]
#[case::all_addresses("full live * 192.0.2.0/24 -", "full live * * -", &["addresses"])]
#[case::part_of_the_addresses("full live * 192.0.2.0/24 -", "full live * 192.0.2.7 -", &[])]
#[case::no_end("full live * * 5000", "full live * * -", &["expiresAt"])]
#[case::a_later_end("full live * * 5000", "full live * * 5001", &["expiresAt"])]
#[case::the_same_end("full live * * 5000", "full live * * 5000", &[])]
#[case::everything(
    "read_only test 1 192.0.2.7 5000",
    "full live * * -",
    &["permission", "environment", "apps", "addresses", "expiresAt"]
)]
fn a_key_creates_none_that_can_do_more_or_lives_longer(
    #[case] own: &str,
    #[case] new: &str,
    #[case] expected: &[&str],
) {
    let manager = KeyManager::Key(Box::new(key(own)));
    let fields: Vec<String> = match manager.check_created(&key(new)) {
        Ok(()) => Vec::new(),
        Err(Refusal::KeyExceedsManager(faults)) => {
            faults.iter().map(|fault| fault.field.clone()).collect()
        }
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(fields, expected);
}

#[rstest]
#[case::a_longer_life_does_not_matter("full live * * 5000", "full live * * -", Ok(()))]
#[case::live_of_test("full test * * -", "full live * * -", Err(Refusal::KeyNotFound))]
#[case::an_app_that_it_does_not_see(
    "full live 1 * -",
    "full live 2 * -",
    Err(Refusal::KeyNotFound)
)]
#[case::itself("full live 1 192.0.2.7 5000", "full live 1 192.0.2.7 5000", Ok(()))]
fn a_key_manages_only_keys_that_it_covers(
    #[case] own: &str,
    #[case] other: &str,
    #[case] expected: Result<(), Refusal>,
) {
    let manager = KeyManager::Key(Box::new(key(own)));
    assert_eq!(manager.check_managed(&key(other)), expected);
}

#[test]
fn a_key_does_not_manage_one_that_works_from_elsewhere() {
    let manager = KeyManager::Key(Box::new(key("full live * 192.0.2.7 -")));
    let refused = manager.check_managed(&key("full live * * -"));
    assert!(matches!(refused, Err(Refusal::KeyExceedsManager(_))));
}

#[rstest]
#[case::owner(Role::Owner, Permission::Full, true)]
#[case::admin(Role::Admin, Permission::Full, true)]
#[case::analyst(Role::Analyst, Permission::Analytics, false)]
#[case::viewer(Role::Viewer, Permission::Analytics, false)]
fn members_with_the_scope_create_keys(
    #[case] role: Role,
    #[case] permission: Permission,
    #[case] allowed: bool,
) {
    let member = any_user(role);
    let actor = Actor::User(member.id);
    let manager = KeyManager::of(&actor, std::slice::from_ref(&member), None, NOW);
    let created = manager.and_then(|manager| {
        assert_eq!(manager.owner(), Some(member.id));
        manager.check_created(&ApiKey {
            permission,
            ..any_key()
        })
    });
    assert_eq!(created.is_ok(), allowed);
    let removed = KeyManager::of(&actor, &[], None, NOW);
    assert_eq!(removed, Err(Refusal::KeyManagerInvalid));
}

#[rstest]
#[case::valid("full live * * -", true)]
#[case::expired("full live * * 1000", false)]
#[case::weak("read_only live * * -", false)]
fn only_valid_full_keys_manage_keys(#[case] own: &str, #[case] allowed: bool) {
    let own = key(own);
    let manager = KeyManager::of(&Actor::Key(own.id), &[], Some(own), NOW);
    assert_eq!(manager.is_ok(), allowed);
}

#[test]
fn keys_of_a_key_belong_to_its_owner() {
    let owner = any_user(Role::Admin).id;
    let own = ApiKey {
        owner: Some(owner),
        ..any_key()
    };
    let manager = KeyManager::of(&Actor::Key(own.id), &[], Some(own), NOW).unwrap();
    assert_eq!(manager.owner(), Some(owner));
}

#[rstest]
#[case::no_end(None, true)]
#[case::now(Some(1_000), false)]
#[case::later(Some(1_001), true)]
#[case::ten_years(Some(1_000 + 3_650 * 86_400_000), true)]
#[case::longer(Some(1_001 + 3_650 * 86_400_000), false)]
fn a_new_key_expires_in_the_future(#[case] end: Option<i64>, #[case] accepted: bool) {
    assert_eq!(check_expiry(end.map(at), NOW).is_ok(), accepted);
}

fn rotation(overlap: u64, expiry: Change<Timestamp>) -> KeyRotation {
    KeyRotation {
        successor: KeyId::from_bytes([9; 16]),
        hint: "wxyz".to_owned(),
        overlap: Duration::from_millis(overlap),
        expiry,
    }
}

#[rstest]
#[case::no_end(None, 500, Change::Keep, Some(1_500), None)]
#[case::at_once(None, 0, Change::Keep, Some(1_000), None)]
#[case::the_same_end(Some(9_000), 500, Change::Keep, Some(1_500), Some(9_000))]
#[case::an_earlier_end_stays(Some(1_200), 500, Change::Keep, Some(1_200), Some(1_200))]
#[case::a_new_end(Some(1_200), 500, Change::Set(at(7_000)), Some(1_200), Some(7_000))]
#[case::without_end(Some(1_200), 500, Change::Reset, Some(1_200), None)]
fn a_rotated_key_expires_after_the_overlap(
    #[case] expires: Option<i64>,
    #[case] overlap: u64,
    #[case] expiry: Change<Timestamp>,
    #[case] old_end: Option<i64>,
    #[case] new_end: Option<i64>,
) {
    let mut old = ApiKey {
        expires_at: expires.map(at),
        last_used_at: Some(at(900)),
        ..key("full live 12 192.0.2.7 -")
    };
    let before = old.clone();
    let rotation = rotation(overlap, expiry);
    let new = old.rotate(&rotation, &Actor::Operator, None, NOW).unwrap();
    assert_eq!(old.expires_at, old_end.map(at));
    assert_eq!(old.successor, Some(new.id));
    assert_eq!(new.expires_at, new_end.map(at));
    assert_eq!(
        (new.permission, new.environment, &new.limits),
        (before.permission, before.environment, &before.limits)
    );
    assert_eq!((new.last_used_at, new.successor), (None, None));
    assert_eq!(
        old.rotate(&rotation, &Actor::Operator, None, at(999)),
        Err(Refusal::KeyRotated)
    );
}

#[rstest]
#[case::revoked(Some(900), None)]
#[case::expired(None, Some(1_000))]
fn ended_keys_stay_ended(#[case] revoked: Option<i64>, #[case] expires: Option<i64>) {
    let mut ended = ApiKey {
        revoked_at: revoked.map(at),
        expires_at: expires.map(at),
        ..any_key()
    };
    let before = ended.clone();
    let rotated = ended.rotate(&rotation(500, Change::Reset), &Actor::Operator, None, NOW);
    assert_eq!(rotated, Err(Refusal::KeyEnded));
    let taken = ended.take_over(any_user(Role::Owner).id, NOW);
    assert_eq!(taken, Err(Refusal::KeyEnded));
    assert_eq!(ended, before);
}

#[test]
fn taking_over_twice_changes_nothing() {
    let (mut key, owner) = (any_key(), any_user(Role::Owner).id);
    assert_eq!(key.take_over(owner, NOW).unwrap().len(), 1);
    assert_eq!(key.owner, Some(owner));
    assert_eq!(key.take_over(owner, NOW), Ok(Vec::new()));
}

/// Returns the numbers of the revoked keys and of those that are taken over. Key 1 is full, key 2
/// read-only, key 3 analytics, key 4 revoked, key 5 of another member, key 6 without an owner.
fn lost(role: Option<Role>, by: Option<&User>, wanted: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let member = any_user(Role::Admin).id;
    let owned = |number: u8, permission| ApiKey {
        id: KeyId::from_bytes([number; 16]),
        permission,
        owner: Some(member),
        ..any_key()
    };
    let keys = vec![
        owned(1, Permission::Full),
        owned(2, Permission::ReadOnly),
        owned(3, Permission::Analytics),
        ApiKey {
            revoked_at: Some(at(1)),
            ..owned(4, Permission::Full)
        },
        ApiKey {
            owner: Some(any_user(Role::Owner).id),
            ..owned(5, Permission::Full)
        },
        ApiKey {
            owner: None,
            ..owned(6, Permission::Full)
        },
    ];
    let wanted = wanted.iter().map(|one| KeyId::from_bytes([*one; 16]));
    let found = keys_of_changed_member(keys, (member, role), (by, &wanted.collect()), NOW);
    let number = |key: &ApiKey| key.id.as_bytes()[0];
    let mut taken_over = Vec::new();
    for (key, changes) in &found.taken_over {
        assert_eq!(key.owner, by.map(|by| by.id));
        assert_eq!(changes.len(), 1);
        taken_over.push(number(key));
    }
    (found.revoked.iter().map(number).collect(), taken_over)
}

#[rstest]
#[case::removed(None, &[], &[1, 2, 3], &[])]
#[case::removed_with_take_over(None, &[2, 5, 6], &[1, 3], &[2])]
#[case::to_viewer(Some(Role::Viewer), &[], &[1, 2], &[])]
#[case::to_analyst(Some(Role::Analyst), &[1, 3], &[], &[1])]
#[case::to_owner(Some(Role::Owner), &[], &[], &[])]
fn removed_and_demoted_members_lose_their_keys(
    #[case] role: Option<Role>,
    #[case] wanted: &[u8],
    #[case] revoked: &[u8],
    #[case] taken_over: &[u8],
) {
    let expected = (revoked.to_vec(), taken_over.to_vec());
    assert_eq!(lost(role, Some(&any_user(Role::Owner)), wanted), expected);
}

#[rstest]
#[case::from_themselves(Some(Role::Admin), &[])]
#[case::the_command_line(None, &[])]
#[case::a_member_without_the_scope(Some(Role::Analyst), &[])]
#[case::an_owner(Some(Role::Owner), &[1, 2, 3])]
fn another_member_with_the_scope_takes_over(#[case] by: Option<Role>, #[case] taken_over: &[u8]) {
    let by = by.map(any_user);
    assert_eq!(lost(None, by.as_ref(), &[1, 2, 3]).1, taken_over);
}
