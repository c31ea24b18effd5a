//! Qonversion: authenticated by a token in `Authorization`.

use super::fields::{amount, country, currency, id, name, read, seconds};
use super::{HeaderProof, Provider, WebhookHead, WebhookRejection, WebhookRequest, check_secret};
use crate::fields::Fields;
use crate::json::JsonNode;
use tributary_domain::access::Environment;
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{
    BILLING_ISSUE, CANCELLATION, EXPIRATION, NotificationMeaning, PRODUCT_CHANGE, PaymentClaim,
    ProviderNotification, Subscriber, TRIAL_CANCELLED, person_ids,
};
use tributary_domain::device::{AdvertisingId, DeviceKey};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::check_external_id;

pub(super) struct Qonversion;

impl Provider for Qonversion {
    fn check_headers(&self, head: &WebhookHead<'_>) -> Result<HeaderProof, WebhookRejection> {
        let value = head.header("authorization").unwrap_or_default();
        check_secret(value.strip_prefix("Basic ").unwrap_or(value), head)
    }

    fn authenticate(&self, request: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection> {
        request.json()
    }

    /// Qonversion sends an undocumented request when the operator saves the URL. It is no event.
    fn is_url_test(&self, body: &JsonNode) -> bool {
        matches!(body, JsonNode::Object(_)) && body.member("event_name").is_none()
    }

    fn translate(&self, body: &JsonNode) -> Result<ProviderNotification, WebhookRejection> {
        read(body, read_notification).ok_or(WebhookRejection::Malformed)
    }
}

fn read_notification(body: &mut Fields<'_>) -> Option<ProviderNotification> {
    let kind = body.optional("event_name", id())?;
    let time = body.optional("time", name());
    let user = body.optional("user_id", name());
    let mut bought = body.section("transaction");
    let transaction = bought.optional("transaction_id", name());
    let original_transaction = bought.optional("original_transaction_id", name());
    // Qonversion sends no id, so these facts identify an event. A repeat has the same ones.
    let about = transaction.as_ref().or(user.as_ref())?;
    let external_id = format!("{kind}:{about}:{}", time?);
    let external_id = check_external_id(&external_id).ok()?.to_owned();
    let platform = body.optional("platform", name());
    let meaning = meaning(&kind);
    Some(ProviderNotification {
        external_id,
        environment: match body.optional("environment", name()).as_deref() {
            Some("production") => Environment::Live,
            _ => Environment::Test,
        },
        price: price(body, &meaning),
        meaning,
        kind,
        store: platform.as_deref().and_then(store).map(str::to_owned),
        product: body.optional("product_id", name()),
        transaction,
        original_transaction,
        other_transactions: Vec::new(),
        refund: None,
        period: None,
        country: body.optional("country", country()),
        tax: None,
        commission: None,
        happened_at: body
            .optional("time", seconds())
            .or_else(|| body.optional("created_at", seconds())),
        subscriber: subscriber(body, user),
    })
}

/// Returns the store of a platform.
fn store(platform: &str) -> Option<&'static str> {
    match platform.to_ascii_lowercase().as_str() {
        "ios" => Some("APP_STORE"),
        "android" => Some("PLAY_STORE"),
        "stripe" => Some("STRIPE"),
        _ => None,
    }
}

fn meaning(kind: &str) -> NotificationMeaning {
    let lifecycle = |name: &str| NotificationMeaning::Lifecycle(name.to_owned());
    match kind {
        "trial_started" => NotificationMeaning::TrialStart,
        "trial_converted" => NotificationMeaning::Payment(PaymentClaim::Conversion),
        "subscription_started" => NotificationMeaning::Payment(PaymentClaim::Start),
        "subscription_renewed" => NotificationMeaning::Payment(PaymentClaim::Continuation),
        "in_app_purchase" => NotificationMeaning::Payment(PaymentClaim::OneOff),
        "subscription_refunded" | "in_app_refunded" => NotificationMeaning::Refund,
        "trial_canceled" => lifecycle(TRIAL_CANCELLED),
        "subscription_canceled" => lifecycle(CANCELLATION),
        "trial_expired" | "subscription_expired" => lifecycle(EXPIRATION),
        "trial_billing_retry_entered" | "subscription_billing_retry_entered" => {
            lifecycle(BILLING_ISSUE)
        }
        "subscription_product_changed" | "subscription_upgraded" | "subscription_downgraded" => {
            lifecycle(PRODUCT_CHANGE)
        }
        _ => NotificationMeaning::Receipt,
    }
}

/// Returns the price: what the subscriber paid, before the store's share. `revenue` may be after
/// it.
fn price(body: &mut Fields<'_>, meaning: &NotificationMeaning) -> ReportedPrice {
    let mut price = body.section("price");
    let currency = price.optional("currency", currency());
    match meaning {
        NotificationMeaning::Payment(_) | NotificationMeaning::Refund => ReportedPrice {
            paid: price.optional("value", amount()).zip(currency),
            usd: price.optional("value_usd", amount()),
        },
        NotificationMeaning::TrialStart => ReportedPrice {
            paid: currency.map(|currency| (Amount::ZERO, currency)),
            usd: Some(Amount::ZERO),
        },
        _ => ReportedPrice::default(),
    }
}

fn subscriber(body: &mut Fields<'_>, user: Option<String>) -> Subscriber {
    let mut properties = body.section("properties");
    let device = properties.optional("tributaryId", name());
    let own = ["custom_user_id", "identity_id"].into_iter();
    let own: Vec<String> = own
        .filter_map(|field| body.optional(field, name()))
        .collect();
    let advertising = body.optional("advertiser_id", name());
    Subscriber {
        device: device.and_then(|id| DeviceKey::parse(&id).ok()),
        people: person_ids(own.into_iter().chain(user)),
        advertising: advertising
            .and_then(|id| AdvertisingId::parse(&id))
            .into_iter()
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use rstest::rstest;
    use serde_json::json;

    fn event(kind: &str) -> ProviderNotification {
        let body = json!({
            "event_name": kind, "user_id": "q-1", "custom_user_id": "", "identity_id": "person-1",
            "advertiser_id": "9FD1767D-8B48-45BD-A2F4-1C08B08E56F2", "time": 1_600_000_000,
            "product_id": "weekly", "price": {"value": 7.99, "value_usd": 9.99, "currency": "GBP"},
            "transaction": {
                "transaction_id": 500_000_601_234_560_i64,
                "original_transaction_id": 500_000_601_234_559_i64,
            },
            "properties": {"tributaryId": "phone-1"}, "environment": "production", "platform": "iOS",
        });
        Qonversion
            .translate(&parse(&body.to_string()).unwrap())
            .unwrap()
    }

    #[rstest]
    #[case("trial_started", "TrialStart")]
    #[case("trial_converted", "Payment(Conversion)")]
    #[case("subscription_started", "Payment(Start)")]
    #[case("subscription_renewed", "Payment(Continuation)")]
    #[case("in_app_purchase", "Payment(OneOff)")]
    #[case("subscription_refunded", "Refund")]
    #[case("in_app_refunded", "Refund")]
    #[case("trial_canceled", "Lifecycle(\"trial_cancelled\")")]
    #[case("subscription_canceled", "Lifecycle(\"cancellation\")")]
    #[case("trial_expired", "Lifecycle(\"expiration\")")]
    #[case("subscription_expired", "Lifecycle(\"expiration\")")]
    #[case("trial_billing_retry_entered", "Lifecycle(\"billing_issue\")")]
    #[case("subscription_billing_retry_entered", "Lifecycle(\"billing_issue\")")]
    #[case("subscription_product_changed", "Lifecycle(\"product_change\")")]
    #[case("trial_still_active", "Receipt")]
    fn types(#[case] kind: &str, #[case] expected: &str) {
        let found = event(kind);
        assert_eq!(format!("{:?}", found.meaning), expected);
        let usd = found.price.usd.map(|usd| usd.to_string());
        let pays = expected.starts_with("Payment") || expected == "Refund";
        assert_eq!(usd.as_deref() == Some("9.99"), pays);
        assert_eq!(
            found.price.is_zero(),
            expected == "TrialStart",
            "a trial is free"
        );
    }

    #[test]
    fn reads_ids_without_rounding_and_derives_the_event_id() {
        let found = event("subscription_started");
        assert_eq!(
            found.external_id,
            "subscription_started:500000601234560:1600000000"
        );
        assert_eq!(found.transaction.as_deref(), Some("500000601234560"));
        assert_eq!(
            found.original_transaction.as_deref(),
            Some("500000601234559")
        );
        assert_eq!(found.happened_at.unwrap().as_millis(), 1_600_000_000_000);
        assert_eq!(found.store.as_deref(), Some("APP_STORE"));
        let people: Vec<&str> = found
            .subscriber
            .people
            .iter()
            .map(tributary_domain::device::UserKey::as_str)
            .collect();
        assert_eq!(people, ["person-1", "q-1"]);
        assert_eq!(found.subscriber.advertising.len(), 1);
        assert_eq!(found.environment, Environment::Live);
    }

    #[rstest]
    #[case::a_test("{}", true)]
    #[case::a_test_with_members(r#"{"test": true}"#, true)]
    #[case::no_object("[]", false)]
    #[case::an_event_without_a_time(r#"{"event_name": "trial_started", "user_id": "q"}"#, false)]
    fn what_is_no_event_tests_the_url(#[case] body: &str, #[case] expected: bool) {
        let body = parse(body).unwrap();
        assert_eq!(Qonversion.is_url_test(&body), expected);
        assert!(Qonversion.translate(&body).is_err());
    }
}
