//! The fields of a new API key.

use crate::{Fields, choice, text_as, text_list};
use tributary_domain::access::key::KeyDraft;
use tributary_domain::access::key_limits::{
    AddressLimit, AppLimit, KEY_ADDRESSES_MAX, KEY_APPS_MAX, KeyLimits, parse_address_range,
    parse_app_id, reject_empty,
};
use tributary_domain::access::{Environment, Permission};
use tributary_domain::vocabulary::text::{NAME_CHARS_MAX, Name};
use tributary_domain::vocabulary::time::parse_moment;

/// Reads a new key.
pub fn read(fields: &mut Fields<'_>) -> Option<KeyDraft> {
    let name = fields.required(
        "name",
        text_as(Name::parse)
            .size(1..=NAME_CHARS_MAX)
            .about("1–200 characters, such as the program that uses the key."),
    );
    let permission = fields.required(
        "permission",
        choice(Permission::ALL, Permission::as_str).about(
            "`full` (read and write, including keys), `read_only` or `analytics` (reports and \
             events). Not more than that of the key that makes the request.",
        ),
    );
    let environment = fields.optional(
        "environment",
        choice(Environment::ALL, Environment::as_str)
            .about("`live` or `test`. Default: `live`. A test key creates test keys only."),
    );
    let apps = fields.optional(
        "apps",
        text_list(KEY_APPS_MAX, parse_app_id)
            .then(reject_empty)
            .size(1..=KEY_APPS_MAX)
            .about(
                "Ids of the apps that the key may access; other apps are not found. Default: all \
                 apps, including new ones.",
            ),
    );
    let addresses = fields.optional(
        "addresses",
        text_list(KEY_ADDRESSES_MAX, parse_address_range)
            .then(reject_empty)
            .size(1..=KEY_ADDRESSES_MAX)
            .about(
                "Addresses and ranges that may use the key, such as `192.0.2.7`, `192.0.2.0/24` or \
                 `2001:db8::/48`. Requests from elsewhere get `address_not_allowed`. Default: all.",
            ),
    );
    let expires_at = fields.optional(
        "expiresAt",
        text_as(parse_moment)
            .format("date-time")
            .about("When the key ends, at most ten years from now. Default: never."),
    );
    Some(KeyDraft {
        name: name?,
        permission: permission?,
        environment: environment.unwrap_or(Environment::Live),
        limits: KeyLimits {
            apps: apps.map_or(AppLimit::All, AppLimit::only),
            addresses: addresses.map_or(AddressLimit::All, AddressLimit::only),
        },
        expires_at,
    })
}
