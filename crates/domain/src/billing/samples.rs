//! Sample notifications for tests.

use super::money::{MoneyFlow, ReportedPrice};
use super::{
    Notification, NotificationMeaning, ProviderNotification, SettledNotification, Subscriber,
};
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

/// Returns a notification that is dated and received at this second.
pub(crate) fn notification(second: i64, meaning: NotificationMeaning) -> Notification {
    let external_id = format!("n{second:05}");
    Notification {
        app: AppId::from_bytes([1; 16]),
        provider: BillingProvider::Revenuecat,
        event: EventId::new(at(second), [0; 10]),
        content: ProviderNotification {
            external_id,
            kind: "ANY".to_owned(),
            environment: Environment::Live,
            meaning,
            store: None,
            product: Some("weekly".to_owned()),
            transaction: None,
            original_transaction: Some("1000".to_owned()),
            other_transactions: Vec::new(),
            refund: None,
            period: None,
            country: None,
            price: ReportedPrice::default(),
            tax: None,
            commission: None,
            happened_at: Some(at(second)),
            subscriber: Subscriber::default(),
        },
        happened_at: at(second),
        received_at: at(second),
        money: None,
        join: None,
        settled: SettledNotification::default(),
    }
}

/// Returns a notification with a transaction and an amount in USD.
pub(crate) fn money(
    second: i64,
    meaning: NotificationMeaning,
    transaction: &str,
    usd: &str,
) -> Notification {
    let flow = match meaning {
        NotificationMeaning::Refund => MoneyFlow::Out,
        NotificationMeaning::RefundReversed => MoneyFlow::RefundReversed,
        _ => MoneyFlow::In,
    };
    let mut one = notification(second, meaning);
    one.content.transaction = Some(transaction.to_owned());
    one.content.price.usd = Some(Amount::parse(usd).unwrap());
    one.money = one.content.price.to_revenue(flow, None);
    one
}
