//! Erasing a person: what of a device, its events, its clicks and its subscriptions remains.
//!
//! Sums stay, and they are made of rows: so the rows stay, and nothing in them says whose they were. A device goes on
//! under a pseudonym that is made of nothing but chance. What stays is what figures are made of (name, time, money,
//! credit, platform, country) and what keeps a thing from being counted twice (the sender's ids).
//!
//! A store that erases many events at once clears columns in SQL; what it leaves must be what [`Erasure::event`] says.

mod subscription;
mod traces;

pub use subscription::continues_erased_subscription;
pub use traces::{ErasedChain, Trace, billing_event_ids, clicks_to_erase, people_of};

use crate::attribution::{Decision, MatchMethod};
use crate::click::Click;
use crate::device::{AdvertisingId, Consent, Device, DeviceKey, UserKey};
use crate::event::{Event, WebEventDetails};
use crate::install::Attribution;
use crate::retention;
use crate::vocabulary::id::ClickId;
use std::collections::BTreeSet;

/// What every pseudonym begins with.
const PREFIX: &str = "erased-";

/// The name that an erased device goes on under.
pub fn pseudonym(random: [u8; 16]) -> DeviceKey {
    let random = uuid::Builder::from_random_bytes(random).into_uuid();
    DeviceKey::stored(format!("{PREFIX}{random}"))
}

/// Whether a device is an erased one. No network hears of it, and its subscriptions stay with it.
pub fn is_pseudonym(device: &DeviceKey) -> bool {
    let random = device.as_str().strip_prefix(PREFIX);
    random.is_some_and(|text| {
        // Only as it is written here: a client's own numbering may begin alike.
        uuid::Uuid::try_parse(text).is_ok_and(|random| random.to_string() == text)
    })
}

/// Who is erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The device.
    pub device: DeviceKey,
    /// What it is called from now on.
    pub pseudonym: DeviceKey,
    /// The ids of people that no other device goes by: all that bears them is erased along.
    pub people: Vec<UserKey>,
    /// The device's advertising ids.
    pub advertising: Vec<AdvertisingId>,
}

impl Erasure {
    /// What remains of the device.
    #[must_use]
    pub fn erase_device(&self, device: Device) -> Device {
        Device {
            key: self.pseudonym.clone(),
            consent: Consent::default(),
            ..retention::redact_device(device)
        }
    }

    /// What remains of the decision about its install: what it is credited to, and why in a sentence.
    #[must_use]
    pub fn erase_attribution(&self, attribution: Attribution) -> Attribution {
        retention::redact_attribution(attribution)
    }

    /// What remains of an event that is the device's, or is nobody's else and bears one of the people's ids.
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
            website,
            ..event
        }
    }

    /// What remains of a click that was the person's.
    #[must_use]
    pub fn erase_click(&self, click: Click) -> Click {
        retention::redact_click(click)
    }
}

/// The clicks that a decision proves to be the person's: the winner, and what was shown or found by an id. One that was
/// only like enough to be looked at is somebody else's.
fn clicks_of_person(decision: &Decision) -> BTreeSet<ClickId> {
    let considered = decision.candidates.iter();
    considered
        .filter(|one| one.method != MatchMethod::Probabilistic)
        .filter_map(|one| one.click)
        .chain(decision.click)
        .collect()
}

#[cfg(test)]
mod tests;
