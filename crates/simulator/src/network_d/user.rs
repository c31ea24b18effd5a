//! `user`: whom an event is about.

use crate::validation::{BodyNode, Violations};

/// Entries of a list. The network uses the first three.
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
/// Address and user agent alone recognise nobody.
const STRONG: &[&str] = &[
    "emails_sha256",
    "phone_numbers_sha256",
    "external_ids_sha256",
    "obref",
];

/// Whether somebody can be recognised.
pub(super) fn check(user: &BodyNode<'_, '_>, found: &mut Violations) -> bool {
    if !user.object(FIELDS, found) {
        return false;
    }
    for list in HASH_LISTS.iter().filter_map(|one| user.get(one)) {
        list.each(ENTRIES_MAX, found, |one, found| one.hash(found));
    }
    for list in TEXT_LISTS.iter().filter_map(|one| user.get(one)) {
        list.each(ENTRIES_MAX, found, |one, found| one.text(found));
    }
    for text in ["obref", "user_agent"]
        .into_iter()
        .filter_map(|one| user.get(one))
    {
        text.text(found);
    }
    if let Some(ip) = user.get("ip_address") {
        ip.ip(found);
    }
    let device = user.get("android_advertising_id");
    let device = device.and_then(|one| one.uuid(found));
    // All zeros stand for nobody: the user has switched it off.
    let is_device = device.is_some_and(|text| text.bytes().any(|byte| !b"0-".contains(&byte)));
    is_device || STRONG.iter().any(|one| user.has(one))
}
