//! `RevenueCat`: a value in `Authorization`, a signature, or both.

use super::period::{Words, meaning};
use super::read::{amount, country, currency, flag, id, member, share, text, texts, time};
use super::{Post, Provider, Refused};
use crate::json::Node;
use tributary_domain::access::Environment;
use tributary_domain::billing::money::Price;
use tributary_domain::billing::signature::{is_signed, is_value};
use tributary_domain::billing::{Meaning, PERSON_IDS_MAX, Said, Subscriber};
use tributary_domain::device::{AdvertisingId, DeviceKey, UserKey};

pub(super) struct RevenueCat;

/// The header, by the reference and by a guide.
const SIGNATURES: &[&str] = &["x-revenuecat-webhook-signature", "x-revenuecat-signature"];

impl Provider for RevenueCat {
    /// What is set up is asked for: both, where both are.
    fn authenticate(&self, post: &Post<'_>) -> Result<Node, Refused> {
        let secrets = post.secrets;
        if secrets.values.is_empty() && secrets.signing.is_none() {
            return Err(Refused::Unauthorized);
        }
        let value = post.header("authorization").unwrap_or_default();
        let is_known = secrets
            .values
            .iter()
            .fold(false, |known, secret| known | is_value(value, secret));
        if !secrets.values.is_empty() && !is_known {
            return Err(Refused::Unauthorized);
        }
        if let Some(secret) = &secrets.signing {
            let signature = SIGNATURES.iter().find_map(|name| post.header(name));
            let is_signed = |header| is_signed(header, post.body, secret, post.now);
            if !signature.is_some_and(is_signed) {
                return Err(Refused::Unauthorized);
            }
        }
        post.json()
    }

    fn translate(&self, body: &Node) -> Result<Said, Refused> {
        let event = member(body, "event").ok_or(Refused::Malformed)?;
        let given_id = id(event, "id").ok_or(Refused::Malformed)?;
        let kind = id(event, "type").ok_or(Refused::Malformed)?;
        let (period, store) = (text(event, "period_type"), text(event, "store"));
        let cancel_reason = text(event, "cancel_reason");
        let price = Price {
            paid: amount(event, "price_in_purchased_currency").zip(currency(event, "currency")),
            usd: amount(event, "price"),
        };
        let (meaning, price) = if kind == "TRANSFER" {
            (transfer(event), Price::default())
        } else {
            let words = Words {
                kind: &kind,
                period: period.as_deref(),
                store: store.as_deref(),
                cancel_reason: cancel_reason.as_deref(),
                is_family_share: flag(event, "is_family_share"),
                is_conversion: flag(event, "is_trial_conversion"),
            };
            meaning(&words, price)
        };
        let is_live = text(event, "environment").as_deref() == Some("PRODUCTION")
            && store.as_deref() != Some("TEST_STORE");
        let (bought, said) = (
            time(event, "purchased_at_ms"),
            time(event, "event_timestamp_ms"),
        );
        let happened_at = match meaning {
            Meaning::TrialStart | Meaning::Payment(_) | Meaning::Free(_) => bought.or(said),
            _ => said.or(bought),
        };
        Ok(Said {
            given_id,
            environment: if is_live {
                Environment::Live
            } else {
                Environment::Test
            },
            subscriber: subscriber(event, &meaning),
            meaning,
            kind,
            store,
            product: text(event, "product_id"),
            transaction: text(event, "transaction_id"),
            original_transaction: text(event, "original_transaction_id"),
            period,
            country: country(event, "country_code"),
            price,
            tax: share(event, "tax_percentage"),
            commission: share(event, "commission_percentage"),
            happened_at,
        })
    }
}

fn people(ids: impl Iterator<Item = String>) -> Vec<UserKey> {
    let mut people: Vec<UserKey> = Vec::new();
    for id in ids {
        if let Ok(id) = UserKey::parse(&id)
            && !people.contains(&id)
            && people.len() < PERSON_IDS_MAX
        {
            people.push(id);
        }
    }
    people
}

fn transfer(event: &Node) -> Meaning {
    let ids = |name| people(texts(event, name).into_iter());
    Meaning::Transfer {
        from: ids("transferred_from"),
        to: ids("transferred_to"),
    }
}

fn subscriber(event: &Node, meaning: &Meaning) -> Subscriber {
    let attribute = |name: &str| {
        let attribute = member(member(event, "subscriber_attributes")?, name)?;
        text(attribute, "value")
    };
    let ids = ["app_user_id", "original_app_user_id"];
    let named = ids.iter().filter_map(|name| text(event, name));
    let people = match meaning {
        // Whoever has it now is whom it is about.
        Meaning::Transfer { to, .. } => to.clone(),
        _ => people(named.chain(texts(event, "aliases"))),
    };
    let advertising = ["$idfa", "$gpsAdId"]
        .iter()
        .filter_map(|name| attribute(name));
    Subscriber {
        device: attribute("tributaryId").and_then(|id| DeviceKey::parse(&id).ok()),
        people,
        advertising: advertising
            .filter_map(|id| AdvertisingId::parse(&id))
            .collect(),
    }
}
