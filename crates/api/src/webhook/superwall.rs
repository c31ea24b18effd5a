//! Superwall: signed as Standard Webhooks has it, in `RevenueCat`'s words.

use super::period::{Words, meaning};
use super::read::{amount, country, currency, flag, id, member, share, text, texts, time};
use super::{Post, Provider, Refused};
use crate::json::Node;
use tributary_domain::access::Environment;
use tributary_domain::billing::money::Price;
use tributary_domain::billing::signature::is_standard_signed;
use tributary_domain::billing::{Meaning, PERSON_IDS_MAX, Said, Subscriber};
use tributary_domain::device::{DeviceKey, UserKey};

pub(super) struct Superwall;

/// The two spellings of the headers. A post has one of them.
const HEADERS: &[[&str; 3]] = &[
    ["svix-id", "svix-timestamp", "svix-signature"],
    ["webhook-id", "webhook-timestamp", "webhook-signature"],
];

impl Provider for Superwall {
    fn authenticate(&self, post: &Post<'_>) -> Result<Node, Refused> {
        let signed = HEADERS.iter().find_map(|[id, time, signatures]| {
            Some((
                post.header(id)?,
                post.header(time)?,
                post.header(signatures)?,
            ))
        });
        let (id, time, signatures) = signed.ok_or(Refused::Unauthorized)?;
        let is_signed = post.secrets.values.iter().fold(false, |found, secret| {
            found | is_standard_signed(id, time, signatures, post.body, secret, post.now)
        });
        if !is_signed {
            return Err(Refused::Unauthorized);
        }
        post.json()
    }

    fn translate(&self, body: &Node) -> Result<Said, Refused> {
        let data = member(body, "data").ok_or(Refused::Malformed)?;
        let given_id = id(data, "id").ok_or(Refused::Malformed)?;
        let kind = id(data, "name").or_else(|| id(body, "type"));
        let kind = kind.ok_or(Refused::Malformed)?;
        let (period, store) = (text(data, "periodType"), text(data, "store"));
        let price = Price {
            paid: amount(data, "priceInPurchasedCurrency").zip(currency(data, "currencyCode")),
            usd: amount(data, "price"),
        };
        // A paid introduction that goes on is a conversion as well; whether it is the first payment is decided later.
        let goes_on = matches!(period.as_deref(), Some("TRIAL" | "INTRO"));
        let cancel_reason = text(data, "cancelReason");
        let words = Words {
            kind: &kind.to_ascii_uppercase(),
            period: period.as_deref(),
            store: store.as_deref(),
            cancel_reason: cancel_reason.as_deref(),
            is_family_share: flag(data, "isFamilyShare"),
            is_conversion: flag(data, "isTrialConversion") || goes_on,
        };
        let (meaning, price) = if price.is_negative() {
            (Meaning::Refund, price)
        } else {
            meaning(&words, price)
        };
        let said = time(data, "ts").or_else(|| time(body, "timestamp"));
        let bought = time(data, "purchasedAt");
        let happened_at = match meaning {
            Meaning::TrialStart | Meaning::Payment(_) | Meaning::Free(_) => bought.or(said),
            _ => said.or(bought),
        };
        let environment = text(data, "environment").unwrap_or_default();
        Ok(Said {
            given_id,
            environment: if environment.eq_ignore_ascii_case("production") {
                Environment::Live
            } else {
                Environment::Test
            },
            meaning,
            kind,
            store,
            product: text(data, "productId"),
            transaction: text(data, "transactionId"),
            original_transaction: text(data, "originalTransactionId"),
            period,
            country: country(data, "countryCode"),
            price,
            tax: share(data, "taxPercentage"),
            commission: share(data, "commissionPercentage"),
            happened_at,
            subscriber: subscriber(data),
        })
    }
}

/// Newer payloads carry attributes and aliases; their place is not documented, so both are looked for.
fn subscriber(data: &Node) -> Subscriber {
    let attributes = ["userAttributes", "attributes"].iter();
    let device = attributes
        .filter_map(|name| member(data, name))
        .find_map(|attributes| text(attributes, "tributaryId"));
    let named = text(data, "originalAppUserId");
    let mut people: Vec<UserKey> = Vec::new();
    for id in named.into_iter().chain(texts(data, "aliases")) {
        if let Ok(id) = UserKey::parse(&id)
            && !people.contains(&id)
            && people.len() < PERSON_IDS_MAX
        {
            people.push(id);
        }
    }
    Subscriber {
        device: device.and_then(|id| DeviceKey::parse(&id).ok()),
        people,
        advertising: Vec::new(),
    }
}
