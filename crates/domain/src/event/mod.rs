//! Events: what people did, from one of three sources.

pub mod duplicate;
pub mod first_payment;
#[cfg(test)]
mod memory;
pub mod name;
pub mod sdk;
pub mod web;

use crate::access::Environment;
use crate::attribution::{CreditedNetwork, MatchType};
use crate::device::{DeviceKey, Platform, UserKey};
use crate::forwarding::SkipReason;
use crate::integration::Network;
use crate::ledger::Revenue;
use crate::link::Campaign;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How far ahead of its arrival an event's time may be. Clocks differ; later ones are clamped.
pub const FUTURE_SKEW_MAX: Duration = Duration::from_mins(10);
/// Bytes of an event's parameters, as JSON.
pub const PARAMS_BYTES_MAX: usize = 16 * 1_024;

/// Where an event came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventSource {
    /// The app's SDK.
    Sdk,
    /// A billing provider.
    Billing,
    /// A verified website.
    Web,
}

crate::keywords! {
    EventSource {
        Sdk => "sdk",
        Billing => "billing",
        Web => "web",
    }
}

/// The source whose events are credited to the click that they name themselves. Whatever is decided about the
/// device that they happened on, they stay where they are.
pub const SELF_CREDITED_SOURCE: EventSource = EventSource::Web;

/// What an event is credited to: the attribution of its device at the time, as far as events need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credit {
    /// Who.
    pub network: CreditedNetwork,
    /// By what the install was matched.
    pub match_type: MatchType,
    /// Which link.
    pub link: Option<LinkId>,
    /// Which click.
    pub click: Option<ClickId>,
    /// Campaign, ad set and ad.
    pub campaign: Campaign,
}

/// What only website events have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebEventDetails {
    /// The page.
    pub source_url: String,
    /// The sender's id of the payment that it belongs to.
    pub parent: Option<String>,
    /// Hash of the person's address.
    pub email_sha256: Option<String>,
}

/// The names of billing events that are payments.
pub const BILLING_PAYMENTS: [&str; 3] = ["purchase", "subscribe", "renewal"];

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Our id. Its time is the event's own, so that the log is read in the order of ids.
    pub id: EventId,
    /// The id that its sender gave. Unique per app, environment and source.
    pub external_id: String,
    /// Of which app.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Where it came from.
    pub source: EventSource,
    /// Its name.
    pub name: String,
    /// How the sender spelled the name, where that differs.
    pub original_name: Option<String>,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// When it arrived.
    pub received_at: Timestamp,
    /// On which device.
    pub device: Option<DeviceKey>,
    /// By whom, in the app's own words.
    pub user: Option<UserKey>,
    /// What it ran on.
    pub platform: Option<Platform>,
    /// Two letters.
    pub country: Option<String>,
    /// The money, where it carries any.
    pub revenue: Option<Revenue>,
    /// What it is credited to; nothing for a device nobody configured.
    pub credit: Option<Credit>,
    /// Whatever else the sender said, as JSON text.
    pub params: Option<String>,
    /// Whether it is the device's first counted payment.
    pub first_payment: bool,
    /// Whether the service recorded it itself: the one `install` of a device.
    pub is_service_install: bool,
    /// The verified event that reports the same. Such an event does not count and is not forwarded.
    pub duplicate_of: Option<EventId>,
    /// The earlier event that reports the same. Deduplication ids are derived from its id.
    pub dedup_root: Option<EventId>,
    /// The networks that do not hear of it, and why.
    pub skipped: Vec<(Network, SkipReason)>,
    /// Where on a website it happened. Boxed: most events are of apps.
    pub website: Option<Box<WebEventDetails>>,
}

impl Event {
    /// Applies today's rule of income to the amount of a stored SDK event. Returns whether that changed it.
    pub fn reassess_revenue(&mut self, revenue_events: &[String]) -> bool {
        let Some(revenue) = self.revenue.take() else {
            return false;
        };
        let before = revenue.uncounted;
        let after = match self.source {
            EventSource::Sdk => {
                revenue.reclassified(name::money_kind(self.source, &self.name, revenue_events))
            }
            EventSource::Billing | EventSource::Web => revenue,
        };
        let changed = after.uncounted != before;
        self.first_payment &= after.uncounted.is_none();
        self.revenue = Some(after);
        changed
    }

    /// Whether it is the install of its device. An `install` that a client sent is an event like any other.
    pub fn is_install(&self) -> bool {
        self.is_service_install && self.name == name::INSTALL
    }

    /// Whether it is a payment that counts. A device's earliest one by id, so by its own time, is its first payment.
    pub fn is_payment(&self) -> bool {
        let revenue = self.revenue.as_ref();
        let counts = revenue.is_some_and(|it| it.counted_usd() > Amount::ZERO);
        // A refund that was taken back is positive as well.
        let pays =
            self.source != EventSource::Billing || BILLING_PAYMENTS.contains(&self.name.as_str());
        counts && pays
    }

    /// The device whose payment it is, if it counts. A placeholder is not a device.
    pub fn payer(&self) -> Option<&DeviceKey> {
        let device = self.device.as_ref().filter(|key| !key.is_placeholder());
        device.filter(|_| self.is_payment())
    }

    /// Whether it is a payment that is earlier than what was the device's first one so far. The flag has to move then.
    pub fn displaces_first_payment(&self, first: Option<EventId>) -> bool {
        self.payer().is_some() && first.is_some_and(|first| self.id < first)
    }

    /// The id that its deduplication ids are derived from.
    pub fn root(&self) -> EventId {
        self.dedup_root.unwrap_or(self.id)
    }

    /// When networks are told that it happened. Stores charge ahead of a period; nobody hears of the future.
    pub fn conversion_time(&self) -> Timestamp {
        match self.source {
            EventSource::Billing => self.occurred_at.min(self.received_at),
            EventSource::Sdk | EventSource::Web => self.occurred_at,
        }
    }
}

/// An app, an environment and an id that a sender gave. All sources share the ids.
pub type SharedId<'a> = (AppId, Environment, &'a str);

/// The id that a sender gave to an event, to be claimed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventKey<'a> {
    /// Of which app.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Whose id it is.
    pub source: EventSource,
    /// The id.
    pub external_id: &'a str,
    /// Our id of the event.
    pub event: EventId,
    /// Fingerprint of the payload, for senders who must not use an id for two payloads.
    pub fingerprint: Option<&'a Digest>,
}

impl<'a> EventKey<'a> {
    /// Returns the key of an event.
    pub fn of(event: &'a Event, fingerprint: Option<&'a Digest>) -> Self {
        Self {
            app: event.app,
            environment: event.environment,
            source: event.source,
            external_id: &event.external_id,
            event: event.id,
            fingerprint,
        }
    }
}

/// Which events of the log are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// Of this name.
    pub name: Option<String>,
    /// Of this id, given by the sender.
    pub external_id: Option<String>,
    /// Of this device.
    pub device: Option<DeviceKey>,
    /// Of this person, in the app's own words.
    pub user: Option<UserKey>,
    /// From here.
    pub source: Option<EventSource>,
    /// Credited to this network.
    pub network: Option<CreditedNetwork>,
    /// Credited to this link.
    pub link: Option<LinkId>,
    /// Not before.
    pub from: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
}

/// Events that one page of the log looks through for those that no index finds. Whoever asks is told how far it came.
pub const EVENTS_SCANNED_MAX: u32 = 20_000;

impl EventFilter {
    /// Whether an index leads to every event that fits. Otherwise a page looks through at most
    /// [`EVENTS_SCANNED_MAX`].
    pub const fn is_indexed(&self) -> bool {
        self.external_id.is_some()
            || (self.source.is_none() && self.network.is_none() && self.link.is_none())
    }
}
