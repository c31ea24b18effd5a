//! App Store Server Notifications V2, signed with a certificate chain up to Apple's root.

use super::fields::{currency, id, name, read, time};
use super::{HeaderProof, Provider, WebhookHead, WebhookRejection, WebhookRequest};
use crate::fields::{Fields, text, text_list};
use crate::json::{self, JsonNode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tributary_domain::access::Environment;
use tributary_domain::app::App;
use tributary_domain::billing::certificate::{TrustedRoots, is_signed};
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{
    BILLING_ISSUE, CANCELLATION, EXPIRATION, NotificationMeaning, PRODUCT_CHANGE, PaymentClaim,
    ProviderNotification, Subscriber, TRIAL_CANCELLED, UNCANCELLATION,
};
use tributary_domain::device::DeviceKey;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::field_input::FieldInput;
use tributary_domain::vocabulary::jws::Jws;
use tributary_domain::vocabulary::money::Amount;

pub(super) struct AppStore;

/// The only accepted algorithm, whatever the header says.
const ALGORITHM: &str = "ES256";
/// Payload sections that identify the app. A payload has exactly one of them.
const PARTS: &[&str] = &["data", "summary", "externalPurchaseToken", "appData"];
/// Number of certificates in a chain: leaf, Apple's intermediate and root.
const CHAIN_CERTIFICATES: usize = 3;
/// Micros per thousandth of a currency unit.
const MICROS_PER_MILLI: i64 = 1_000;
/// 100 % in thousandths of a percent.
const WHOLE_PERCENTAGE: i64 = 100_000;

impl Provider for AppStore {
    fn check_headers(&self, _head: &WebhookHead<'_>) -> Result<HeaderProof, WebhookRejection> {
        Ok(HeaderProof::NeedsBody)
    }

    fn authenticate(&self, request: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection> {
        let envelope = request.json()?;
        let signed = read(&envelope, |fields| fields.optional("signedPayload", text()));
        let signed = signed.ok_or(WebhookRejection::Malformed)?;
        let payload = verify_jws(&signed, request.roots).ok_or(WebhookRejection::Unauthorized)?;
        let part = read(&payload, |payload| {
            let names = ["signedTransactionInfo", "signedRenewalInfo"];
            read_part(payload, |part| {
                let signed = names.map(|name| (name, part.input(name, text())));
                is_for_app(request.head.app, part).then_some(signed)
            })
        });
        let signed = part.flatten().ok_or(WebhookRejection::Unauthorized)?;
        let mut whole = vec![("notification".to_owned(), payload)];
        for (name, signed) in signed {
            match signed {
                FieldInput::Absent => {}
                FieldInput::Invalid => return Err(WebhookRejection::Unauthorized),
                FieldInput::Value(signed) => {
                    let node =
                        verify_jws(&signed, request.roots).ok_or(WebhookRejection::Unauthorized)?;
                    whole.push((name.to_owned(), node));
                }
            }
        }
        Ok(JsonNode::Object(whole))
    }

    fn translate(&self, body: &JsonNode) -> Result<ProviderNotification, WebhookRejection> {
        read(body, read_notification).ok_or(WebhookRejection::Malformed)
    }
}

/// Reads the payload section that identifies the app.
fn read_part<T>(payload: &mut Fields<'_>, read: impl FnOnce(&mut Fields<'_>) -> T) -> Option<T> {
    let mut parts = PARTS.iter().copied();
    let name = parts.find(|name| payload.section(name).is_present())?;
    Some(read(&mut payload.section(name)))
}

fn read_notification(body: &mut Fields<'_>) -> Option<ProviderNotification> {
    let mut payload = body.section("notification");
    let external_id = payload.optional("notificationUUID", id())?;
    let kind = payload.optional("notificationType", id())?;
    let subtype = payload.optional("subtype", name());
    let signed_at = payload.optional("signedDate", time());
    let environment = read_part(&mut payload, |part| part.optional("environment", name()));
    let mut bought = body.section("signedTransactionInfo");
    let offer = bought.optional("offerDiscountType", name());
    let ownership = bought.optional("inAppOwnershipType", name());
    let traits = AppStoreTraits {
        kind: &kind,
        subtype: subtype.as_deref(),
        is_trial: offer.as_deref() == Some("FREE_TRIAL"),
        is_family: ownership.as_deref() == Some("FAMILY_SHARED"),
    };
    let meaning = traits.meaning();
    let happened_at = match meaning {
        NotificationMeaning::TrialStart
        | NotificationMeaning::Payment(_)
        | NotificationMeaning::Free(_) => bought.optional("purchaseDate", time()),
        NotificationMeaning::Refund => bought.optional("revocationDate", time()),
        _ => None,
    };
    let kind = subtype.map_or(kind.clone(), |subtype| format!("{kind}.{subtype}"));
    // The app sets the token to its device id, which links the purchase to the device.
    let token = bought.optional("appAccountToken", name());
    Some(ProviderNotification {
        external_id,
        environment: match environment.flatten().as_deref() {
            Some("Production") => Environment::Live,
            _ => Environment::Test,
        },
        price: price(&mut bought, &meaning),
        meaning,
        kind,
        store: Some("APP_STORE".to_owned()),
        product: bought.optional("productId", name()),
        transaction: bought.optional("transactionId", name()),
        original_transaction: bought.optional("originalTransactionId", name()),
        other_transactions: Vec::new(),
        refund: None,
        period: offer,
        country: None,
        tax: None,
        commission: None,
        happened_at: happened_at.or(signed_at),
        subscriber: Subscriber {
            device: token.and_then(|token| DeviceKey::parse(&token).ok()),
            ..Subscriber::default()
        },
    })
}

/// Returns the payload of a JWS if the certificate chain was valid when the JWS was signed.
fn verify_jws(signed: &str, roots: &TrustedRoots) -> Option<JsonNode> {
    let jws = Jws::split(signed).ok()?;
    let parsed = |bytes: &[u8]| json::parse(std::str::from_utf8(bytes).ok()?).ok();
    let (header, payload) = (parsed(&jws.header)?, parsed(&jws.payload)?);
    let (algorithm, chain) = read(&header, |header| {
        let algorithm = header.optional("alg", text());
        (
            algorithm,
            header.optional("x5c", text_list(CHAIN_CERTIFICATES, certificate)),
        )
    });
    let at = read(&payload, |payload| payload.optional("signedDate", time()))?;
    let is_valid = algorithm.as_deref() == Some(ALGORITHM) && is_signed(&jws, &chain?, roots, at);
    is_valid.then_some(payload)
}

fn certificate(text: &str) -> Result<Vec<u8>, Problem> {
    let decoded = STANDARD.decode(text);
    decoded.map_err(|_| Problem::new(FaultCode::InvalidFormat, "Must be Base64."))
}

/// Tells whether a payload is about the app. Apple's sandbox sends no app id.
fn is_for_app(app: &App, part: &mut Fields<'_>) -> bool {
    let (Some(bundle), Some(store_id)) = (&app.ios.bundle_id, &app.ios.app_store_id) else {
        return false;
    };
    let is_bundle = part.optional("bundleId", name()).as_ref() == Some(bundle);
    let is_store_id = part.optional("appAppleId", name()).as_ref() == Some(store_id);
    match part.optional("environment", name()).as_deref() {
        Some("Production") => is_bundle && is_store_id,
        // Payloads without an environment contain no payment, and their signature proves that they
        // are from Apple. The bundle id is enough.
        Some("Sandbox") | None => is_bundle,
        Some(_) => false,
    }
}

/// Fields that determine what a notification means.
struct AppStoreTraits<'a> {
    kind: &'a str,
    subtype: Option<&'a str>,
    is_trial: bool,
    is_family: bool,
}

impl AppStoreTraits<'_> {
    fn meaning(&self) -> NotificationMeaning {
        let lifecycle = |name: &str| NotificationMeaning::Lifecycle(name.to_owned());
        match (self.kind, self.subtype) {
            ("SUBSCRIBED" | "OFFER_REDEEMED", _) if self.is_trial => {
                NotificationMeaning::TrialStart
            }
            ("SUBSCRIBED", _) if self.is_family => {
                NotificationMeaning::Free("family_share".to_owned())
            }
            ("SUBSCRIBED", Some("RESUBSCRIBE")) => {
                NotificationMeaning::Payment(PaymentClaim::Return)
            }
            ("SUBSCRIBED" | "OFFER_REDEEMED", _) | ("DID_CHANGE_RENEWAL_PREF", Some("UPGRADE")) => {
                NotificationMeaning::Payment(PaymentClaim::Start)
            }
            ("ONE_TIME_CHARGE", _) => NotificationMeaning::Payment(PaymentClaim::OneOff),
            ("DID_RENEW", _) => NotificationMeaning::Payment(PaymentClaim::AfterTrial),
            ("DID_CHANGE_RENEWAL_PREF", _) => lifecycle(PRODUCT_CHANGE),
            ("DID_CHANGE_RENEWAL_STATUS", Some("AUTO_RENEW_ENABLED")) => lifecycle(UNCANCELLATION),
            ("DID_CHANGE_RENEWAL_STATUS", _) if self.is_trial => lifecycle(TRIAL_CANCELLED),
            ("DID_CHANGE_RENEWAL_STATUS", _) => lifecycle(CANCELLATION),
            ("REFUND", _) => NotificationMeaning::Refund,
            ("REFUND_REVERSED", _) => NotificationMeaning::RefundReversed,
            ("REVOKE", _) => lifecycle("revoke"),
            ("EXPIRED" | "GRACE_PERIOD_EXPIRED", _) => lifecycle(EXPIRATION),
            ("DID_FAIL_TO_RENEW", _) => lifecycle(BILLING_ISSUE),
            _ => NotificationMeaning::Receipt,
        }
    }
}

/// Computes the price. Apple sends thousandths of the currency unit per item; a refund may be
/// partial.
fn price(bought: &mut Fields<'_>, meaning: &NotificationMeaning) -> ReportedPrice {
    let currency = bought.optional("currency", currency());
    let is_part = bought.optional("revocationType", name()).as_deref() == Some("REFUND_PRORATED");
    let mut whole = |field| bought.optional(field, name())?.parse::<i64>().ok();
    let (Some(price), Some(currency)) = (whole("price"), currency) else {
        return ReportedPrice::default();
    };
    let pieces = whole("quantity").unwrap_or(1).max(1);
    let part = match meaning {
        NotificationMeaning::Refund if is_part => {
            whole("revocationPercentage").unwrap_or(WHOLE_PERCENTAGE)
        }
        NotificationMeaning::TrialStart | NotificationMeaning::Free(_) => 0,
        NotificationMeaning::Payment(_)
        | NotificationMeaning::Refund
        | NotificationMeaning::RefundReversed => WHOLE_PERCENTAGE,
        NotificationMeaning::Receipt
        | NotificationMeaning::Lifecycle(_)
        | NotificationMeaning::Transfer { .. } => {
            return ReportedPrice::default();
        }
    };
    let micros = price
        .checked_mul(MICROS_PER_MILLI)
        .and_then(|micros| micros.checked_mul(pieces))
        .map(|micros| i128::from(micros) * i128::from(part) / i128::from(WHOLE_PERCENTAGE))
        .and_then(|micros| i64::try_from(micros).ok());
    ReportedPrice {
        paid: micros.map(|micros| (Amount::from_micros(micros), currency)),
        usd: None,
    }
}
