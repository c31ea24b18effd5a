//! Limits of an API key: the apps that it may access and the addresses that may use it.

use crate::vocabulary::address_range::AddressRange;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::AppId;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Maximum number of apps that a key is limited to. A key for more apps is a key for all of them.
pub const KEY_APPS_MAX: usize = 50;
/// Maximum number of address ranges that a key is limited to. Each request is compared with them.
pub const KEY_ADDRESSES_MAX: usize = 20;

/// Apps of the organization that a caller may access.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AppLimit {
    /// All apps, including new ones.
    #[default]
    All,
    /// These apps. Each request copies the limit, so it is shared.
    Only(Arc<BTreeSet<AppId>>),
}

impl AppLimit {
    /// Creates a limit to these apps.
    pub fn only(apps: impl IntoIterator<Item = AppId>) -> Self {
        Self::Only(Arc::new(apps.into_iter().collect()))
    }

    /// Returns whether the caller may access an app.
    pub fn allows(&self, app: AppId) -> bool {
        match self {
            Self::All => true,
            Self::Only(apps) => apps.contains(&app),
        }
    }

    /// Returns whether this limit allows everything that another one allows.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Only(_), Self::All) => false,
            (Self::Only(apps), Self::Only(others)) => others.is_subset(apps),
        }
    }

    /// Returns the apps that a list shows, optionally filtered by one app; `None` means all.
    pub fn narrowed_to(&self, app: Option<AppId>) -> Option<Vec<AppId>> {
        match (self, app) {
            (Self::All, None) => None,
            (_, Some(app)) => Some(self.allows(app).then_some(app).into_iter().collect()),
            (Self::Only(apps), None) => Some(apps.iter().copied().collect()),
        }
    }

    /// Returns the apps; `None` means all.
    pub fn apps(&self) -> Option<Vec<AppId>> {
        self.narrowed_to(None)
    }
}

/// Addresses that may use a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AddressLimit {
    /// All addresses.
    #[default]
    All,
    /// Addresses in one of these ranges.
    Only(BTreeSet<AddressRange>),
}

impl AddressLimit {
    /// Creates a limit to these ranges.
    pub fn only(ranges: impl IntoIterator<Item = AddressRange>) -> Self {
        Self::Only(ranges.into_iter().collect())
    }

    /// Returns whether an address may use the key.
    pub fn allows(&self, address: IpAddr) -> bool {
        match self {
            Self::All => true,
            Self::Only(ranges) => ranges.iter().any(|range| range.contains(address)),
        }
    }

    /// Returns whether each range of another limit is part of one range of this limit.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Only(_), Self::All) => false,
            (Self::Only(ranges), Self::Only(others)) => others
                .iter()
                .all(|other| ranges.iter().any(|range| range.covers(other))),
        }
    }

    /// Returns the ranges as text; `None` means all addresses.
    pub fn ranges(&self) -> Option<Vec<String>> {
        match self {
            Self::All => None,
            Self::Only(ranges) => Some(ranges.iter().map(ToString::to_string).collect()),
        }
    }
}

/// Limits of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyLimits {
    /// Apps that the key may access.
    pub apps: AppLimit,
    /// Addresses that may use the key.
    pub addresses: AddressLimit,
}

/// Parses an address range of a key's limit.
pub fn parse_address_range(text: &str) -> Result<AddressRange, Problem> {
    AddressRange::parse(text).map_err(|_| {
        let message = "Must be addresses such as 192.0.2.7, or ranges such as 192.0.2.0/24 or \
                       2001:db8::/48.";
        Problem::new(FaultCode::InvalidFormat, message)
    })
}

/// Parses the id of an app in a key's limit.
pub fn parse_app_id(text: &str) -> Result<AppId, Problem> {
    AppId::parse(text)
        .map_err(|_| Problem::new(FaultCode::InvalidFormat, "Must be app ids (app_…)."))
}

/// Rejects a limit to nothing: a key that no request can use is a mistake.
pub fn reject_empty<T>(values: Vec<T>) -> Result<Vec<T>, Problem> {
    if values.is_empty() {
        let message = "Name at least one, or omit the field for no limit.";
        return Err(Problem::new(FaultCode::TooShort, message));
    }
    Ok(values)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rstest::rstest;

    /// Returns a limit from digits, such as `12` for the apps 1 and 2; `*` means all.
    pub(crate) fn apps(text: &str) -> AppLimit {
        if text == "*" {
            return AppLimit::All;
        }
        AppLimit::only(text.bytes().map(|digit| AppId::from_bytes([digit; 16])))
    }

    /// Returns a limit from ranges separated by commas; `*` means all.
    pub(crate) fn addresses(text: &str) -> AddressLimit {
        if text == "*" {
            return AddressLimit::All;
        }
        let parse = |text| AddressRange::parse(text).unwrap();
        AddressLimit::only(text.split(',').map(parse))
    }

    #[rstest]
    #[case::all("*", "*", true)]
    #[case::all_covers_some("*", "12", true)]
    #[case::some_do_not_cover_all("12", "*", false)]
    #[case::fewer("12", "1", true)]
    #[case::the_same("12", "21", true)]
    #[case::another("12", "13", false)]
    #[case::none("1", "", true)]
    fn a_limit_covers_narrower_ones(#[case] one: &str, #[case] other: &str, #[case] covers: bool) {
        assert_eq!(apps(one).covers(&apps(other)), covers);
        for app in apps(other).apps().into_iter().flatten() {
            assert!(!covers || apps(one).allows(app));
        }
    }

    #[rstest]
    #[case::all("*", None, None)]
    #[case::filter("*", Some('1'), Some("1"))]
    #[case::limit("12", None, Some("12"))]
    #[case::filter_within_the_limit("12", Some('2'), Some("2"))]
    #[case::filter_outside_of_the_limit("12", Some('3'), Some(""))]
    fn a_list_shows_allowed_apps(
        #[case] limit: &str,
        #[case] filter: Option<char>,
        #[case] expected: Option<&str>,
    ) {
        let filter = filter.map(|digit| AppId::from_bytes([digit as u8; 16]));
        let expected = expected.map(|text| apps(text).apps().unwrap());
        assert_eq!(apps(limit).narrowed_to(filter), expected);
    }

    #[rstest]
    #[case::all("*", "*", true)]
    #[case::all_covers_some("*", "192.0.2.0/24", true)]
    #[case::some_do_not_cover_all("192.0.2.0/24", "*", false)]
    #[case::parts("192.0.2.0/24,2001:db8::/32", "192.0.2.7,2001:db8:1::/48", true)]
    #[case::one_outside("192.0.2.0/24", "192.0.2.7,198.51.100.7", false)]
    #[case::wider("192.0.2.0/25", "192.0.2.0/24", false)]
    fn address_limits_cover_narrower_ones(
        #[case] one: &str,
        #[case] other: &str,
        #[case] covers: bool,
    ) {
        assert_eq!(addresses(one).covers(&addresses(other)), covers);
    }

    #[rstest]
    #[case::no_limit("*", "203.0.113.9", true)]
    #[case::inside("192.0.2.0/24,2001:db8::/32", "192.0.2.9", true)]
    #[case::mapped("192.0.2.0/24", "::ffff:192.0.2.9", true)]
    #[case::inside_v6("192.0.2.0/24,2001:db8::/32", "2001:db8::9", true)]
    #[case::outside("192.0.2.0/24", "203.0.113.9", false)]
    fn addresses_are_checked(#[case] limit: &str, #[case] address: &str, #[case] allowed: bool) {
        assert_eq!(addresses(limit).allows(address.parse().unwrap()), allowed);
    }

    #[rstest]
    #[case("192.0.2.0/24", true)]
    #[case("192.0.2.0/33", false)]
    #[case("office", false)]
    fn ranges_are_parsed(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(parse_address_range(text).is_ok(), accepted);
    }
}
