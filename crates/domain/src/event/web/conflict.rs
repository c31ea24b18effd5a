//! Finds the fields in which two payloads with the same `eventId` differ.

use super::{Payload, WebEvent, WebEventKind};
use crate::erasure::is_pseudonym;
use crate::event::Event;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::money::Amount;

/// The event that already uses an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingEvent {
    /// Fingerprint of its payload.
    pub fingerprint: Digest,
    /// The stored event; `None` after retention removed it.
    pub event: Option<Box<Event>>,
}

/// Result of comparing a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Same,
    Different,
    /// The stored event does not contain this value.
    NotStored,
}

impl Comparison {
    fn of<T: PartialEq>(stored: T, sent: T) -> Self {
        if stored == sent {
            Self::Same
        } else {
            Self::Different
        }
    }
}

/// Returns the fields that differ from the accepted payload, without their values. Values that are
/// not stored are compared through the fingerprint. If erasure removed several values, all their
/// fields are named, because the fingerprint cannot tell which one differs.
pub(super) fn differing_fields(web_event: &WebEvent, before: &ExistingEvent) -> Faults {
    let mut faults = Faults::new();
    let Some(stored) = &before.event else {
        return faults;
    };
    let compared = compare(web_event, stored);
    // The accepted click text is not stored. If the click differs, so does the fingerprint, which
    // then proves nothing about the other fields.
    let unknown_differ = compared.click != Comparison::Different
        && stored_payload(web_event, stored, &compared).fingerprint() != before.fingerprint;
    for (field, comparison) in compared.fields() {
        let differs = match comparison {
            Comparison::Same => false,
            Comparison::Different => true,
            Comparison::NotStored => unknown_differ,
        };
        if differs {
            let message = "Differs from the accepted event.";
            faults.add(field, Problem::new(FaultCode::Different, message));
        }
    }
    faults
}

/// One comparison per field.
struct FieldComparisons {
    click: Comparison,
    device: Comparison,
    occurred_at: Comparison,
    kind: Comparison,
    amount: Comparison,
    currency: Comparison,
    source_url: Comparison,
    parent: Comparison,
    email: Comparison,
}

impl FieldComparisons {
    const fn fields(&self) -> [(&'static str, Comparison); 9] {
        [
            ("arClickId", self.click),
            ("deviceId", self.device),
            ("timestampMs", self.occurred_at),
            ("eventType", self.kind),
            ("revenue", self.amount),
            ("currency", self.currency),
            ("sourceUrl", self.source_url),
            ("originalTransactionId", self.parent),
            ("emailSha256", self.email),
        ]
    }
}

fn compare(web_event: &WebEvent, stored: &Event) -> FieldComparisons {
    let website = stored.website.as_deref();
    let erased = stored.device.as_ref().is_none_or(is_pseudonym);
    let unless_erased = |comparison| {
        if erased {
            Comparison::NotStored
        } else {
            comparison
        }
    };
    let kind = WebEventKind::parse(&stored.name);
    // A renewal or refund is credited to the click of its payment, so its own click is not stored.
    let has_own_click = kind.is_some_and(|kind| !kind.has_parent());
    let click = stored.credit.as_ref().and_then(|credit| credit.click);
    let revenue = stored.revenue.as_ref();
    FieldComparisons {
        click: match click {
            Some(click) if has_own_click => Comparison::of(Some(click), web_event.click),
            _ => Comparison::NotStored,
        },
        device: unless_erased(Comparison::of(
            stored.device.as_ref(),
            Some(&web_event.device),
        )),
        occurred_at: Comparison::of(stored.occurred_at, web_event.occurred_at),
        kind: Comparison::of(kind, Some(web_event.kind)),
        amount: Comparison::of(
            revenue.map_or(Amount::ZERO, |revenue| revenue.amount),
            web_event.amount.unwrap_or_default(),
        ),
        // Without an amount the currency is not stored.
        currency: revenue.map_or(Comparison::NotStored, |revenue| {
            Comparison::of(revenue.currency, web_event.currency)
        }),
        source_url: unless_erased(Comparison::of(
            website.map(|website| website.source_url.as_str()),
            Some(&web_event.source_url),
        )),
        parent: Comparison::of(
            website.and_then(|website| website.parent.as_deref()),
            web_event.parent.as_deref(),
        ),
        email: unless_erased(Comparison::of(
            website.and_then(|website| website.email_sha256.as_deref()),
            web_event.email_sha256.as_deref(),
        )),
    }
}

/// Returns the stored payload. Values that are not stored are taken from the new payload.
fn stored_payload<'a>(
    web_event: &'a WebEvent,
    stored: &'a Event,
    compared: &FieldComparisons,
) -> Payload<'a> {
    let sent = web_event.payload();
    let website = stored.website.as_deref();
    let revenue = stored.revenue.as_ref();
    let is_stored = |comparison| comparison != Comparison::NotStored;
    Payload {
        device: match &stored.device {
            Some(device) if is_stored(compared.device) => device.as_str(),
            _ => sent.device,
        },
        occurred_at: stored.occurred_at,
        kind: &stored.name,
        amount: revenue.map_or(0, |revenue| revenue.amount.micros()),
        currency: match revenue.and_then(|revenue| revenue.currency.as_ref()) {
            currency if is_stored(compared.currency) => currency.map_or("", Currency::as_str),
            _ => sent.currency,
        },
        source_url: match website {
            Some(website) if is_stored(compared.source_url) => &website.source_url,
            _ => sent.source_url,
        },
        parent: website
            .and_then(|website| website.parent.as_deref())
            .unwrap_or_default(),
        email_sha256: match website.and_then(|website| website.email_sha256.as_deref()) {
            email if is_stored(compared.email) => email.unwrap_or_default(),
            _ => sent.email_sha256,
        },
        click_text: sent.click_text,
    }
}
