//! Superwall: signed as Standard Webhooks has it, in `RevenueCat`'s words.

use super::fields::{amount, country, currency, id, name, names, read, share, time};
use super::meaning::{NotificationTraits, meaning};
use super::{Provider, WebhookRejection, WebhookRequest};
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

/// The two spellings of the headers. A post has one of them.
const HEADERS: &[[&str; 3]] = &[
    ["svix-id", "svix-timestamp", "svix-signature"],
    ["webhook-id", "webhook-timestamp", "webhook-signature"],
];

impl Provider for Superwall {
    fn authenticate(&self, post: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection> {
        let signed = HEADERS.iter().find_map(|[id, time, signatures]| {
            Some((
                post.header(id)?,
                post.header(time)?,
                post.header(signatures)?,
            ))
        });
        let (id, time, signatures) = signed.ok_or(WebhookRejection::Unauthorized)?;
        let is_signed = post.secrets.values.iter().fold(false, |found, secret| {
            found | is_standard_signed(id, time, signatures, post.body, secret, post.now)
        });
        if !is_signed {
            return Err(WebhookRejection::Unauthorized);
        }
        post.json()
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
    let given_id = data.optional("id", id())?;
    let kind = data.optional("name", id()).or(event)?;
    let period = data.optional("periodType", name());
    let store = data.optional("store", name());
    let paid = data.optional("priceInPurchasedCurrency", amount());
    let price = ReportedPrice {
        paid: paid.zip(data.optional("currencyCode", currency())),
        usd: data.optional("price", amount()),
    };
    // A paid introduction that goes on is a conversion as well; whether it is the first payment is decided later.
    let goes_on = matches!(period.as_deref(), Some("TRIAL" | "INTRO"));
    let cancel_reason = data.optional("cancelReason", name());
    let words = NotificationTraits {
        kind: &kind.to_ascii_uppercase(),
        period: period.as_deref(),
        store: store.as_deref(),
        cancel_reason: cancel_reason.as_deref(),
        is_family_share: data.optional("isFamilyShare", flag()) == Some(true),
        is_conversion: data.optional("isTrialConversion", flag()) == Some(true) || goes_on,
    };
    let (meaning, price) = if price.is_negative() {
        (NotificationMeaning::Refund, price)
    } else {
        meaning(&words, price)
    };
    let said = data.optional("ts", time()).or(sent_at);
    let bought = data.optional("purchasedAt", time());
    let happened_at = match meaning {
        NotificationMeaning::TrialStart
        | NotificationMeaning::Payment(_)
        | NotificationMeaning::Free(_) => bought.or(said),
        _ => said.or(bought),
    };
    let environment = data.optional("environment", name()).unwrap_or_default();
    Some(ProviderNotification {
        external_id: given_id,
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
        period,
        country: data.optional("countryCode", country()),
        price,
        tax: data.optional("taxPercentage", share()),
        commission: data.optional("commissionPercentage", share()),
        happened_at,
        subscriber: subscriber(&mut data),
    })
}

/// Newer payloads carry attributes and aliases; their place is not documented, so both are looked for.
fn subscriber(data: &mut Fields<'_>) -> Subscriber {
    let device = ["userAttributes", "attributes"]
        .into_iter()
        .find_map(|place| data.section(place).optional("tributaryId", name()));
    let user = data.optional("originalAppUserId", name());
    let aliases = data.optional("aliases", names()).unwrap_or_default();
    Subscriber {
        device: device.and_then(|id| DeviceKey::parse(&id).ok()),
        people: person_ids(user.into_iter().chain(aliases)),
        advertising: Vec::new(),
    }
}
