//! Verified website events: from what was posted to what is recorded, or why it is not.
//!
//! The order of checks is the contract's: whether it was here before, click, origin, time, parent, bound. What comes
//! before these (key, permission, environment, body, app, switch) is the door's.

mod batch;
mod check;
mod conflict;

pub use batch::{
    AcceptedWebEvent, ExternalKey, Payer, RecordedWebEvent, RefundTotals, RefundedPayment,
    Reservation, StoredWebClick, WebChanges, WebDecisions, WebFacts, decide,
};
pub use check::{WebEventFields, check};
pub use conflict::ExistingEvent;

use super::duplicate::{EventReplacement, demote};
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

/// What the values of a post mostly come to, with room to spare.
const FINGERPRINT_BYTES_USUAL: usize = 512;

/// How long before its click an event may be. The clock of the website may be behind ours.
const BEFORE_CLICK_MAX: Duration = Duration::from_mins(10);

/// What happened on the website.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebEventKind {
    /// The initial payment.
    Purchase,
    /// A later payment of the same subscription.
    Renewal,
    /// Money given back.
    Refund,
    /// An account was made.
    SignUp,
    /// A price was chosen.
    CheckoutStarted,
    /// A trial with a card began.
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
    /// Whether it names a payment that it belongs to.
    pub const fn has_parent(self) -> bool {
        matches!(self, Self::Renewal | Self::Refund)
    }
}

/// A posted event, each field checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebEvent {
    /// For which app.
    pub app: AppId,
    /// Our id, made of the event's own time.
    pub id: EventId,
    /// The sender's id.
    pub external_id: String,
    /// The click, as it was sent.
    pub click_text: String,
    /// The click; nothing when its tag is wrong or it is another app's.
    pub click: Option<ClickId>,
    /// Anonymous.
    pub device: DeviceKey,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// What happened.
    pub kind: WebEventKind,
    /// Less than nothing for a refund.
    pub amount: Option<Amount>,
    /// Of the amount.
    pub currency: Option<Currency>,
    /// Where, as it is kept.
    pub source_url: String,
    /// Where, as it is compared.
    pub origin: WebOrigin,
    /// The sender's id of the payment that it belongs to.
    pub parent: Option<String>,
    /// Hash of the person's address.
    pub email_sha256: Option<String>,
    /// When it arrived.
    pub received_at: Timestamp,
}

impl WebEvent {
    /// What tells this payload from another under the same id: the values, not how they were written.
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

    /// Returns whether it names itself as its payment. No later event can make that valid.
    fn names_itself(&self) -> bool {
        self.parent.as_ref() == Some(&self.external_id)
    }

    /// Returns the id that its sender gave.
    pub fn key(&self) -> ExternalKey<'_> {
        (self.app, &self.external_id)
    }

    /// Returns the id that the sender gave to its payment.
    pub fn parent_key(&self) -> Option<ExternalKey<'_>> {
        Some((self.app, self.parent.as_deref()?))
    }

    /// Returns its device.
    pub const fn device_ref(&self) -> DeviceRef<'_> {
        DeviceRef {
            app: self.app,
            environment: Environment::Live,
            key: &self.device,
        }
    }

    /// The currency and day to ask a rate for. A refund needs none: it has its payment's.
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
    /// In millionths. No amount and zero are the same money.
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

/// The click that an event names, with its link as it is today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebClick {
    /// The click.
    pub click: Click,
    /// Whether its link leads to a web page.
    pub is_web_funnel: bool,
    /// The origin that its link leads to today.
    pub link_origin: Option<WebOrigin>,
}

/// What is known about one post.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct WebEventFacts {
    /// The event that has this id.
    existing: Option<ExistingEvent>,
    /// The click, if it is stored. Others may name it as well.
    click: Option<Arc<WebClick>>,
    /// The event that it names as its parent.
    parent: Option<ParentEvent>,
    /// The SDK event that has this id.
    sdk_event: Option<Box<Event>>,
    /// What its amount is worth.
    exchanged: Option<ConvertedAmount>,
    /// Whether a payment of its device was counted before.
    has_paid: bool,
    /// The integrations of its app that were ever touched.
    integrations: Arc<[Integration]>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WebAcceptance {
    /// The same was here before.
    Duplicate,
    /// To be recorded.
    Recorded(Box<WebRecord>),
}

/// An accepted event and what it does to the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WebRecord {
    /// The event.
    event: Event,
    /// What tells its payload from another.
    fingerprint: Digest,
    /// Its payment as it is afterwards.
    refunded: Option<Receipt>,
    /// What it changes about the SDK event that has its id.
    demotion: Option<Box<EventReplacement>>,
    /// The networks that are to hear of it.
    planned: Vec<PlannedDelivery>,
}

/// Accepts an event, or says why not.
fn accept(posted: &WebEvent, facts: WebEventFacts) -> Result<WebAcceptance, Refusal> {
    let fingerprint = posted.fingerprint();
    match &facts.existing {
        Some(before) if before.fingerprint == fingerprint => return Ok(WebAcceptance::Duplicate),
        Some(before) => {
            let fields = conflict::differing_fields(posted, before);
            return Err(Refusal::EventIdConflict(fields));
        }
        None => {}
    }
    let (click, own_credit) = verify_click(posted, facts.click.as_deref())?;
    check_time(posted.occurred_at, click.clicked_at)?;
    let policy = MoneyPolicy::Count;
    let kind = super::name::money_kind(EventSource::Web, posted.kind.as_str(), &[]);
    let amount = posted.amount.filter(|_| posted.currency.is_some());
    let exchanged = facts.exchanged;
    let parent = if posted.names_itself() {
        Some(ParentEvent::NotAPayment)
    } else {
        facts.parent
    };
    let own = |amount| assess_revenue(amount, posted.currency, exchanged, policy, kind);
    let (revenue, credit, refunded) = match posted.kind {
        WebEventKind::Refund => {
            let amount = posted.amount.unwrap_or_default();
            let (revenue, payment) = refund(parent, amount, posted.currency)?;
            (Some(revenue), payment.credit.clone(), Some(payment))
        }
        WebEventKind::Renewal => {
            let credit = renewed_payment(parent)?.credit;
            (amount.map(own), credit, None)
        }
        _ => (amount.map(own), own_credit, None),
    };
    let mut event = build_event(posted, click, revenue, credit, facts.has_paid);
    let demotion = facts
        .sdk_event
        .and_then(|reported| demote(&mut event, *reported, &facts.integrations));
    let plan = plan_event(posted, click, &event, &facts.integrations);
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
    posted: &WebEvent,
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
            email: posted.email_sha256.clone(),
            ..ContactHashes::default()
        },
        has_os_version: false,
        is_held: false,
        policy: MoneyPolicy::Count,
        now: posted.received_at,
    };
    plan(&facts, integrations)
}

/// Rejects an event that is earlier than its click: such a time was sent in seconds, or the event is not the click's.
fn check_time(occurred_at: Timestamp, clicked_at: Timestamp) -> Result<(), Refusal> {
    if occurred_at.plus(BEFORE_CLICK_MAX) >= clicked_at {
        return Ok(());
    }
    let message =
        "Must not be more than ten minutes before the click. Was the time sent in seconds?";
    let mut faults = Faults::new();
    faults.add("timestampMs", Problem::new(FaultCode::OutOfRange, message));
    Err(Refusal::Invalid(faults))
}

/// The click, verified: ours, stored, a person's, of one of the four networks, and of a link that leads to where
/// the event happened.
fn verify_click<'a>(
    posted: &WebEvent,
    found: Option<&'a WebClick>,
) -> Result<(&'a Click, Credit), Refusal> {
    let found = found.filter(|found| {
        Some(found.click.id) == posted.click
            && found.click.app == posted.app
            && found.click.bot.is_none()
            && found.click.is_visible_to(Environment::Live)
    });
    let found = found.ok_or(Refusal::ClickNotVerified)?;
    let network = found
        .click
        .network
        .ok_or(Refusal::ClickNetworkUnsupported)?;
    // Origins are kept in their canonical form, so equal ones have equal texts.
    let fits = |origin: Option<&str>| origin == Some(posted.origin.as_str());
    let kept = found.click.destination_origin.as_deref();
    let present = found.link_origin.as_ref().map(WebOrigin::as_str);
    if !found.is_web_funnel || !(fits(kept) || fits(present)) {
        return Err(Refusal::OriginMismatch);
    }
    let credit = Credit {
        network: CreditedNetwork::Ad(network),
        match_type: MatchType::ClickId,
        link: Some(found.click.link),
        click: Some(found.click.id),
        campaign: found.click.campaign().clone(),
    };
    Ok((&found.click, credit))
}

fn build_event(
    posted: &WebEvent,
    click: &Click,
    revenue: Option<Revenue>,
    credit: Credit,
    has_paid: bool,
) -> Event {
    let pays = revenue
        .as_ref()
        .is_some_and(|revenue| revenue.counted_usd() > Amount::ZERO);
    Event {
        id: posted.id,
        external_id: posted.external_id.clone(),
        app: posted.app,
        environment: Environment::Live,
        source: EventSource::Web,
        name: posted.kind.as_str().to_owned(),
        original_name: None,
        occurred_at: posted.occurred_at,
        received_at: posted.received_at,
        device: Some(posted.device.clone()),
        user: None,
        platform: Some(Platform::Web),
        country: click.country.clone(),
        revenue,
        credit: Some(credit),
        params: None,
        first_payment: pays && !has_paid && !posted.device.is_placeholder(),
        is_service_install: false,
        duplicate_of: None,
        dedup_root: None,
        skipped: Vec::new(),
        website: Some(Box::new(WebEventDetails {
            source_url: posted.source_url.clone(),
            parent: posted.parent.clone(),
            email_sha256: posted.email_sha256.clone(),
        })),
    }
}

#[cfg(test)]
pub(super) mod samples;
#[cfg(test)]
mod tests;
