//! Superwall: signed according to Standard Webhooks, with `RevenueCat`'s vocabulary.

use super::fields::{amount, country, currency, id, name, names, read, share, time};
use super::meaning::{NotificationTraits, meaning};
use super::{HeaderProof, Provider, WebhookHead, WebhookRejection, WebhookRequest};
use crate::fields::{Fields, flag};
use crate::json::JsonNode;
use tributary_domain::access::Environment;
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::signature::is_standard_signed;
use tributary_domain::billing::{
    NotificationMeaning, ProviderNotification, Subscriber, person_ids,
};
use tributary_domain::device::DeviceKey;

pub(super) struct Superwall;

/// The two sets of header names. A request uses the names from one set.
const HEADERS: &[[&str; 3]] = &[
    ["svix-id", "svix-timestamp", "svix-signature"],
    ["webhook-id", "webhook-timestamp", "webhook-signature"],
];

/// Returns the id, the time and the signatures.
fn signed_headers<'a>(head: &'a WebhookHead<'_>) -> Option<[&'a str; 3]> {
    HEADERS.iter().find_map(|[id, time, signatures]| {
        Some([
            head.header(id)?,
            head.header(time)?,
            head.header(signatures)?,
        ])
    })
}

impl Provider for Superwall {
    fn check_headers(&self, head: &WebhookHead<'_>) -> Result<HeaderProof, WebhookRejection> {
        if head.secrets.values.is_empty() || signed_headers(head).is_none() {
            return Err(WebhookRejection::Unauthorized);
        }
        Ok(HeaderProof::NeedsBody)
    }

    fn authenticate(&self, request: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection> {
        let signed = signed_headers(&request.head);
        let [id, time, signatures] = signed.ok_or(WebhookRejection::Unauthorized)?;
        let secrets = &request.head.secrets.values;
        let is_signed = secrets.iter().fold(false, |found, secret| {
            found | is_standard_signed(id, time, signatures, request.body, secret, request.now)
        });
        if !is_signed {
            return Err(WebhookRejection::Unauthorized);
        }
        request.json()
    }

    fn translate(&self, body: &JsonNode) -> Result<ProviderNotification, WebhookRejection> {
        read(body, read_notification).ok_or(WebhookRejection::Malformed)
    }
}

fn read_notification(body: &mut Fields<'_>) -> Option<ProviderNotification> {
    let (event, sent_at) = (
        body.optional("type", id()),
        body.optional("timestamp", time()),
    );
    let mut data = body.section("data");
    let external_id = data.optional("id", id())?;
    let kind = data.optional("name", id()).or(event)?;
    let period = data.optional("periodType", name());
    let store = data.optional("store", name());
    let paid = data.optional("priceInPurchasedCurrency", amount());
    let price = ReportedPrice {
        paid: paid.zip(data.optional("currencyCode", currency())),
        usd: data.optional("price", amount()),
    };
    // A renewal after a paid introductory period is a conversion, too. The domain decides whether
    // it is the first payment.
    let is_introductory = matches!(period.as_deref(), Some("TRIAL" | "INTRO"));
    let cancel_reason = data.optional("cancelReason", name());
    let traits = NotificationTraits {
        kind: &kind.to_ascii_uppercase(),
        period: period.as_deref(),
        store: store.as_deref(),
        cancel_reason: cancel_reason.as_deref(),
        is_family_share: data.optional("isFamilyShare", flag()) == Some(true),
        is_conversion: data.optional("isTrialConversion", flag()) == Some(true) || is_introductory,
    };
    let (meaning, price) = if price.is_negative() {
        (NotificationMeaning::Refund, price)
    } else {
        meaning(&traits, price)
    };
    let event_at = data.optional("ts", time()).or(sent_at);
    let purchased_at = data.optional("purchasedAt", time());
    let happened_at = match meaning {
        NotificationMeaning::TrialStart
        | NotificationMeaning::Payment(_)
        | NotificationMeaning::Free(_) => purchased_at.or(event_at),
        _ => event_at.or(purchased_at),
    };
    let environment = data.optional("environment", name()).unwrap_or_default();
    Some(ProviderNotification {
        external_id,
        environment: if environment.eq_ignore_ascii_case("production") {
            Environment::Live
        } else {
            Environment::Test
        },
        meaning,
        kind,
        store,
        product: data.optional("productId", name()),
        transaction: data.optional("transactionId", name()),
        original_transaction: data.optional("originalTransactionId", name()),
        other_transactions: Vec::new(),
        refund: None,
        period,
        country: data.optional("countryCode", country()),
        price,
        tax: data.optional("taxPercentage", share()),
        commission: data.optional("commissionPercentage", share()),
        happened_at,
        subscriber: subscriber(&mut data),
    })
}

/// Reads the subscriber. The name of the member with the attributes is not documented, so both
/// known names are tried.
fn subscriber(data: &mut Fields<'_>) -> Subscriber {
    let device = ["userAttributes", "attributes"]
        .into_iter()
        .find_map(|section| data.section(section).optional("tributaryId", name()));
    let user = data.optional("originalAppUserId", name());
    let aliases = data.optional("aliases", names()).unwrap_or_default();
    Subscriber {
        device: device.and_then(|id| DeviceKey::parse(&id).ok()),
        people: person_ids(user.into_iter().chain(aliases)),
        advertising: Vec::new(),
    }
}
