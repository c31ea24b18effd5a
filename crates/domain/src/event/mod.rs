//! Events: user actions reported by one of three sources.

pub mod duplicate;
pub mod first_payment;
pub mod import;
#[cfg(test)]
mod memory;
pub mod name;
pub mod sdk;
pub mod web;

use crate::access::Environment;
use crate::attribution::{CreditedNetwork, HoldState, MatchType};
use crate::device::{Consent, DeviceKey, Platform, UserKey};
use crate::forwarding::SkipReason;
use crate::integration::Network;
use crate::ledger::Revenue;
use crate::link::Campaign;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How far an event's time may lie after its arrival, because clocks differ. Later times are
/// clamped.
pub const FUTURE_SKEW_MAX: Duration = Duration::from_mins(10);
/// Maximum size of an event's parameters in bytes of JSON.
pub const PARAMS_BYTES_MAX: usize = 16 * 1_024;

/// Source that reported an event.
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

/// The source whose events are credited to the click that they name. These events keep their credit
/// even if the attribution of their device changes.
pub const SELF_CREDITED_SOURCE: EventSource = EventSource::Web;

/// The network, link and campaign an event counts for, copied from its device's attribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credit {
    /// The credited network.
    pub network: CreditedNetwork,
    /// How the install was matched.
    pub match_type: MatchType,
    /// The credited link.
    pub link: Option<LinkId>,
    /// The credited click.
    pub click: Option<ClickId>,
    /// Campaign, ad set and ad.
    pub campaign: Campaign,
    /// State of the install's hold; `None` if the install was never held.
    pub hold: Option<HoldState>,
}

/// Fields that only web events have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebEventDetails {
    /// URL of the page where the event happened.
    pub source_url: String,
    /// The sender's id of the payment that this renewal or refund belongs to.
    pub parent: Option<String>,
    /// SHA-256 of the user's normalised email address.
    pub email_sha256: Option<String>,
}

/// Names of billing events that are payments.
pub const BILLING_PAYMENTS: [&str; 3] = ["purchase", "subscribe", "renewal"];

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Internal id. It starts with the event's time, so id order is time order.
    pub id: EventId,
    /// The sender's id. Unique per app, environment and source.
    pub external_id: String,
    /// App id.
    pub app: AppId,
    /// Live or test environment.
    pub environment: Environment,
    /// Source that reported the event.
    pub source: EventSource,
    /// Canonical name.
    pub name: String,
    /// The sender's spelling of the name, if it differs.
    pub original_name: Option<String>,
    /// Time of the event.
    pub occurred_at: Timestamp,
    /// Time of arrival.
    pub received_at: Timestamp,
    /// The device.
    pub device: Option<DeviceKey>,
    /// User id assigned by the app.
    pub user: Option<UserKey>,
    /// Platform of the device.
    pub platform: Option<Platform>,
    /// Two-letter country code.
    pub country: Option<String>,
    /// Revenue, if the event has an amount.
    pub revenue: Option<Revenue>,
    /// The credit; `None` for a device that never called `configure`.
    pub credit: Option<Credit>,
    /// Custom parameters as JSON text.
    pub params: Option<String>,
    /// Whether this is the device's first counted payment.
    pub first_payment: bool,
    /// Whether this is the `install` event that the service itself recorded for the device.
    pub is_service_install: bool,
    /// The verified event that this one duplicates. A duplicate neither counts nor is forwarded.
    pub duplicate_of: Option<EventId>,
    /// The earlier event that reports the same occurrence. The deduplication ids are derived from
    /// its id.
    pub dedup_root: Option<EventId>,
    /// The user's consent when the event was tracked; `None` if the sender reports none with its
    /// events.
    pub consent: Option<Consent>,
    /// Networks that the event is not forwarded to, with the reason.
    pub skipped: Vec<(Network, SkipReason)>,
    /// Web-only fields. Boxed because most events come from apps.
    pub website: Option<Box<WebEventDetails>>,
}

impl Event {
    /// Applies the current income rules to a stored SDK event. Returns whether the event changed.
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

    /// Returns the state of the hold on the install that the event is credited to.
    pub fn hold(&self) -> Option<HoldState> {
        self.credit.as_ref()?.hold
    }

    /// Returns whether this is the device's install. An `install` sent by a client is an ordinary
    /// event.
    pub fn is_install(&self) -> bool {
        self.is_service_install && self.name == name::INSTALL
    }

    /// Returns whether this is a counted payment. A device's first payment is the earliest one by
    /// id.
    pub fn is_payment(&self) -> bool {
        let revenue = self.revenue.as_ref();
        let counts = revenue.is_some_and(|it| it.counted_usd() > Amount::ZERO);
        // A reversed refund is positive, too, but not a payment.
        let pays =
            self.source != EventSource::Billing || BILLING_PAYMENTS.contains(&self.name.as_str());
        counts && pays
    }

    /// Returns the paying device if the payment counts and the device id is not a placeholder.
    pub fn payer(&self) -> Option<&DeviceKey> {
        let device = self.device.as_ref().filter(|key| !key.is_placeholder());
        device.filter(|_| self.is_payment())
    }

    /// Returns whether this is a payment earlier than the device's current first payment, so that
    /// the first-payment flag must move.
    pub fn displaces_first_payment(&self, first: Option<EventId>) -> bool {
        self.payer().is_some() && first.is_some_and(|first| self.id < first)
    }

    /// Returns the id that the event's deduplication ids are derived from.
    pub fn root(&self) -> EventId {
        self.dedup_root.unwrap_or(self.id)
    }

    /// Returns the consent that holds for the event, given the device's current consent: the
    /// stricter of both. A later grant therefore does not apply to an event of a user who refused,
    /// and a later refusal applies to all events.
    pub fn effective_consent(&self, of_device: Consent) -> Consent {
        self.consent
            .map_or(of_device, |when_tracked| when_tracked.stricter(of_device))
    }

    /// Returns the event time that is sent to networks. Stores may charge before a period starts,
    /// so a billing event's time is capped at its arrival.
    pub fn conversion_time(&self) -> Timestamp {
        match self.source {
            EventSource::Billing => self.occurred_at.min(self.received_at),
            EventSource::Sdk | EventSource::Web => self.occurred_at,
        }
    }
}

/// App, environment and a sender's event id. All sources share one id space.
pub type SharedId<'a> = (AppId, Environment, &'a str);

/// A sender's event id, to be claimed for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventKey<'a> {
    /// App id.
    pub app: AppId,
    /// Live or test environment.
    pub environment: Environment,
    /// The source that chose the id.
    pub source: EventSource,
    /// The sender's id.
    pub external_id: &'a str,
    /// Internal id of the event.
    pub event: EventId,
    /// Fingerprint of the payload, for sources whose ids must not be reused with another payload.
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

/// Filter for the event log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// Event name.
    pub name: Option<String>,
    /// The sender's event id.
    pub external_id: Option<String>,
    /// Device.
    pub device: Option<DeviceKey>,
    /// User id assigned by the app.
    pub user: Option<UserKey>,
    /// Source.
    pub source: Option<EventSource>,
    /// Credited network.
    pub network: Option<CreditedNetwork>,
    /// Credited link.
    pub link: Option<LinkId>,
    /// Network that the event was not sent to, and the reason.
    pub not_sent: Option<(Network, SkipReason)>,
    /// Start of the time range, inclusive.
    pub from: Option<Timestamp>,
    /// End of the time range, exclusive.
    pub until: Option<Timestamp>,
}

/// Maximum number of events that one page scans for a filter without an index. The response says
/// how far the scan got.
pub const EVENTS_SCANNED_MAX: u32 = 20_000;

impl EventFilter {
    /// Returns whether an index covers the filter. Without one, a page scans at most
    /// [`EVENTS_SCANNED_MAX`] events.
    pub const fn is_indexed(&self) -> bool {
        self.external_id.is_some()
            || (self.source.is_none()
                && self.network.is_none()
                && self.link.is_none()
                && self.not_sent.is_none())
    }
}
