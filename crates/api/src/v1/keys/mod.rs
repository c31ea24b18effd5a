//! `/api/v1/keys`.

pub(super) mod create;
pub(super) mod delete;
pub(super) mod get;
pub(super) mod list;
pub(super) mod rotate;

mod shape;

use crate::fields::{Fields, described_body, integer_in, text_as};
use std::time::Duration;
use tributary_domain::access::key_management::{KEY_OVERLAP_HOURS_DEFAULT, KEY_OVERLAP_HOURS_MAX};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::time::{Timestamp, parse_moment};

described_body! {
    /// A new API key.
    NewKeyFields("KeyFields") = crate::fields::key::read
}

described_body! {
    /// How to rotate a key. All fields are optional; send `{}` for the defaults.
    RotationFields("KeyRotationFields") = read_rotation
}

/// Reads how long the old key stays valid, and the expiry of its successor.
fn read_rotation(fields: &mut Fields<'_>) -> (Duration, Change<Timestamp>) {
    let overlap = fields.optional(
        "overlapHours",
        integer_in(0..=i64::from(KEY_OVERLAP_HOURS_MAX)).about(
            "Hours for which the old key stays valid; 0 ends it at once. Default: 24. An earlier \
             expiry stays.",
        ),
    );
    let expiry = fields.change(
        "expiresAt",
        text_as(parse_moment).format("date-time").about(
            "When the successor ends; null for never. Default: when the old key would have ended.",
        ),
    );
    let hours = overlap.and_then(|hours| u64::try_from(hours).ok());
    let hours = hours.unwrap_or_else(|| u64::from(KEY_OVERLAP_HOURS_DEFAULT));
    (Duration::from_hours(hours), expiry)
}
