//! Subscriptions, as `RevenueCat` reports them: trials, conversions, renewals, refunds and expired
//! trials.

use crate::organization::{Sample, fixed_runtime};
use crate::sample_app::{SampleAction, SampleApp, SampleDevice};
use std::time::Duration;
use tributary_domain::access::Actor;
use tributary_domain::app::{AppChange, AppSecret, BillingProvider, QualifiedTrial};
use tributary_domain::billing::hold::trial_hold;
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{
    IncomingNotification, NotificationMeaning, PaymentClaim, ProviderNotification, Subscriber,
};
use tributary_domain::keyring::Keyring;
use tributary_domain::keyring::secret_scope::{APP_SECRET_SCOPE, SecretScope};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Store, StoreResult};

const PROVIDER: BillingProvider = BillingProvider::Revenuecat;
/// One in this many installs begins a trial.
const INSTALLS_PER_TRIAL: u64 = 16;
/// Days of a trial, and of each paid period.
const PERIOD_DAYS: u32 = 7;
/// One in this many trials ends without a payment.
const TRIALS_PER_EXPIRATION: u64 = 3;
/// One in this many subscribers gets the first payment back. Coprime to
/// [`TRIALS_PER_EXPIRATION`], so that both occur.
const SUBSCRIBERS_PER_REFUND: u64 = 8;
/// Days from the first payment to its refund.
const REFUND_DAYS: u32 = 2;
/// Most paid periods of a subscriber, after which the subscription is not renewed.
const PERIODS_MAX: u64 = 10;
/// Price of a period in millionths of a US dollar.
const PRICE_MICROS: i64 = 6_990_000;
/// Time from the first open to the trial.
const TRIAL_AFTER: Duration = Duration::from_mins(3);
/// Time from an event to its notification.
const NOTIFIED_AFTER: Duration = Duration::from_secs(20);

/// What happens to a subscription on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubscriptionStep {
    Trial,
    Expiration,
    Conversion,
    Refund,
    Renewal,
}

/// Returns what happens to a subscriber a number of days after the install.
const fn step(subscriber: u64, days: u32) -> Option<SubscriptionStep> {
    if days == 0 {
        return Some(SubscriptionStep::Trial);
    }
    let expires = subscriber.is_multiple_of(TRIALS_PER_EXPIRATION);
    let is_refunded = subscriber % SUBSCRIBERS_PER_REFUND == 1;
    if days == PERIOD_DAYS {
        return Some(if expires {
            SubscriptionStep::Expiration
        } else {
            SubscriptionStep::Conversion
        });
    }
    if expires || days < PERIOD_DAYS {
        return None;
    }
    if is_refunded {
        let is_due = days == PERIOD_DAYS + REFUND_DAYS;
        return if is_due {
            Some(SubscriptionStep::Refund)
        } else {
            None
        };
    }
    let is_renewed = days.is_multiple_of(PERIOD_DAYS)
        && (days / PERIOD_DAYS) as u64 <= 1 + subscriber % PERIODS_MAX;
    if is_renewed {
        Some(SubscriptionStep::Renewal)
    } else {
        None
    }
}

impl SubscriptionStep {
    /// Returns the provider's type and the meaning of the notification.
    fn kind(self) -> (&'static str, NotificationMeaning) {
        let payment = NotificationMeaning::Payment;
        match self {
            Self::Trial => ("INITIAL_PURCHASE", NotificationMeaning::TrialStart),
            Self::Expiration => (
                "EXPIRATION",
                NotificationMeaning::Lifecycle("expiration".to_owned()),
            ),
            Self::Conversion => ("RENEWAL", payment(PaymentClaim::Conversion)),
            Self::Refund => ("CANCELLATION", NotificationMeaning::Refund),
            Self::Renewal => ("RENEWAL", payment(PaymentClaim::Continuation)),
        }
    }

    const fn price_micros(self) -> Option<i64> {
        match self {
            Self::Trial => Some(0),
            Self::Expiration => None,
            Self::Conversion | Self::Renewal => Some(PRICE_MICROS),
            Self::Refund => Some(-PRICE_MICROS),
        }
    }
}

/// Returns the notifications of a day.
pub(crate) fn of_day(app: &SampleApp, day: u32) -> Vec<SampleAction> {
    let trials = app.installs_before(day + 1).div_ceil(INSTALLS_PER_TRIAL);
    let notification = |subscriber: u64| {
        let number = subscriber * INSTALLS_PER_TRIAL;
        let days = day.checked_sub(app.install_day(number))?;
        let step = step(subscriber, days)?;
        let device = app.device(number);
        let arrival = notification(app, number, &device, step, days);
        Some(SampleAction::Billing(Box::new(arrival)))
    };
    (0..trials).filter_map(notification).collect()
}

fn notification(
    app: &SampleApp,
    number: u64,
    device: &SampleDevice,
    step: SubscriptionStep,
    days: u32,
) -> IncomingNotification {
    let (kind, meaning) = step.kind();
    let later = Duration::from_hours(24 * u64::from(days));
    let at = device.installed_at().plus(TRIAL_AFTER).plus(later);
    let first = format!("2000{number:011}");
    // A refund names the payment.
    let paid_days = if step == SubscriptionStep::Refund {
        PERIOD_DAYS
    } else {
        days
    };
    let transaction = format!("{first}.{}", paid_days / PERIOD_DAYS);
    let external_id = format!("{first}-{}-{}", kind.to_ascii_lowercase(), at.as_millis());
    let period = if days == 0 { "TRIAL" } else { "NORMAL" };
    let price = step.price_micros().map(Amount::from_micros);
    IncomingNotification {
        app: app.app,
        provider: PROVIDER,
        body: body(&external_id, kind, period, &transaction, price, at),
        content: ProviderNotification {
            external_id,
            kind: kind.to_owned(),
            environment: app.environment,
            meaning,
            store: Some(device.store().to_owned()),
            product: Some("premium_weekly".to_owned()),
            transaction: Some(transaction),
            original_transaction: Some(first),
            other_transactions: Vec::new(),
            refund: None,
            period: Some(period.to_owned()),
            country: Some(device.country().to_owned()),
            price: ReportedPrice {
                paid: None,
                usd: price,
            },
            tax: None,
            commission: Some("0.15".to_owned()),
            happened_at: Some(at),
            subscriber: Subscriber {
                people: vec![device.user()],
                ..Subscriber::default()
            },
        },
        received_at: at.plus(NOTIFIED_AFTER),
        trial_hold: trial_hold(&QualifiedTrial::default()),
    }
}

/// Returns the body of a notification, without personal data.
fn body(
    id: &str,
    kind: &str,
    period: &str,
    transaction: &str,
    price: Option<Amount>,
    at: Timestamp,
) -> String {
    let price = price.map_or_else(|| "null".to_owned(), |price| price.to_string());
    let millis = at.as_millis();
    format!(
        "{{\"api_version\":\"1.0\",\"event\":{{\"id\":\"{id}\",\"type\":\"{kind}\",\
         \"period_type\":\"{period}\",\"product_id\":\"premium_weekly\",\
         \"transaction_id\":\"{transaction}\",\"price\":{price},\
         \"event_timestamp_ms\":{millis},\"environment\":\"PRODUCTION\"}}}}"
    )
}

impl Sample {
    /// Sets up the billing provider of every app, as of the start of its history.
    pub(crate) async fn connect_billing(
        &self,
        store: &dyn Store,
        keyring: &Keyring,
        real: &Runtime,
    ) -> StoreResult<()> {
        for app in &self.apps {
            let secret = AppSecret::Billing(PROVIDER);
            let organization = self.writer.organization();
            let scope = SecretScope::new(organization, app.app, APP_SECRET_SCOPE, secret.as_str());
            let text = b"sample-billing-secret-0123456789";
            let sealed = keyring.seal(&scope.parts(), real.random_bytes(), text);
            let change = AppChange {
                secrets: vec![(secret, Change::Set(sealed))],
                ..AppChange::default()
            };
            let origin = fixed_runtime(app.begin, app.seed).origin(Actor::Operator, None, None);
            let none = Precondition::None;
            store
                .update_app(&self.writer, app.app, change, none, origin)
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_app::tests::app;
    use rstest::rstest;
    use std::collections::BTreeSet;

    #[rstest]
    #[case::trial(4, 0, Some(SubscriptionStep::Trial))]
    #[case::during_the_trial(4, 3, None)]
    #[case::pays(4, 7, Some(SubscriptionStep::Conversion))]
    #[case::does_not_pay(3, 7, Some(SubscriptionStep::Expiration))]
    #[case::nothing_after_the_end(3, 14, None)]
    #[case::renews(4, 14, Some(SubscriptionStep::Renewal))]
    #[case::last_renewal(4, 35, Some(SubscriptionStep::Renewal))]
    #[case::ended(4, 42, None)]
    #[case::refund(1, 9, Some(SubscriptionStep::Refund))]
    #[case::not_after_a_refund(1, 14, None)]
    fn subscriptions_have_a_course(
        #[case] subscriber: u64,
        #[case] days: u32,
        #[case] expected: Option<SubscriptionStep>,
    ) {
        assert_eq!(step(subscriber, days), expected);
    }

    #[test]
    fn notifications_have_different_ids_and_come_after_the_install() {
        let app = app(1);
        let mut seen = BTreeSet::new();
        let mut kinds = BTreeSet::new();
        for day in 0..app.days {
            for action in of_day(&app, day) {
                let SampleAction::Billing(one) = action else {
                    unreachable!("only notifications");
                };
                assert!((day..=day + 1).contains(&app.day_of(one.received_at)));
                assert!(seen.insert(one.content.external_id.clone()), "{one:?}");
                kinds.insert(one.content.kind.clone());
            }
        }
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let expected = ["CANCELLATION", "EXPIRATION", "INITIAL_PURCHASE", "RENEWAL"];
        assert_eq!(kinds, expected);
    }
}
