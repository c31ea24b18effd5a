//! `/api/v1/apps/{appId}/sdk-keys`.

pub(super) mod list;
pub(super) mod revoke;
pub(super) mod rotate;

mod shape;

use crate::fields::{Fields, choice, described_body, integer_in, text_as};
use std::time::Duration;
use tributary_domain::access::Environment;
use tributary_domain::app::{
    SDK_KEY_OVERLAP_DAYS_DEFAULT, SDK_KEY_OVERLAP_DAYS_MAX, parse_sdk_key,
};

described_body! {
    /// How to rotate an SDK key.
    SdkKeyRotationFields("SdkKeyRotationFields") = read_rotation
}

described_body! {
    /// The SDK key to revoke.
    SdkKeyRevocationFields("SdkKeyRevocationFields") = read_revocation
}

/// Reads the environment of the key, and how long the replaced key stays valid.
fn read_rotation(fields: &mut Fields<'_>) -> Option<(Environment, Duration)> {
    let environment = fields.required(
        "environment",
        choice(Environment::ALL, Environment::as_str).about("`live` or `test`."),
    );
    let overlap = fields.optional(
        "overlapDays",
        integer_in(0..=i64::from(SDK_KEY_OVERLAP_DAYS_MAX)).about(
            "Days for which the replaced key stays valid, because installed apps carry it; 0 ends it \
             at once. Default: 90.",
        ),
    );
    let days = overlap.and_then(|days| u64::try_from(days).ok());
    let days = days.unwrap_or_else(|| u64::from(SDK_KEY_OVERLAP_DAYS_DEFAULT));
    Some((environment?, Duration::from_hours(24 * days)))
}

/// Reads the key to revoke.
fn read_revocation(fields: &mut Fields<'_>) -> Option<String> {
    fields.required(
        "key",
        text_as(parse_sdk_key).about("A replaced SDK key of the app."),
    )
}
