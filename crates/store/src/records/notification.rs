//! Billing notifications as JSON in a column. Missing fields are omitted.

use super::columns::row;
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::join::{Join, JoinRule};
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{
    Chain, Notification, NotificationMeaning, PaymentClaim, ProviderNotification,
    SettledNotification, Subscriber,
};
use tributary_domain::device::{AdvertisingId, DeviceKey, UserKey};
use tributary_domain::event::sdk::DeviceContext;
use tributary_domain::event::{Event, EventSource};
use tributary_domain::install::DeviceState;
use tributary_domain::ledger::{Revenue, UncountedReason};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `notifications`, without the body.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct NotificationRow {
        pub app_id: [u8; 16],
        pub provider: String,
        pub given_id: String,
        pub environment: String,
        pub chain: String,
        pub happened_at: i64,
        pub received_at: i64,
        pub event_id: [u8; 16],
        pub facts: String,
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MeaningJson {
    Receipt,
    TrialStart,
    Free(String),
    Payment(String),
    Refund,
    RefundReversed,
    Lifecycle(String),
    Transfer(Vec<String>, Vec<String>),
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct FactsJson {
    kind: String,
    meaning: Option<MeaningJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    product: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_transaction: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_transactions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paid: Option<(i64, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tax: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commission: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    said_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    people: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advertising: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    money: Option<RevenueJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    join: Option<(String, String)>,
    /// Missing in rows that were written before schema version 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    joined_since: Option<i64>,
    standing: SettledJson,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct SettledJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revenue: Option<RevenueJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    web_payment: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct RevenueJson {
    amount: i64,
    currency: Option<String>,
    usd: Option<i64>,
    rate_day: Option<i32>,
    rate: Option<String>,
    rate_source: Option<String>,
    uncounted: Option<String>,
}

impl RevenueJson {
    fn write(revenue: &Revenue) -> Self {
        Self {
            amount: revenue.amount.micros(),
            currency: revenue.currency.map(|it| it.as_str().to_owned()),
            usd: revenue.usd.map(Amount::micros),
            rate_day: revenue.rate_day.map(Day::as_days),
            rate: revenue.rate.clone(),
            rate_source: revenue.rate_source.clone(),
            uncounted: revenue.uncounted.map(|it| it.as_str().to_owned()),
        }
    }

    fn read(self) -> Option<Revenue> {
        Some(Revenue {
            amount: Amount::from_micros(self.amount),
            currency: match self.currency {
                Some(text) => Some(Currency::from_stored(&text)?),
                None => None,
            },
            usd: self.usd.map(Amount::from_micros),
            rate_day: self.rate_day.map(Day::from_days),
            rate: self.rate,
            rate_source: self.rate_source,
            uncounted: match self.uncounted {
                Some(text) => Some(UncountedReason::parse(&text)?),
                None => None,
            },
        })
    }
}

const CLAIMS: &[(PaymentClaim, &str)] = &[
    (PaymentClaim::OneOff, "one_off"),
    (PaymentClaim::Start, "start"),
    (PaymentClaim::Conversion, "conversion"),
    (PaymentClaim::Continuation, "continuation"),
    (PaymentClaim::AfterTrial, "after_trial"),
    (PaymentClaim::Return, "return"),
];

impl MeaningJson {
    fn write(meaning: &NotificationMeaning) -> Self {
        let texts = |all: &[UserKey]| all.iter().map(|it| it.as_str().to_owned()).collect();
        match meaning {
            NotificationMeaning::Receipt => Self::Receipt,
            NotificationMeaning::TrialStart => Self::TrialStart,
            NotificationMeaning::Free(name) => Self::Free(name.clone()),
            NotificationMeaning::Payment(claim) => {
                let known = CLAIMS.iter().find(|(one, _)| one == claim);
                Self::Payment(known.map_or("", |(_, text)| *text).to_owned())
            }
            NotificationMeaning::Refund => Self::Refund,
            NotificationMeaning::RefundReversed => Self::RefundReversed,
            NotificationMeaning::Lifecycle(name) => Self::Lifecycle(name.clone()),
            NotificationMeaning::Transfer { from, to } => Self::Transfer(texts(from), texts(to)),
        }
    }

    fn read(self) -> Option<NotificationMeaning> {
        let keys = |all: Vec<String>| all.into_iter().map(UserKey::stored).collect();
        Some(match self {
            Self::Receipt => NotificationMeaning::Receipt,
            Self::TrialStart => NotificationMeaning::TrialStart,
            Self::Free(name) => NotificationMeaning::Free(name),
            Self::Payment(text) => {
                let known = CLAIMS.iter().find(|(_, one)| *one == text);
                NotificationMeaning::Payment(known?.0)
            }
            Self::Refund => NotificationMeaning::Refund,
            Self::RefundReversed => NotificationMeaning::RefundReversed,
            Self::Lifecycle(name) => NotificationMeaning::Lifecycle(name),
            Self::Transfer(from, to) => NotificationMeaning::Transfer {
                from: keys(from),
                to: keys(to),
            },
        })
    }
}

row! {
    /// The subscription columns that several tables share, besides app and environment.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[expect(missing_docs, reason = "columns")]
    pub struct ChainRow {
        pub provider: String,
        pub chain: String,
    }
}

impl ChainRow {
    /// Reads an app's subscription.
    pub fn read(self, (app, environment): (AppId, Environment)) -> Result<Chain, StoreError> {
        Ok(Chain {
            app,
            environment,
            provider: billing_provider(app, &self.provider)?,
            name: self.chain,
        })
    }
}

/// Parses the provider column in a row of an app.
pub fn billing_provider(app: AppId, text: &str) -> Result<BillingProvider, StoreError> {
    BillingProvider::parse(text).ok_or_else(|| StoreError::corrupt("billing", "provider", app))
}

impl NotificationRow {
    /// Converts a notification to columns.
    pub fn write(one: &Notification) -> Self {
        let content = &one.content;
        let facts = FactsJson {
            kind: content.kind.clone(),
            meaning: Some(MeaningJson::write(&content.meaning)),
            store: content.store.clone(),
            product: content.product.clone(),
            transaction: content.transaction.clone(),
            original_transaction: content.original_transaction.clone(),
            other_transactions: content.other_transactions.clone(),
            refund: content.refund.clone(),
            period: content.period.clone(),
            country: content.country.clone(),
            paid: content
                .price
                .paid
                .map(|(amount, currency)| (amount.micros(), currency.as_str().to_owned())),
            usd: content.price.usd.map(Amount::micros),
            tax: content.tax.clone(),
            commission: content.commission.clone(),
            said_at: content.happened_at.map(Timestamp::as_millis),
            device: text(content.subscriber.device.as_ref()),
            people: content
                .subscriber
                .people
                .iter()
                .map(|it| it.as_str().to_owned())
                .collect(),
            advertising: content
                .subscriber
                .advertising
                .iter()
                .map(|it| it.as_str().to_owned())
                .collect(),
            money: one.money.as_ref().map(RevenueJson::write),
            join: one
                .join
                .as_ref()
                .map(|it| (it.device.as_str().to_owned(), it.rule.as_str().to_owned())),
            joined_since: one.join.as_ref().map(|it| it.since.as_millis()),
            standing: SettledJson {
                name: one.settled.name.clone(),
                cause: one.settled.cause.clone(),
                device: text(one.settled.device.as_ref()),
                user: one.settled.user.as_ref().map(|it| it.as_str().to_owned()),
                revenue: one.settled.revenue.as_ref().map(RevenueJson::write),
                web_payment: one.settled.web_payment.map(|id| id.to_string()),
            },
        };
        Self {
            app_id: *one.app.as_bytes(),
            provider: one.provider.as_str().to_owned(),
            given_id: content.external_id.clone(),
            environment: content.environment.as_str().to_owned(),
            chain: one.chain(),
            happened_at: one.happened_at.as_millis(),
            received_at: one.received_at.as_millis(),
            event_id: *one.event.as_bytes(),
            facts: to_json(&facts),
        }
    }

    /// Reads the notification.
    pub fn read(self) -> Result<Notification, StoreError> {
        let event = EventId::from_bytes(self.event_id);
        let facts: FactsJson = from_json("notifications", "facts", event, &self.facts)?;
        let corrupt = |column| StoreError::corrupt("notifications", column, event);
        let provider = BillingProvider::parse(&self.provider).ok_or_else(|| corrupt("provider"))?;
        let environment =
            Environment::parse(&self.environment).ok_or_else(|| corrupt("environment"))?;
        facts
            .read(provider, environment, &self)
            .ok_or_else(|| corrupt("facts"))
    }
}

impl FactsJson {
    fn read(
        self,
        provider: BillingProvider,
        environment: Environment,
        row: &NotificationRow,
    ) -> Option<Notification> {
        let paid = match self.paid {
            Some((amount, currency)) => Some((
                Amount::from_micros(amount),
                Currency::from_stored(&currency)?,
            )),
            None => None,
        };
        let join = match self.join {
            Some((device, rule)) => Some(Join {
                device: DeviceKey::stored(device),
                rule: JoinRule::parse(&rule)?,
                since: Timestamp::from_millis(self.joined_since.unwrap_or(row.happened_at)),
            }),
            None => None,
        };
        let money = match self.money {
            Some(money) => Some(money.read()?),
            None => None,
        };
        let revenue = match self.standing.revenue {
            Some(revenue) => Some(revenue.read()?),
            None => None,
        };
        let web_payment = match self.standing.web_payment {
            Some(id) => Some(EventId::parse(&id).ok()?),
            None => None,
        };
        let advertising = self.advertising.into_iter().map(AdvertisingId::stored);
        Some(Notification {
            app: AppId::from_bytes(row.app_id),
            provider,
            event: EventId::from_bytes(row.event_id),
            content: ProviderNotification {
                external_id: row.given_id.clone(),
                kind: self.kind,
                environment,
                meaning: self.meaning?.read()?,
                store: self.store,
                product: self.product,
                transaction: self.transaction,
                original_transaction: self.original_transaction,
                other_transactions: self.other_transactions,
                refund: self.refund,
                period: self.period,
                country: self.country,
                price: ReportedPrice {
                    paid,
                    usd: self.usd.map(Amount::from_micros),
                },
                tax: self.tax,
                commission: self.commission,
                happened_at: self.said_at.map(Timestamp::from_millis),
                subscriber: Subscriber {
                    device: self.device.map(DeviceKey::stored),
                    people: self.people.into_iter().map(UserKey::stored).collect(),
                    advertising: advertising.collect(),
                },
            },
            happened_at: Timestamp::from_millis(row.happened_at),
            received_at: Timestamp::from_millis(row.received_at),
            money,
            join,
            settled: SettledNotification {
                name: self.standing.name,
                cause: self.standing.cause,
                device: self.standing.device.map(DeviceKey::stored),
                user: self.standing.user.map(UserKey::stored),
                revenue,
                web_payment,
            },
        })
    }
}

fn text(device: Option<&DeviceKey>) -> Option<String> {
    device.map(|device| device.as_str().to_owned())
}

/// Builds a notification's event, with or without a device.
pub fn billing_event(notification: &Notification, state: &DeviceState) -> Option<Event> {
    let device = state.device.as_ref();
    let owner = DeviceContext {
        user: state.identity.user.clone(),
        platform: device.map(|device| device.traits.platform),
        country: device.and_then(|device| device.country.clone()),
        credit: state
            .attribution
            .as_ref()
            .map(tributary_domain::install::Attribution::credit),
        first_payment: None,
    };
    notification.event(&owner, params(notification))
}

/// Builds the event parameters from the notification's own fields.
fn params(notification: &Notification) -> String {
    let content = &notification.content;
    let params = [
        ("provider", Some(notification.provider.as_str())),
        ("type", Some(content.kind.as_str())),
        ("store", content.store.as_deref()),
        ("productId", content.product.as_deref()),
        ("transactionId", content.transaction.as_deref()),
        (
            "originalTransactionId",
            content.original_transaction.as_deref(),
        ),
        ("refundId", content.refund.as_deref()),
        ("periodType", content.period.as_deref()),
        ("taxPercentage", content.tax.as_deref()),
        ("commissionPercentage", content.commission.as_deref()),
        ("cause", notification.settled.cause.as_deref()),
    ];
    let present = params
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    to_json(&present.collect::<serde_json::Map<_, _>>())
}

/// The field of [`params`] that the API shows separately.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OriginalTransaction {
    original_transaction_id: Option<String>,
}

/// Returns the transaction that an event belongs to: the payment that a web event names, or the
/// first transaction of a billing event's subscription. An erased billing event has none, because
/// the app store could identify the person by the transaction.
pub fn original_transaction(event: &Event) -> Option<Cow<'_, str>> {
    match event.source {
        EventSource::Web => event.website.as_ref()?.parent.as_deref().map(Cow::Borrowed),
        EventSource::Billing => {
            let params: OriginalTransaction =
                serde_json::from_str(event.params.as_deref()?).ok()?;
            params.original_transaction_id.map(Cow::Owned)
        }
        // SDK parameters have no fixed meaning.
        EventSource::Sdk => None,
    }
}
