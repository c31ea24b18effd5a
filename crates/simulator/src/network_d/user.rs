//! Checks `user`: the person's identifiers.

use crate::validation::{BodyNode, Violations};

/// Maximum length of a list. The network uses the first three entries.
const ENTRIES_MAX: usize = 100;
const HASH_LISTS: &[&str] = &[
    "emails_sha256",
    "phone_numbers_sha256",
    "external_ids_sha256",
    "first_names_sha256",
    "last_names_sha256",
];
const TEXT_LISTS: &[&str] = &["regions", "postal_codes", "cities", "countries"];
const FIELDS: &[&str] = &[
    "emails_sha256",
    "phone_numbers_sha256",
    "external_ids_sha256",
    "first_names_sha256",
    "last_names_sha256",
    "regions",
    "postal_codes",
    "cities",
    "countries",
    "obref",
    "android_advertising_id",
    "ip_address",
    "user_agent",
];
/// Fields that identify a person. The IP address and user agent are not enough.
const STRONG: &[&str] = &[
    "emails_sha256",
    "phone_numbers_sha256",
    "external_ids_sha256",
    "obref",
];

/// Checks the user, and returns whether a person can be identified.
pub(super) fn check(user: &BodyNode<'_, '_>, violations: &mut Violations) -> bool {
    if !user.object(FIELDS, violations) {
        return false;
    }
    for list in HASH_LISTS.iter().filter_map(|one| user.get(one)) {
        list.each(ENTRIES_MAX, violations, |one, violations| {
            one.hash(violations)
        });
    }
    for list in TEXT_LISTS.iter().filter_map(|one| user.get(one)) {
        list.each(ENTRIES_MAX, violations, |one, violations| {
            one.text(violations)
        });
    }
    for text in ["obref", "user_agent"]
        .into_iter()
        .filter_map(|one| user.get(one))
    {
        text.text(violations);
    }
    if let Some(ip) = user.get("ip_address") {
        ip.ip(violations);
    }
    let device = user.get("android_advertising_id");
    let device = device.and_then(|one| one.uuid(violations));
    // An all-zero id means that the user has disabled the advertising id.
    let is_device = device.is_some_and(|text| text.bytes().any(|byte| !b"0-".contains(&byte)));
    is_device || STRONG.iter().any(|one| user.has(one))
}
