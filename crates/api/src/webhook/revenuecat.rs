//! `RevenueCat`: authenticated by a value in `Authorization`, by a signature, or by both.

use super::fields::{amount, country, currency, id, name, names, read, share, time};
use super::meaning::{NotificationTraits, meaning};
use super::{HeaderProof, Provider, WebhookHead, WebhookRejection, WebhookRequest, check_secret};
use crate::fields::{Fields, flag};
use crate::json::JsonNode;
use tributary_domain::access::Environment;
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::signature::is_signed;
use tributary_domain::billing::{
    NotificationMeaning, ProviderNotification, Subscriber, person_ids,
};
use tributary_domain::device::{AdvertisingId, DeviceKey};

pub(super) struct RevenueCat;

/// Names of the signature header: one from RevenueCat's reference, one from a guide.
const SIGNATURES: &[&str] = &["x-revenuecat-webhook-signature", "x-revenuecat-signature"];

impl Provider for RevenueCat {
    /// Checks the header value, if a secret for it is configured.
    fn check_headers(&self, head: &WebhookHead<'_>) -> Result<HeaderProof, WebhookRejection> {
        let secrets = head.secrets;
        if secrets.values.is_empty() {
            return if secrets.signing.is_empty() {
                Err(WebhookRejection::Unauthorized)
            } else {
                Ok(HeaderProof::NeedsBody)
            };
        }
        check_secret(head.header("authorization").unwrap_or_default(), head)
    }

    /// Checks the signature, if a secret for it is configured.
    fn authenticate(&self, request: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection> {
        let secrets = &request.head.secrets.signing;
        if !secrets.is_empty() {
            let signature = SIGNATURES.iter().find_map(|name| request.head.header(name));
            let is_signed = |header| {
                let mut secrets = secrets.iter();
                secrets.any(|secret| is_signed(header, request.body, secret, request.now))
            };
            if !signature.is_some_and(is_signed) {
                return Err(WebhookRejection::Unauthorized);
            }
        }
        request.json()
    }

    fn translate(&self, body: &JsonNode) -> Result<ProviderNotification, WebhookRejection> {
        let notification = read(body, |body| read_notification(&mut body.section("event")));
        notification.ok_or(WebhookRejection::Malformed)
    }
}

fn read_notification(event: &mut Fields<'_>) -> Option<ProviderNotification> {
    let external_id = event.optional("id", id())?;
    let kind = event.optional("type", id())?;
    let period = event.optional("period_type", name());
    let store = event.optional("store", name());
    let cancel_reason = event.optional("cancel_reason", name());
    let paid = event.optional("price_in_purchased_currency", amount());
    let price = ReportedPrice {
        paid: paid.zip(event.optional("currency", currency())),
        usd: event.optional("price", amount()),
    };
    let (meaning, price) = if kind == "TRANSFER" {
        (transfer(event), ReportedPrice::default())
    } else {
        let traits = NotificationTraits {
            kind: &kind,
            period: period.as_deref(),
            store: store.as_deref(),
            cancel_reason: cancel_reason.as_deref(),
            is_family_share: event.optional("is_family_share", flag()) == Some(true),
            is_conversion: event.optional("is_trial_conversion", flag()) == Some(true),
        };
        meaning(&traits, price)
    };
    let is_live = event.optional("environment", name()).as_deref() == Some("PRODUCTION")
        && store.as_deref() != Some("TEST_STORE");
    let purchased_at = event.optional("purchased_at_ms", time());
    let sent_at = event.optional("event_timestamp_ms", time());
    let happened_at = match meaning {
        NotificationMeaning::TrialStart
        | NotificationMeaning::Payment(_)
        | NotificationMeaning::Free(_) => purchased_at.or(sent_at),
        _ => sent_at.or(purchased_at),
    };
    Some(ProviderNotification {
        external_id,
        environment: if is_live {
            Environment::Live
        } else {
            Environment::Test
        },
        subscriber: subscriber(event, &meaning),
        meaning,
        kind,
        store,
        product: event.optional("product_id", name()),
        transaction: event.optional("transaction_id", name()),
        original_transaction: event.optional("original_transaction_id", name()),
        other_transactions: Vec::new(),
        refund: None,
        period,
        country: event.optional("country_code", country()),
        price,
        tax: event.optional("tax_percentage", share()),
        commission: event.optional("commission_percentage", share()),
        happened_at,
    })
}

fn transfer(event: &mut Fields<'_>) -> NotificationMeaning {
    let mut ids = |field| person_ids(event.optional(field, names()).unwrap_or_default());
    NotificationMeaning::Transfer {
        from: ids("transferred_from"),
        to: ids("transferred_to"),
    }
}

fn subscriber(event: &mut Fields<'_>, meaning: &NotificationMeaning) -> Subscriber {
    // After a transfer, the subscription belongs to the recipient.
    let people = if let NotificationMeaning::Transfer { to, .. } = meaning {
        to.clone()
    } else {
        let user = event.optional("app_user_id", name());
        let first = event.optional("original_app_user_id", name());
        let aliases = event.optional("aliases", names()).unwrap_or_default();
        person_ids(user.into_iter().chain(first).chain(aliases))
    };
    let mut attributes = event.section("subscriber_attributes");
    let mut attribute = |field| attributes.section(field).optional("value", name());
    Subscriber {
        device: attribute("tributaryId").and_then(|id| DeviceKey::parse(&id).ok()),
        people,
        advertising: ["$idfa", "$gpsAdId"]
            .into_iter()
            .filter_map(attribute)
            .filter_map(|id| AdvertisingId::parse(&id))
            .collect(),
    }
}
