//! Erasure of a user: what remains of a device, its events, clicks and subscriptions.
//!
//! Reports are computed from rows, so the rows stay, without anything that identifies the user. The
//! device continues under a random pseudonym. The rows keep what reports require (name, time,
//! money, credit, platform, country) and what prevents double counting (the sender's ids).
//!
//! A store that erases many events at once clears columns in SQL. The result must be the same as
//! that of [`Erasure::erase_event`].

mod reach;
mod subscription;
mod token;
mod traces;

pub use reach::{ErasureReach, ErasureRequester};
pub use subscription::continues_erased_subscription;
pub use token::{ERASE_TOKEN_CHARS, EraseToken, check_erase_proof, may_have_erase_token};
pub use traces::{ErasedChain, Trace};

use crate::click::Click;
use crate::device::{Consent, Device, DeviceKey};
use crate::event::{Event, WebEventDetails};
use crate::install::Attribution;
use crate::personal_data::PersonIds;
use crate::retention;

/// Prefix of every pseudonym.
const PREFIX: &str = "erased-";

/// Returns the pseudonym of an erased device.
pub fn pseudonym(random: [u8; 16]) -> DeviceKey {
    let random = uuid::Builder::from_random_bytes(random).into_uuid();
    DeviceKey::stored(format!("{PREFIX}{random}"))
}

/// Returns whether a device id is the pseudonym of an erased device. Events from such a device are
/// not sent to networks, and its subscriptions stay with it.
pub fn is_pseudonym(device: &DeviceKey) -> bool {
    let random = device.as_str().strip_prefix(PREFIX);
    random.is_some_and(|text| {
        // Requires the exact form, because a client's own ids may have the same prefix.
        uuid::Uuid::try_parse(text).is_ok_and(|random| random.to_string() == text)
    })
}

/// Device and user ids to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Device key.
    pub device: DeviceKey,
    /// Pseudonym that replaces the device key.
    pub pseudonym: DeviceKey,
    /// The device, and the ids that are erased with it.
    pub person: PersonIds,
}

impl Erasure {
    /// Returns what remains of the device.
    #[must_use]
    pub fn erase_device(&self, device: Device) -> Device {
        Device {
            key: self.pseudonym.clone(),
            consent: Consent::default(),
            ..retention::redact_device(device)
        }
    }

    /// Returns what remains of the attribution of the device's install: the credit and the
    /// one-sentence explanation.
    #[must_use]
    pub fn erase_attribution(&self, attribution: Attribution) -> Attribution {
        retention::redact_attribution(attribution)
    }

    /// Returns what remains of one of the device's events, or of an event with one of the erased
    /// user ids and no other device.
    #[must_use]
    pub fn erase_event(&self, event: Event) -> Event {
        let website = event.website.map(|website| {
            Box::new(WebEventDetails {
                source_url: String::new(),
                parent: website.parent,
                email_sha256: None,
            })
        });
        Event {
            device: event.device.map(|_| self.pseudonym.clone()),
            user: None,
            params: None,
            consent: None,
            website,
            ..event
        }
    }

    /// Returns what remains of another device's event that names one of the users: everything but the
    /// user id. Such events are left when a device's claim of the user is no longer used.
    #[must_use]
    pub fn erase_user_of_event(&self, event: Event) -> Event {
        Event {
            user: event.user.filter(|user| !self.person.users.contains(user)),
            ..event
        }
    }

    /// Returns what remains of one of the user's clicks.
    #[must_use]
    pub fn erase_click(&self, click: Click) -> Click {
        retention::redact_click(click)
    }
}

#[cfg(test)]
mod tests;
