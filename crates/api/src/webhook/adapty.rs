//! Adapty: authenticated by a value in `Authorization`.

use super::fields::{amount, country, currency, id, name, read};
use super::{HeaderProof, Provider, WebhookHead, WebhookRejection, WebhookRequest, check_secret};
use crate::fields::{Fields, text_as};
use crate::json::JsonNode;
use tributary_domain::access::Environment;
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{
    BILLING_ISSUE, CANCELLATION, EXPIRATION, NotificationMeaning, PaymentClaim,
    ProviderNotification, Subscriber, TRIAL_CANCELLED, UNCANCELLATION, person_ids,
};
use tributary_domain::device::{AdvertisingId, DeviceKey};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::parse_moment;

pub(super) struct Adapty;

/// Prefix of products that an operator granted without a payment.
const GRANTED: &str = "adapty_";

impl Provider for Adapty {
    fn check_headers(&self, head: &WebhookHead<'_>) -> Result<HeaderProof, WebhookRejection> {
        check_secret(head.header("authorization").unwrap_or_default(), head)
    }

    fn authenticate(&self, request: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection> {
        request.json()
    }

    /// Adapty sends an empty object when the operator saves the URL.
    fn is_url_test(&self, body: &JsonNode) -> bool {
        *body == JsonNode::Object(Vec::new())
    }

    fn translate(&self, body: &JsonNode) -> Result<ProviderNotification, WebhookRejection> {
        read(body, read_notification).ok_or(WebhookRejection::Malformed)
    }
}

fn read_notification(body: &mut Fields<'_>) -> Option<ProviderNotification> {
    let kind = body.optional("event_type", id())?;
    let sent_at = body.optional("event_datetime", text_as(parse_moment));
    let subscriber = subscriber(body);
    let mut properties = body.section("event_properties");
    let external_id = properties.optional("profile_event_id", id())?;
    let product = properties.optional("vendor_product_id", name());
    let is_granted = product.as_ref().is_some_and(|it| it.starts_with(GRANTED));
    let meaning = meaning(&kind, is_granted);
    let paid = properties.optional("price_local", amount());
    let price = ReportedPrice {
        paid: paid.zip(properties.optional("currency", currency())),
        usd: properties.optional("price_usd", amount()),
    };
    let bought_at = properties.optional("purchase_date", text_as(parse_moment));
    let happened_at = match meaning {
        NotificationMeaning::TrialStart
        | NotificationMeaning::Payment(_)
        | NotificationMeaning::Free(_) => bought_at.or(sent_at),
        _ => sent_at.or(bought_at),
    };
    let store = properties.optional("store", name());
    let place = properties.optional("store_country", country());
    Some(ProviderNotification {
        external_id,
        kind,
        environment: match properties.optional("environment", name()).as_deref() {
            Some("Production") => Environment::Live,
            _ => Environment::Test,
        },
        price: price_of(&meaning, price),
        meaning,
        store: store.map(|store| store.to_ascii_uppercase()),
        product,
        transaction: properties.optional("transaction_id", name()),
        original_transaction: properties.optional("original_transaction_id", name()),
        other_transactions: Vec::new(),
        refund: None,
        period: None,
        country: properties.optional("profile_country", country()).or(place),
        tax: None,
        commission: None,
        happened_at,
        subscriber,
    })
}

fn meaning(kind: &str, is_granted: bool) -> NotificationMeaning {
    let lifecycle = |name: &str| NotificationMeaning::Lifecycle(name.to_owned());
    let payment = |claim| {
        if is_granted {
            NotificationMeaning::Free("promotional_grant".to_owned())
        } else {
            NotificationMeaning::Payment(claim)
        }
    };
    match kind {
        "trial_started" => NotificationMeaning::TrialStart,
        "trial_converted" => payment(PaymentClaim::Conversion),
        "subscription_started" | "subscription_initial_purchase" => payment(PaymentClaim::Start),
        "subscription_renewed" => payment(PaymentClaim::Continuation),
        "non_subscription_purchase" => payment(PaymentClaim::OneOff),
        "subscription_refunded" | "non_subscription_purchase_refunded" => {
            NotificationMeaning::Refund
        }
        "trial_renewal_cancelled" => lifecycle(TRIAL_CANCELLED),
        "subscription_renewal_cancelled" => lifecycle(CANCELLATION),
        "trial_renewal_reactivated" | "subscription_renewal_reactivated" => {
            lifecycle(UNCANCELLATION)
        }
        "trial_expired" | "subscription_expired" => lifecycle(EXPIRATION),
        "entered_grace_period" | "billing_issue_detected" => lifecycle(BILLING_ISSUE),
        "subscription_paused" => lifecycle("subscription_paused"),
        "subscription_deferred" => lifecycle("subscription_extended"),
        _ => NotificationMeaning::Receipt,
    }
}

/// Returns the price that applies. Adapty can be set to send the price after the trial with the
/// trial's start.
fn price_of(meaning: &NotificationMeaning, price: ReportedPrice) -> ReportedPrice {
    match meaning {
        NotificationMeaning::Payment(_) | NotificationMeaning::Refund => price,
        NotificationMeaning::TrialStart | NotificationMeaning::Free(_) => ReportedPrice {
            paid: price.paid.map(|(_, currency)| (Amount::ZERO, currency)),
            usd: Some(Amount::ZERO),
        },
        NotificationMeaning::Receipt
        | NotificationMeaning::RefundReversed
        | NotificationMeaning::Lifecycle(_)
        | NotificationMeaning::Transfer { .. } => ReportedPrice::default(),
    }
}

fn subscriber(body: &mut Fields<'_>) -> Subscriber {
    let mut attributes = body.section("user_attributes");
    let device = attributes.optional("tributaryId", name());
    let user = body.optional("customer_user_id", name());
    let profile = body.optional("profile_id", name());
    let advertising = ["idfa", "advertising_id"].into_iter();
    Subscriber {
        device: device.and_then(|id| DeviceKey::parse(&id).ok()),
        people: person_ids(user.into_iter().chain(profile)),
        advertising: advertising
            .filter_map(|field| body.optional(field, name()))
            .filter_map(|id| AdvertisingId::parse(&id))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use rstest::rstest;
    use serde_json::json;

    fn event(kind: &str, product: &str) -> ProviderNotification {
        let body = json!({
            "event_type": kind, "event_datetime": "2020-07-10T15:00:00.000000+0000",
            "profile_id": "profile-1", "customer_user_id": "person-1",
            "user_attributes": {"tributaryId": "phone-1"},
            "event_properties": {
                "profile_event_id": "n-1", "environment": "Production", "store": "play_store",
                "vendor_product_id": product, "transaction_id": "t-1", "price_local": 8.99,
                "original_transaction_id": "t-0", "currency": "EUR", "price_usd": 9.99,
                "purchase_date": "2020-07-10T14:59:00.000000+0000", "profile_country": "DE",
            },
        });
        Adapty
            .translate(&parse(&body.to_string()).unwrap())
            .unwrap()
    }

    #[rstest]
    #[case("trial_started", "TrialStart")]
    #[case("trial_converted", "Payment(Conversion)")]
    #[case("subscription_started", "Payment(Start)")]
    #[case("subscription_initial_purchase", "Payment(Start)")]
    #[case("subscription_renewed", "Payment(Continuation)")]
    #[case("non_subscription_purchase", "Payment(OneOff)")]
    #[case("subscription_refunded", "Refund")]
    #[case("non_subscription_purchase_refunded", "Refund")]
    #[case("trial_renewal_cancelled", "Lifecycle(\"trial_cancelled\")")]
    #[case("subscription_renewal_cancelled", "Lifecycle(\"cancellation\")")]
    #[case("trial_renewal_reactivated", "Lifecycle(\"uncancellation\")")]
    #[case("subscription_renewal_reactivated", "Lifecycle(\"uncancellation\")")]
    #[case("trial_expired", "Lifecycle(\"expiration\")")]
    #[case("subscription_expired", "Lifecycle(\"expiration\")")]
    #[case("entered_grace_period", "Lifecycle(\"billing_issue\")")]
    #[case("billing_issue_detected", "Lifecycle(\"billing_issue\")")]
    #[case("subscription_paused", "Lifecycle(\"subscription_paused\")")]
    #[case("subscription_deferred", "Lifecycle(\"subscription_extended\")")]
    #[case("access_level_updated", "Receipt")]
    #[case("renamed_by_the_operator", "Receipt")]
    fn types(#[case] kind: &str, #[case] expected: &str) {
        let found = event(kind, "weekly");
        assert_eq!(format!("{:?}", found.meaning), expected);
        let usd = found.price.usd.map(|usd| usd.to_string());
        let pays = expected.starts_with("Payment") || expected == "Refund";
        assert_eq!(usd.as_deref() == Some("9.99"), pays);
        assert_eq!(
            found.price.is_zero(),
            expected == "TrialStart",
            "a trial is free"
        );
        // A payment has the time of the purchase, anything else that of the event.
        let is_bought = expected.starts_with("Payment") || expected == "TrialStart";
        let expected_at = 1_594_393_200_000 - if is_bought { 60_000 } else { 0 };
        assert_eq!(found.happened_at.unwrap().as_millis(), expected_at);
        assert_eq!(found.store.as_deref(), Some("PLAY_STORE"));
        assert_eq!(found.environment, Environment::Live);
    }

    #[test]
    fn a_granted_product_costs_nothing() {
        let found = event("subscription_started", "adapty_promotion");
        assert_eq!(
            found.meaning,
            NotificationMeaning::Free("promotional_grant".to_owned())
        );
        assert!(found.price.is_zero());
    }

    #[rstest]
    #[case("{}", true)]
    #[case("[]", false)]
    #[case(r#"{"event_type": "trial_started"}"#, false)]
    fn only_an_empty_object_tests_the_url(#[case] body: &str, #[case] expected: bool) {
        let body = parse(body).unwrap();
        assert_eq!(Adapty.is_url_test(&body), expected);
        assert!(Adapty.translate(&body).is_err());
    }
}
