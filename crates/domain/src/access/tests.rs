use super::*;
use key_limits::KeyLimits;
use key_limits::tests::{addresses, apps};
use rstest::rstest;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

#[rstest]
#[case::no_limit("*", Permission::Full, Ok(()))]
#[case::inside("192.0.2.0/24", Permission::Full, Ok(()))]
#[case::outside(
    "198.51.100.0/24",
    Permission::Full,
    Err(AccessDenied::AddressNotAllowed)
)]
#[case::addresses_are_checked_before_the_permission(
    "198.51.100.0/24",
    Permission::Analytics,
    Err(AccessDenied::AddressNotAllowed)
)]
fn a_key_works_from_its_addresses(
    #[case] limit: &str,
    #[case] permission: Permission,
    #[case] expected: Result<(), AccessDenied>,
) {
    let limits = KeyLimits {
        addresses: addresses(limit),
        ..KeyLimits::default()
    };
    let key = ApiKey {
        permission,
        limits,
        ..key::tests::any_key()
    };
    assert_eq!(authorize::<AppsWrite>(&key, CLIENT).map(|_| ()), expected);
}

#[test]
fn the_app_limit_follows_every_derived_access() {
    let limits = KeyLimits {
        apps: apps("1"),
        ..KeyLimits::default()
    };
    let key = ApiKey {
        limits,
        ..key::tests::any_key()
    };
    let (allowed, other) = (AppId::from_bytes([b'1'; 16]), AppId::from_bytes([b'2'; 16]));
    let writer = authorize::<AppsWrite>(&key, CLIENT).unwrap();
    let reader = writer.clone().read_access();
    let analyst = reader.analytics_access();
    assert_eq!(writer.organization_of(allowed), Ok(key.organization));
    assert_eq!(writer.organization_of(other), Err(Refusal::AppNotFound));
    assert_eq!(reader.organization_of(other), Err(Refusal::AppNotFound));
    assert_eq!(analyst.organization_of(other), Err(Refusal::AppNotFound));
    assert_eq!(
        analyst.organization_of_all([allowed, other]),
        Err(Refusal::AppNotFound)
    );
    assert_eq!(analyst.organization_and_apps().1, &apps("1"));
    assert_eq!(writer.whole_organization(), Err(Refusal::AppNotAllowed));
    let operator = Authorized::<AppsWrite>::operator(key.organization);
    assert_eq!(operator.whole_organization(), Ok(key.organization));
}

#[rstest]
#[case::owner(Role::Owner, [true, true, true, true, true])]
#[case::admin(Role::Admin, [true, true, true, true, false])]
#[case::analyst(Role::Analyst, [true, true, false, false, false])]
#[case::viewer(Role::Viewer, [true, false, false, false, false])]
fn roles_grant_scopes(#[case] role: Role, #[case] expected: [bool; 5]) {
    let user = person::tests::any_user(role);
    let test = Environment::Test;
    let found = [
        authorize_person::<AnalyticsRead>(&user, test).is_ok(),
        authorize_person::<AppsRead>(&user, test).is_ok(),
        authorize_person::<AppsWrite>(&user, test).is_ok(),
        authorize_person::<KeysWrite>(&user, test).is_ok(),
        authorize_person::<MembersWrite>(&user, test).is_ok(),
    ];
    assert_eq!(found, expected);
}

#[test]
fn users_read_either_environment_and_write_live() {
    let user = person::tests::any_user(Role::Owner);
    let reader = authorize_person::<AppsRead>(&user, Environment::Test).unwrap();
    assert_eq!(reader.environment(), Environment::Test);
    assert_eq!(reader.actor(), &Actor::User(user.id));
    let writer = authorize_person::<AppsWrite>(&user, Environment::Test).unwrap();
    assert_eq!(writer.environment(), Environment::Live);
}

#[rstest]
#[case::full(Permission::Full, [true, true, true, true, false])]
#[case::read_only(Permission::ReadOnly, [true, true, false, false, false])]
#[case::analytics(Permission::Analytics, [true, false, false, false, false])]
fn permissions_grant_scopes(#[case] permission: Permission, #[case] row: [bool; 5]) {
    let scopes = [
        ScopeName::AnalyticsRead,
        ScopeName::AppsRead,
        ScopeName::AppsWrite,
        ScopeName::KeysWrite,
        ScopeName::MembersWrite,
    ];
    assert_eq!(scopes.map(|scope| permission.grants(scope)), row);
}

#[rstest]
#[case::live_full(Permission::Full, Environment::Live, Ok(()))]
#[case::test_full(Permission::Full, Environment::Test, Err(AccessDenied::LiveOnly))]
#[case::live_read_only(
    Permission::ReadOnly,
    Environment::Live,
    Err(AccessDenied::InsufficientPermission)
)]
#[case::permission_is_checked_before_environment(
    Permission::Analytics,
    Environment::Test,
    Err(AccessDenied::InsufficientPermission)
)]
fn only_full_live_keys_may_write(
    #[case] permission: Permission,
    #[case] environment: Environment,
    #[case] expected: Result<(), AccessDenied>,
) {
    let key = ApiKey {
        permission,
        environment,
        ..key::tests::any_key()
    };
    assert_eq!(authorize::<AppsWrite>(&key, CLIENT).map(|_| ()), expected);
}

#[rstest]
#[case::live_full(Permission::Full, Environment::Live, true)]
#[case::test_full(Permission::Full, Environment::Test, true)]
#[case::read_only(Permission::ReadOnly, Environment::Test, false)]
#[case::analytics(Permission::Analytics, Environment::Live, false)]
fn full_keys_may_erase_in_their_environment(
    #[case] permission: Permission,
    #[case] environment: Environment,
    #[case] expected: bool,
) {
    let key = ApiKey {
        permission,
        environment,
        ..key::tests::any_key()
    };
    let erases = authorize::<PeopleErase>(&key, CLIENT);
    assert_eq!(erases.is_ok(), expected);
    assert!(erases.is_err() || erases.unwrap().environment() == environment);
}

#[test]
fn a_test_key_reads_its_own_environment() {
    let key = ApiKey {
        environment: Environment::Test,
        ..key::tests::any_key()
    };
    let caller = authorize::<AnalyticsRead>(&key, CLIENT).unwrap();
    assert_eq!(caller.environment(), Environment::Test);
    assert_eq!(caller.organization(), key.organization);
}

#[test]
fn permissions_round_trip_and_accept_the_cli_spelling() {
    for permission in Permission::ALL {
        assert_eq!(Permission::parse(permission.as_str()), Some(*permission));
    }
    assert_eq!(Permission::parse("read-only"), Some(Permission::ReadOnly));
    assert_eq!(Permission::parse("root"), None);
}
