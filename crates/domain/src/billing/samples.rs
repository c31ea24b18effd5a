//! Notifications to try the rules with.

use super::money::{Price, Sign};
use super::{Meaning, Notification, Said, Standing, Subscriber};
use crate::access::Environment;
use crate::app::BillingProvider;
use crate::device::{DeviceKey, UserKey};
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;

pub(crate) const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

pub(crate) fn device(name: &str) -> DeviceKey {
    DeviceKey::stored(name.to_owned())
}

pub(crate) fn person(name: &str) -> UserKey {
    UserKey::stored(name.to_owned())
}

/// Something of a subscription that happened and arrived at that second.
pub(crate) fn notification(second: i64, meaning: Meaning) -> Notification {
    let given_id = format!("n{second:05}");
    Notification {
        app: AppId::from_bytes([1; 16]),
        provider: BillingProvider::Revenuecat,
        event: EventId::new(at(second), [0; 10]),
        said: Said {
            given_id,
            kind: "ANY".to_owned(),
            environment: Environment::Live,
            meaning,
            store: None,
            product: Some("weekly".to_owned()),
            transaction: None,
            original_transaction: Some("1000".to_owned()),
            period: None,
            country: None,
            price: Price::default(),
            tax: None,
            commission: None,
            happened_at: Some(at(second)),
            subscriber: Subscriber::default(),
        },
        happened_at: at(second),
        received_at: at(second),
        money: None,
        join: None,
        standing: Standing::default(),
    }
}

/// The same with money, in dollars, of a transaction.
pub(crate) fn money(second: i64, meaning: Meaning, transaction: &str, usd: &str) -> Notification {
    let sign = match meaning {
        Meaning::Refund => Sign::Out,
        Meaning::RefundReversed => Sign::Again,
        _ => Sign::In,
    };
    let mut one = notification(second, meaning);
    one.said.transaction = Some(transaction.to_owned());
    one.said.price.usd = Some(Amount::parse(usd).unwrap());
    one.money = one.said.price.judged(sign, None);
    one
}
