//! Verified web events: accepts or rejects a sent event and builds the event to record.
//!
//! The API contract fixes the order of checks: duplicate, click, origin, time, parent, refund
//! limit. The endpoint makes the checks before these (key, permission, environment, body, app, web
//! events enabled).

mod batch;
mod check;
mod conflict;
mod preview;

pub use batch::{
    AcceptedWebEvent, ExternalKey, PayingDevice, RecordedWebEvent, RefundTotals, RefundedPayment,
    Reservation, StoredWebClick, WebChanges, WebDecisions, WebFacts, decide,
};
pub use check::{WebEventFields, check};
pub use conflict::ExistingEvent;
pub use preview::{PreviewedClick, UncreditedReason, WebEventPreview, preview};

use super::duplicate::{EventReplacement, adopt_billing_root, demote};
use super::{Credit, Event, EventSource, WebEventDetails};
use crate::access::Environment;
use crate::attribution::{CreditedNetwork, MatchType};
use crate::click::Click;
use crate::device::{Consent, ContactHashes, DeviceKey, DeviceRef, Platform};
use crate::exchange::ConvertedAmount;
use crate::forwarding::plan::{Plan, PlanFacts, PlannedDelivery, plan};
use crate::integration::Integration;
use crate::ledger::{
    MoneyPolicy, ParentEvent, Receipt, Revenue, assess_revenue, refund, renewed_payment,
};
use crate::refusal::Refusal;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::id::{AppId, ClickId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::web_url::WebOrigin;
use std::sync::Arc;
use std::time::Duration;

/// Initial buffer size; enough for most payloads.
const FINGERPRINT_BYTES_USUAL: usize = 512;

/// How far before its click an event may be dated, because the website's clock may be slow.
const BEFORE_CLICK_MAX: Duration = Duration::from_mins(10);

/// Kind of web event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebEventKind {
    /// The initial payment.
    Purchase,
    /// A later payment for the same subscription.
    Renewal,
    /// A refund.
    Refund,
    /// An account was created.
    SignUp,
    /// A checkout was started.
    CheckoutStarted,
    /// A trial with a payment method started.
    StartTrial,
}

crate::keywords! {
    WebEventKind {
        Purchase => "purchase",
        Renewal => "renewal",
        Refund => "refund",
        SignUp => "sign_up",
        CheckoutStarted => "checkout_started",
        StartTrial => "start_trial",
    }
}

impl WebEventKind {
    /// Returns whether an event of this kind refers to an earlier payment.
    pub const fn has_parent(self) -> bool {
        matches!(self, Self::Renewal | Self::Refund)
    }
}

/// A validated web event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebEvent {
    /// App id.
    pub app: AppId,
    /// Internal id, which starts with the event's time.
    pub id: EventId,
    /// The sender's id (`eventId`).
    pub external_id: String,
    /// Click id text, as sent.
    pub click_text: String,
    /// The click; `None` if its signature is invalid or it belongs to another app.
    pub click: Option<ClickId>,
    /// The website's anonymous device id.
    pub device: DeviceKey,
    /// Time of the event.
    pub occurred_at: Timestamp,
    /// Kind of event.
    pub kind: WebEventKind,
    /// Amount; negative for a refund.
    pub amount: Option<Amount>,
    /// Currency of the amount.
    pub currency: Option<Currency>,
    /// Page URL, as stored.
    pub source_url: String,
    /// Page origin, normalised for comparison.
    pub origin: WebOrigin,
    /// The sender's id for the payment that this renewal or refund belongs to.
    pub parent: Option<String>,
    /// SHA-256 of the user's normalised email address.
    pub email_sha256: Option<String>,
    /// Time of arrival.
    pub received_at: Timestamp,
}

impl WebEvent {
    /// Returns a digest of the payload's values, which detects a different payload under the same
    /// id.
    pub fn fingerprint(&self) -> Digest {
        self.payload().fingerprint()
    }

    fn payload(&self) -> Payload<'_> {
        Payload {
            click_text: &self.click_text,
            device: self.device.as_str(),
            occurred_at: self.occurred_at,
            kind: self.kind.as_str(),
            amount: self.amount.map_or(0, Amount::micros),
            currency: self.currency.as_ref().map_or("", Currency::as_str),
            source_url: &self.source_url,
            parent: self.parent.as_deref().unwrap_or_default(),
            email_sha256: self.email_sha256.as_deref().unwrap_or_default(),
        }
    }

    /// Returns whether the event names itself as its parent, which can never become valid.
    fn names_itself(&self) -> bool {
        self.parent.as_ref() == Some(&self.external_id)
    }

    /// Returns the app and the sender's id.
    pub fn key(&self) -> ExternalKey<'_> {
        (self.app, &self.external_id)
    }

    /// Returns the app and the sender's id of the parent payment.
    pub fn parent_key(&self) -> Option<ExternalKey<'_>> {
        Some((self.app, self.parent.as_deref()?))
    }

    /// Returns the event's device.
    pub const fn device_ref(&self) -> DeviceRef<'_> {
        DeviceRef {
            app: self.app,
            environment: Environment::Live,
            key: &self.device,
        }
    }

    /// Returns amount, currency and day to convert. A refund uses its payment's rate.
    pub fn exchange_day(&self) -> Option<(Amount, Currency, Day)> {
        if self.kind == WebEventKind::Refund {
            return None;
        }
        Some((self.amount?, self.currency?, Day::of(self.occurred_at)))
    }
}

/// The values that a fingerprint covers.
struct Payload<'a> {
    click_text: &'a str,
    device: &'a str,
    occurred_at: Timestamp,
    kind: &'a str,
    /// Amount in millionths. A missing amount equals zero.
    amount: i64,
    currency: &'a str,
    source_url: &'a str,
    parent: &'a str,
    email_sha256: &'a str,
}

impl Payload<'_> {
    fn fingerprint(&self) -> Digest {
        let occurred_at = self.occurred_at.as_millis().to_be_bytes();
        let amount = self.amount.to_be_bytes();
        let parts: [&[u8]; 9] = [
            self.click_text.as_bytes(),
            self.device.as_bytes(),
            &occurred_at,
            self.kind.as_bytes(),
            &amount,
            self.currency.as_bytes(),
            self.source_url.as_bytes(),
            self.parent.as_bytes(),
            self.email_sha256.as_bytes(),
        ];
        let mut bytes = Vec::with_capacity(FINGERPRINT_BYTES_USUAL);
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        Digest::of(&bytes)
    }
}

/// Returns the fingerprint of a recorded event's payload. Recorded events contain all values of the
/// payload, except the text of the click id.
pub fn recorded_fingerprint(event: &Event, click_text: &str) -> Digest {
    let website = event.website.as_deref();
    let parent = website.and_then(|website| website.parent.as_deref());
    let email_sha256 = website.and_then(|website| website.email_sha256.as_deref());
    let revenue = event.revenue.as_ref();
    let payload = Payload {
        click_text,
        device: event.device.as_ref().map_or("", DeviceKey::as_str),
        occurred_at: event.occurred_at,
        kind: &event.name,
        amount: revenue.map_or(0, |revenue| revenue.amount.micros()),
        currency: revenue
            .and_then(|revenue| revenue.currency.as_ref())
            .map_or("", Currency::as_str),
        source_url: website.map_or("", |website| website.source_url.as_str()),
        parent: parent.unwrap_or_default(),
        email_sha256: email_sha256.unwrap_or_default(),
    };
    payload.fingerprint()
}

/// A click that an event names, with the current state of its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebClick {
    /// The click.
    pub click: Click,
    /// Whether the click's link redirects to a web page.
    pub is_web_funnel: bool,
    /// The origin that the click's link redirects to now.
    pub link_origin: Option<WebOrigin>,
}

/// Facts about one web event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct WebEventFacts {
    /// The accepted event with this id.
    existing: Option<ExistingEvent>,
    /// The click, if stored. Shared because other events may name it.
    click: Option<Arc<WebClick>>,
    /// The event's parent.
    parent: Option<ParentEvent>,
    /// The SDK event with this id.
    sdk_event: Option<Box<Event>>,
    /// A billing event that reported the same payment.
    billing_event: Option<Box<Event>>,
    /// The event's amount in USD.
    exchanged: Option<ConvertedAmount>,
    /// Whether the event's device has an earlier counted payment.
    has_paid: bool,
    /// The app's configured integrations.
    integrations: Arc<[Integration]>,
    /// Whether the click may be on a test link, because the event is only validated.
    accepts_test_click: bool,
}

/// Outcome for one web event.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WebAcceptance {
    /// The same event was accepted before.
    Duplicate,
    /// The event is new.
    Recorded(Box<WebRecord>),
}

/// An accepted event and its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WebRecord {
    /// The event.
    event: Event,
    /// Fingerprint of its payload.
    fingerprint: Digest,
    /// For a refund, the state of its payment after the refund.
    refunded: Option<Receipt>,
    /// Demotion of the SDK event with the same id.
    demotion: Option<Box<EventReplacement>>,
    /// Deliveries to plan.
    planned: Vec<PlannedDelivery>,
}

/// Accepts an event or returns why it is rejected.
fn accept(web_event: &WebEvent, facts: WebEventFacts) -> Result<WebAcceptance, Refusal> {
    let fingerprint = web_event.fingerprint();
    match &facts.existing {
        Some(before) if before.fingerprint == fingerprint => return Ok(WebAcceptance::Duplicate),
        Some(before) => {
            let fields = conflict::differing_fields(web_event, before);
            return Err(Refusal::EventIdConflict(fields));
        }
        None => {}
    }
    let click = facts.click.as_deref();
    let (click, own_credit) = verify_click(web_event, click, facts.accepts_test_click)?;
    check_time(web_event.occurred_at, click.clicked_at)?;
    let policy = MoneyPolicy::Count;
    let kind = super::name::money_kind(EventSource::Web, web_event.kind.as_str(), &[]);
    let amount = web_event.amount.filter(|_| web_event.currency.is_some());
    let exchanged = facts.exchanged;
    let parent = if web_event.names_itself() {
        Some(ParentEvent::NotAPayment)
    } else {
        facts.parent
    };
    let assess = |amount| assess_revenue(amount, web_event.currency, exchanged, policy, kind);
    let (revenue, credit, refunded) = match web_event.kind {
        WebEventKind::Refund => {
            let amount = web_event.amount.unwrap_or_default();
            let (revenue, payment) = refund(parent, amount, web_event.currency)?;
            (Some(revenue), payment.credit.clone(), Some(payment))
        }
        WebEventKind::Renewal => {
            let credit = renewed_payment(parent)?.credit;
            (amount.map(assess), credit, None)
        }
        _ => (amount.map(assess), own_credit, None),
    };
    let mut event = build_event(web_event, click, revenue, credit, facts.has_paid);
    let demotion = facts
        .sdk_event
        .and_then(|reported| demote(&mut event, *reported, &facts.integrations));
    if let Some(billed) = &facts.billing_event {
        adopt_billing_root(&mut event, billed);
    }
    let plan = plan_event(web_event, click, &event, &facts.integrations);
    event.skipped = plan.skipped;
    Ok(WebAcceptance::Recorded(Box::new(WebRecord {
        event,
        fingerprint,
        refunded,
        demotion: demotion.map(Box::new),
        planned: plan.planned,
    })))
}

fn plan_event(
    web_event: &WebEvent,
    click: &Click,
    event: &Event,
    integrations: &[Integration],
) -> Plan {
    let facts = PlanFacts {
        event,
        click: Some(click),
        network_click_id: None,
        consent: Consent::default(),
        matching: &ContactHashes {
            email: web_event.email_sha256.clone(),
            ..ContactHashes::default()
        },
        has_os_version: false,
        policy: MoneyPolicy::Count,
        now: web_event.received_at,
        lacks_attestation: false,
    };
    plan(&facts, integrations)
}

/// Rejects an event that is dated before its click. Either the time was sent in seconds, or the
/// event does not belong to the click.
fn check_time(occurred_at: Timestamp, clicked_at: Timestamp) -> Result<(), Refusal> {
    if occurred_at.plus(BEFORE_CLICK_MAX) >= clicked_at {
        return Ok(());
    }
    let message = "Must not be more than ten minutes before the click. Send it in milliseconds.";
    let mut faults = Faults::new();
    faults.add("timestampMs", Problem::new(FaultCode::OutOfRange, message));
    Err(Refusal::Invalid(faults))
}

/// Verifies that the click is stored, was not made by a bot, comes from one of the four networks,
/// and belongs to a link that redirects to the page's origin. Clicks on test links are rejected
/// unless the event is only validated.
fn verify_click<'a>(
    web_event: &WebEvent,
    web_click: Option<&'a WebClick>,
    accepts_test_click: bool,
) -> Result<(&'a Click, Credit), Refusal> {
    let web_click = web_click.filter(|web_click| {
        Some(web_click.click.id) == web_event.click
            && web_click.click.app == web_event.app
            && (web_click.click.bot.is_none() || web_click.click.is_test())
            && web_click.click.is_visible_to(Environment::Live)
    });
    let web_click = web_click.ok_or(Refusal::ClickNotVerified)?;
    if web_click.click.is_test() && !accepts_test_click {
        return Err(Refusal::TestClick);
    }
    let network = web_click
        .click
        .network
        .ok_or(Refusal::ClickNetworkUnsupported)?;
    // Stored origins are canonical, so they can be compared as text.
    let fits = |origin: Option<&str>| origin == Some(web_event.origin.as_str());
    let at_click = web_click.click.destination_origin.as_deref();
    let current = web_click.link_origin.as_ref().map(WebOrigin::as_str);
    if !web_click.is_web_funnel || !(fits(at_click) || fits(current)) {
        return Err(Refusal::OriginMismatch);
    }
    let credit = Credit {
        network: CreditedNetwork::Ad(network),
        match_type: MatchType::ClickId,
        link: Some(web_click.click.link),
        click: Some(web_click.click.id),
        campaign: web_click.click.campaign().clone(),
        // A web event belongs to its click, not to the device's install.
        hold: None,
    };
    Ok((&web_click.click, credit))
}

fn build_event(
    web_event: &WebEvent,
    click: &Click,
    revenue: Option<Revenue>,
    credit: Credit,
    has_paid: bool,
) -> Event {
    let pays = revenue
        .as_ref()
        .is_some_and(|revenue| revenue.counted_usd() > Amount::ZERO);
    Event {
        id: web_event.id,
        external_id: web_event.external_id.clone(),
        app: web_event.app,
        environment: Environment::Live,
        source: EventSource::Web,
        name: web_event.kind.as_str().to_owned(),
        original_name: None,
        occurred_at: web_event.occurred_at,
        received_at: web_event.received_at,
        device: Some(web_event.device.clone()),
        user: None,
        platform: Some(Platform::Web),
        country: click.country.clone(),
        revenue,
        credit: Some(credit),
        params: None,
        first_payment: pays && !has_paid && !web_event.device.is_placeholder(),
        is_service_install: false,
        duplicate_of: None,
        dedup_root: None,
        consent: None,
        skipped: Vec::new(),
        website: Some(Box::new(WebEventDetails {
            source_url: web_event.source_url.clone(),
            parent: web_event.parent.clone(),
            email_sha256: web_event.email_sha256.clone(),
        })),
    }
}

#[cfg(test)]
pub(super) mod samples;
#[cfg(test)]
mod tests;
