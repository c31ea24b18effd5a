//! App Store Server Notifications V2: signed with a certificate that leads to Apple's root.

use super::read::{currency, id, member, text, time};
use super::{Post, Provider, Refused};
use crate::json::{self, Node};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tributary_domain::access::Environment;
use tributary_domain::app::{App, BillingProvider};
use tributary_domain::billing::certificate::{Roots, is_signed};
use tributary_domain::billing::money::Price;
use tributary_domain::billing::{
    BILLING_ISSUE, CANCELLATION, Claim, EXPIRATION, Meaning, PRODUCT_CHANGE, Said, Subscriber,
    TRIAL_CANCELLED, UNCANCELLATION,
};
use tributary_domain::device::DeviceKey;
use tributary_domain::vocabulary::jws::Jws;
use tributary_domain::vocabulary::money::Amount;

pub(super) struct AppStore;

/// The only algorithm. The header may name it; it never chooses it.
const ALGORITHM: &str = "ES256";
/// The parts of a payload that say whose it is; there is one of them.
const PARTS: &[&str] = &["data", "summary", "externalPurchaseToken", "appData"];
/// Millionths in a thousandth.
const MICROS_PER_MILLI: i64 = 1_000;
/// Thousandths of a percent in the whole.
const WHOLE_PERCENTAGE: i64 = 100_000;

impl Provider for AppStore {
    fn authenticate(&self, post: &Post<'_>) -> Result<Node, Refused> {
        let envelope = post.json()?;
        let Some(Node::Text(signed)) = member(&envelope, "signedPayload") else {
            return Err(Refused::Malformed);
        };
        // The same payments would arrive twice, under two providers.
        let has_other = BillingProvider::WITH_SECRET
            .iter()
            .any(|one| post.app.has_provider(*one));
        if has_other {
            return Err(Refused::Unauthorized);
        }
        let payload = verified(signed, post.roots).ok_or(Refused::Unauthorized)?;
        let part = PARTS.iter().find_map(|name| member(&payload, name));
        let part = part.ok_or(Refused::Unauthorized)?;
        if !is_of(post.app, part) {
            return Err(Refused::Unauthorized);
        }
        let mut whole = vec![("notification".to_owned(), payload.clone())];
        for name in ["signedTransactionInfo", "signedRenewalInfo"] {
            match member(part, name) {
                Some(Node::Text(signed)) => {
                    let node = verified(signed, post.roots).ok_or(Refused::Unauthorized)?;
                    whole.push((name.to_owned(), node));
                }
                None | Some(Node::Null) => {}
                Some(_) => return Err(Refused::Unauthorized),
            }
        }
        Ok(Node::Object(whole))
    }

    fn translate(&self, body: &Node) -> Result<Said, Refused> {
        let payload = member(body, "notification").ok_or(Refused::Malformed)?;
        let given_id = id(payload, "notificationUUID").ok_or(Refused::Malformed)?;
        let kind = id(payload, "notificationType").ok_or(Refused::Malformed)?;
        let subtype = text(payload, "subtype");
        let nothing = Node::Null;
        let bought = member(body, "signedTransactionInfo").unwrap_or(&nothing);
        let part = PARTS.iter().find_map(|name| member(payload, name));
        let environment = part.and_then(|part| text(part, "environment"));
        let offer = text(bought, "offerDiscountType");
        let words = Words {
            kind: &kind,
            subtype: subtype.as_deref(),
            is_trial: offer.as_deref() == Some("FREE_TRIAL"),
            is_family: text(bought, "inAppOwnershipType").as_deref() == Some("FAMILY_SHARED"),
        };
        let meaning = words.meaning();
        let said_at = time(payload, "signedDate");
        let happened_at = match meaning {
            Meaning::TrialStart | Meaning::Payment(_) | Meaning::Free(_) => {
                time(bought, "purchaseDate")
            }
            Meaning::Refund => time(bought, "revocationDate"),
            _ => None,
        };
        let kind = subtype.map_or(kind.clone(), |subtype| format!("{kind}.{subtype}"));
        // The app sets it to the device's id, which makes it the join.
        let token = text(bought, "appAccountToken");
        Ok(Said {
            given_id,
            environment: match environment.as_deref() {
                Some("Production") => Environment::Live,
                _ => Environment::Test,
            },
            price: price(bought, &meaning),
            meaning,
            kind,
            store: Some("APP_STORE".to_owned()),
            product: text(bought, "productId"),
            transaction: text(bought, "transactionId"),
            original_transaction: text(bought, "originalTransactionId"),
            period: offer,
            country: None,
            tax: None,
            commission: None,
            happened_at: happened_at.or(said_at),
            subscriber: Subscriber {
                device: token.and_then(|token| DeviceKey::parse(&token).ok()),
                ..Subscriber::default()
            },
        })
    }
}

/// The payload of a JWS, if its signature leads to a trusted root at the time that it names itself.
fn verified(text: &str, roots: &Roots) -> Option<Node> {
    let jws = Jws::split(text).ok()?;
    let read = |bytes: &[u8]| json::parse(std::str::from_utf8(bytes).ok()?).ok();
    let (header, payload) = (read(&jws.header)?, read(&jws.payload)?);
    let algorithm = member(&header, "alg");
    let Some(Node::List(certificates)) = member(&header, "x5c") else {
        return None;
    };
    let decoded = |node: &Node| match node {
        Node::Text(text) => STANDARD.decode(text).ok(),
        _ => None,
    };
    let chain: Option<Vec<Vec<u8>>> = certificates.iter().map(decoded).collect();
    let at = time(&payload, "signedDate")?;
    let holds =
        algorithm == Some(&Node::Text(ALGORITHM.to_owned())) && is_signed(&jws, &chain?, roots, at);
    holds.then_some(payload)
}

/// Whether a payload is about the app. In Apple's sandbox an app has no id of its own yet.
fn is_of(app: &App, part: &Node) -> bool {
    let (Some(bundle), Some(store_id)) = (&app.ios.bundle_id, &app.ios.app_store_id) else {
        return false;
    };
    let is_bundle = text(part, "bundleId").as_ref() == Some(bundle);
    let is_store_id = text(part, "appAppleId").as_ref() == Some(store_id);
    match text(part, "environment").as_deref() {
        Some("Production") => is_bundle && is_store_id,
        // What has no environment of its own is signed by Apple all the same, and carries no money.
        Some("Sandbox") | None => is_bundle,
        Some(_) => false,
    }
}

/// What decides about the meaning of a notification.
struct Words<'a> {
    kind: &'a str,
    subtype: Option<&'a str>,
    is_trial: bool,
    is_family: bool,
}

impl Words<'_> {
    fn meaning(&self) -> Meaning {
        let lifecycle = |name: &str| Meaning::Lifecycle(name.to_owned());
        match (self.kind, self.subtype) {
            ("SUBSCRIBED" | "OFFER_REDEEMED", _) if self.is_trial => Meaning::TrialStart,
            ("SUBSCRIBED", _) if self.is_family => Meaning::Free("family_share".to_owned()),
            ("SUBSCRIBED", Some("RESUBSCRIBE")) => Meaning::Payment(Claim::Return),
            ("SUBSCRIBED" | "OFFER_REDEEMED", _) | ("DID_CHANGE_RENEWAL_PREF", Some("UPGRADE")) => {
                Meaning::Payment(Claim::Start)
            }
            ("ONE_TIME_CHARGE", _) => Meaning::Payment(Claim::OneOff),
            ("DID_RENEW", _) => Meaning::Payment(Claim::AfterTrial),
            ("DID_CHANGE_RENEWAL_PREF", _) => lifecycle(PRODUCT_CHANGE),
            ("DID_CHANGE_RENEWAL_STATUS", Some("AUTO_RENEW_ENABLED")) => lifecycle(UNCANCELLATION),
            ("DID_CHANGE_RENEWAL_STATUS", _) if self.is_trial => lifecycle(TRIAL_CANCELLED),
            ("DID_CHANGE_RENEWAL_STATUS", _) => lifecycle(CANCELLATION),
            ("REFUND", _) => Meaning::Refund,
            ("REFUND_REVERSED", _) => Meaning::RefundReversed,
            ("REVOKE", _) => lifecycle("revoke"),
            ("EXPIRED" | "GRACE_PERIOD_EXPIRED", _) => lifecycle(EXPIRATION),
            ("DID_FAIL_TO_RENEW", _) => lifecycle(BILLING_ISSUE),
            _ => Meaning::Receipt,
        }
    }
}

/// A price is in thousandths, and for one piece; a refund may be a part of it.
fn price(bought: &Node, meaning: &Meaning) -> Price {
    let whole = |name: &str| text(bought, name)?.parse::<i64>().ok();
    let (Some(price), Some(currency)) = (whole("price"), currency(bought, "currency")) else {
        return Price::default();
    };
    let pieces = whole("quantity").unwrap_or(1).max(1);
    let is_part = text(bought, "revocationType").as_deref() == Some("REFUND_PRORATED");
    let part = match meaning {
        Meaning::Refund if is_part => whole("revocationPercentage").unwrap_or(WHOLE_PERCENTAGE),
        Meaning::TrialStart | Meaning::Free(_) => 0,
        Meaning::Payment(_) | Meaning::Refund | Meaning::RefundReversed => WHOLE_PERCENTAGE,
        Meaning::Receipt | Meaning::Lifecycle(_) | Meaning::Transfer { .. } => {
            return Price::default();
        }
    };
    let micros = price
        .checked_mul(MICROS_PER_MILLI)
        .and_then(|micros| micros.checked_mul(pieces))
        .map(|micros| i128::from(micros) * i128::from(part) / i128::from(WHOLE_PERCENTAGE))
        .and_then(|micros| i64::try_from(micros).ok());
    Price {
        paid: micros.map(|micros| (Amount::from_micros(micros), currency)),
        usd: None,
    }
}
