//! App Store Server Notifications V2: signed with a certificate that leads to Apple's root.

use super::fields::{currency, id, name, read, time};
use super::{Post, Provider, Refused};
use crate::fields::{Fields, text, texts};
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
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::given::Given;
use tributary_domain::vocabulary::jws::Jws;
use tributary_domain::vocabulary::money::Amount;

pub(super) struct AppStore;

/// The only algorithm. The header may name it; it never chooses it.
const ALGORITHM: &str = "ES256";
/// The parts of a payload that say whose it is; there is one of them.
const PARTS: &[&str] = &["data", "summary", "externalPurchaseToken", "appData"];
/// Certificates of a chain: the signer's, Apple's intermediate one and a root.
const CHAIN_CERTIFICATES: usize = 3;
/// Millionths in a thousandth.
const MICROS_PER_MILLI: i64 = 1_000;
/// Thousandths of a percent in the whole.
const WHOLE_PERCENTAGE: i64 = 100_000;

impl Provider for AppStore {
    fn authenticate(&self, post: &Post<'_>) -> Result<Node, Refused> {
        let envelope = post.json()?;
        let signed = read(&envelope, |fields| fields.optional("signedPayload", text()));
        let signed = signed.ok_or(Refused::Malformed)?;
        // The same payments would arrive twice, under two providers.
        let has_other = BillingProvider::WITH_SECRET
            .iter()
            .any(|one| post.app.has_provider(*one));
        if has_other {
            return Err(Refused::Unauthorized);
        }
        let payload = verified(&signed, post.roots).ok_or(Refused::Unauthorized)?;
        let part = read(&payload, |payload| {
            let names = ["signedTransactionInfo", "signedRenewalInfo"];
            in_part(payload, |part| {
                let signed = names.map(|name| (name, part.given(name, text())));
                is_of(post.app, part).then_some(signed)
            })
        });
        let signed = part.flatten().ok_or(Refused::Unauthorized)?;
        let mut whole = vec![("notification".to_owned(), payload)];
        for (name, signed) in signed {
            match signed {
                Given::Absent => {}
                Given::Faulty => return Err(Refused::Unauthorized),
                Given::Value(signed) => {
                    let node = verified(&signed, post.roots).ok_or(Refused::Unauthorized)?;
                    whole.push((name.to_owned(), node));
                }
            }
        }
        Ok(Node::Object(whole))
    }

    fn translate(&self, body: &Node) -> Result<Said, Refused> {
        read(body, said).ok_or(Refused::Malformed)
    }
}

/// Reads the part of a payload that says whose it is.
fn in_part<T>(payload: &mut Fields<'_>, read: impl FnOnce(&mut Fields<'_>) -> T) -> Option<T> {
    let mut parts = PARTS.iter().copied();
    let name = parts.find(|name| payload.section(name).is_there())?;
    Some(read(&mut payload.section(name)))
}

fn said(body: &mut Fields<'_>) -> Option<Said> {
    let mut payload = body.section("notification");
    let given_id = payload.optional("notificationUUID", id())?;
    let kind = payload.optional("notificationType", id())?;
    let subtype = payload.optional("subtype", name());
    let said_at = payload.optional("signedDate", time());
    let environment = in_part(&mut payload, |part| part.optional("environment", name()));
    let mut bought = body.section("signedTransactionInfo");
    let offer = bought.optional("offerDiscountType", name());
    let ownership = bought.optional("inAppOwnershipType", name());
    let words = Words {
        kind: &kind,
        subtype: subtype.as_deref(),
        is_trial: offer.as_deref() == Some("FREE_TRIAL"),
        is_family: ownership.as_deref() == Some("FAMILY_SHARED"),
    };
    let meaning = words.meaning();
    let happened_at = match meaning {
        Meaning::TrialStart | Meaning::Payment(_) | Meaning::Free(_) => {
            bought.optional("purchaseDate", time())
        }
        Meaning::Refund => bought.optional("revocationDate", time()),
        _ => None,
    };
    let kind = subtype.map_or(kind.clone(), |subtype| format!("{kind}.{subtype}"));
    // The app sets it to the device's id, which makes it the join.
    let token = bought.optional("appAccountToken", name());
    Some(Said {
        given_id,
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

/// The payload of a JWS, if its signature leads to a trusted root at the time that it names itself.
fn verified(signed: &str, roots: &Roots) -> Option<Node> {
    let jws = Jws::split(signed).ok()?;
    let parsed = |bytes: &[u8]| json::parse(std::str::from_utf8(bytes).ok()?).ok();
    let (header, payload) = (parsed(&jws.header)?, parsed(&jws.payload)?);
    let (algorithm, chain) = read(&header, |header| {
        let algorithm = header.optional("alg", text());
        (
            algorithm,
            header.optional("x5c", texts(CHAIN_CERTIFICATES, certificate)),
        )
    });
    let at = read(&payload, |payload| payload.optional("signedDate", time()))?;
    let holds = algorithm.as_deref() == Some(ALGORITHM) && is_signed(&jws, &chain?, roots, at);
    holds.then_some(payload)
}

fn certificate(text: &str) -> Result<Vec<u8>, Problem> {
    let decoded = STANDARD.decode(text);
    decoded.map_err(|_| Problem::new(FaultCode::InvalidFormat, "Must be Base64."))
}

/// Whether a payload is about the app. In Apple's sandbox an app has no id of its own yet.
fn is_of(app: &App, part: &mut Fields<'_>) -> bool {
    let (Some(bundle), Some(store_id)) = (&app.ios.bundle_id, &app.ios.app_store_id) else {
        return false;
    };
    let is_bundle = part.optional("bundleId", name()).as_ref() == Some(bundle);
    let is_store_id = part.optional("appAppleId", name()).as_ref() == Some(store_id);
    match part.optional("environment", name()).as_deref() {
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
fn price(bought: &mut Fields<'_>, meaning: &Meaning) -> Price {
    let currency = bought.optional("currency", currency());
    let is_part = bought.optional("revocationType", name()).as_deref() == Some("REFUND_PRORATED");
    let mut whole = |field| bought.optional(field, name())?.parse::<i64>().ok();
    let (Some(price), Some(currency)) = (whole("price"), currency) else {
        return Price::default();
    };
    let pieces = whole("quantity").unwrap_or(1).max(1);
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
