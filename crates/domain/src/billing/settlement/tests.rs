use super::super::QUALIFIED_TRIAL;
use super::super::samples::{at, device, money, notification, person};
use super::super::{PRODUCT_CHANGE, PURCHASE, PaymentClaim, RENEWAL, START_TRIAL, SUBSCRIBE};
use super::*;
use crate::billing::join::DeviceLink;
use crate::device::AdvertisingId;
use crate::ledger::UncountedReason;
use crate::vocabulary::money::Amount;
use proptest::prelude::*;
use rstest::rstest;

/// Settles notifications and returns their effects in the same order.
fn settle(all: &[Notification]) -> Vec<SettledNotification> {
    let connected = ConnectedSubscriptions {
        notifications: all.to_vec(),
        ..ConnectedSubscriptions::default()
    };
    let (after, _) = connected.outcome(at(1_000));
    all.iter()
        .map(|one| after[&id(one)].settled.clone())
        .collect()
}

fn payment(second: i64, claim: PaymentClaim, transaction: &str, usd: &str) -> Notification {
    money(
        second,
        NotificationMeaning::Payment(claim),
        transaction,
        usd,
    )
}

#[rstest]
#[case::one_off(PaymentClaim::OneOff, None, PURCHASE, None)]
#[case::one_off_again(PaymentClaim::OneOff, Some("weekly"), PURCHASE, None)]
#[case::start(PaymentClaim::Start, None, PURCHASE, None)]
#[case::upgrade(PaymentClaim::Start, Some("monthly"), RENEWAL, Some(PRODUCT_CHANGE))]
#[case::return_as_a_start(PaymentClaim::Start, Some("weekly"), RENEWAL, Some("resubscribe"))]
#[case::conversion(PaymentClaim::Conversion, None, SUBSCRIBE, None)]
#[case::conversion_of_a_payer(PaymentClaim::Conversion, Some("weekly"), RENEWAL, None)]
#[case::continuation(PaymentClaim::Continuation, None, RENEWAL, None)]
#[case::a_period_without_a_trial(PaymentClaim::AfterTrial, None, RENEWAL, None)]
#[case::a_return(PaymentClaim::Return, None, RENEWAL, Some("resubscribe"))]
fn names_payments(
    #[case] claim: PaymentClaim,
    #[case] before: Option<&str>,
    #[case] name: &str,
    #[case] cause: Option<&str>,
) {
    let one = payment(5, claim, "t1", "4.99");
    let before = before.map(|product| {
        let mut paid = payment(1, PaymentClaim::Start, "t0", "4.99");
        paid.content.product = Some(product.to_owned());
        paid
    });
    let all: Vec<Notification> = std::iter::once(one).chain(before).collect();
    let settled = settle(&all);
    assert_eq!(settled[0].name.as_deref(), Some(name));
    assert_eq!(settled[0].cause.as_deref(), cause);
}

/// Moves a notification to the subscription `chain`.
fn in_chain(chain: &str, mut one: Notification) -> Notification {
    one.content.external_id = format!("{chain}:{}", one.content.external_id);
    one.content.original_transaction = Some(chain.to_owned());
    one
}

fn of_people(people: &[&str], mut one: Notification) -> Notification {
    one.content.subscriber.people = people.iter().map(|name| person(name)).collect();
    one
}

fn on_device(name: &str, mut one: Notification) -> Notification {
    one.content.subscriber.device = Some(device(name));
    one
}

#[rstest]
#[case::the_same_person(&["p"], None, &["p"], None, RENEWAL)]
#[case::one_of_their_ids(&["p"], None, &["q", "p"], None, RENEWAL)]
#[case::the_same_device(&[], Some("d"), &["q"], Some("d"), RENEWAL)]
#[case::nothing_in_common(&["p"], Some("d"), &["q"], Some("e"), PURCHASE)]
fn finds_earlier_payments_of_other_subscriptions(
    #[case] people: &[&str],
    #[case] named: Option<&str>,
    #[case] later_people: &[&str],
    #[case] later_named: Option<&str>,
    #[case] expected: &str,
) {
    let mut first = of_people(
        people,
        in_chain("s1", payment(1, PaymentClaim::Start, "t1", "5")),
    );
    let mut second = of_people(
        later_people,
        in_chain("s2", payment(2, PaymentClaim::Start, "t2", "5")),
    );
    first.content.subscriber.device = named.map(device);
    second.content.subscriber.device = later_named.map(device);
    let settled = settle(&[second, first]);
    assert_eq!(settled[0].name.as_deref(), Some(expected));
}

#[test]
fn a_period_after_a_trial_is_a_conversion_in_any_order() {
    let trial = notification(1, NotificationMeaning::TrialStart);
    let period = payment(2, PaymentClaim::AfterTrial, "t2", "4.99");
    let settled = settle(&[period.clone(), trial.clone()]);
    assert_eq!(settled[0].name.as_deref(), Some(SUBSCRIBE));
    assert_eq!(settle(&[trial, period])[1], settled[0]);
}

fn usd(settled: &SettledNotification) -> (String, Option<UncountedReason>) {
    let revenue = settled.revenue.as_ref().unwrap();
    (revenue.usd.unwrap().to_string(), revenue.uncounted)
}

#[test]
fn a_refund_without_its_payment_waits_for_it() {
    let refund = money(5, NotificationMeaning::Refund, "t1", "-9.99");
    let alone = settle(std::slice::from_ref(&refund));
    let uncounted = Some(UncountedReason::PaymentNotCounted);
    assert_eq!(usd(&alone[0]), ("-9.99".to_owned(), uncounted));
    let paid = payment(1, PaymentClaim::Start, "t1", "9.99");
    let settled = settle(&[refund, paid]);
    assert_eq!(usd(&settled[0]), ("-9.99".to_owned(), None));
}

#[rstest]
#[case::by_transaction("t1", "-4.99")]
#[case::of_the_latest_payment("another", "-9.99")]
fn refunds_find_their_payment(#[case] transaction: &str, #[case] expected: &str) {
    let mut refund = money(9, NotificationMeaning::Refund, transaction, "-50");
    let chain = |refund: &Notification| {
        [
            payment(1, PaymentClaim::Start, "t1", "4.99"),
            payment(5, PaymentClaim::Continuation, "t2", "9.99"),
            payment(20, PaymentClaim::Continuation, "t3", "19.99"),
            refund.clone(),
        ]
    };
    // An excess refund is stored, but counts only up to the payment.
    assert_eq!(
        usd(&settle(&chain(&refund))[3]),
        (expected.to_owned(), None)
    );
    assert_eq!(
        settle(&chain(&refund))[3]
            .revenue
            .as_ref()
            .unwrap()
            .amount
            .to_string(),
        "-50"
    );
    refund.happened_at = super::super::samples::at(0);
    refund.content.transaction = None;
    let uncounted = Some(UncountedReason::PaymentNotCounted);
    assert_eq!(
        usd(&settle(&chain(&refund))[3]).1,
        uncounted,
        "there is no earlier payment"
    );
}

#[test]
fn refunds_never_exceed_their_payment_and_are_reversed_once() {
    let chain = [
        payment(1, PaymentClaim::Start, "t1", "10"),
        money(2, NotificationMeaning::Refund, "t1", "-10"),
        money(3, NotificationMeaning::Refund, "t1", "-10"),
        money(4, NotificationMeaning::RefundReversed, "t1", "10"),
        money(5, NotificationMeaning::RefundReversed, "t1", "10"),
    ];
    let settled = settle(&chain);
    assert_eq!(usd(&settled[1]), ("-10".to_owned(), None));
    assert_eq!(settled[2].name, None, "a refund under two ids counts once");
    assert_eq!(usd(&settled[3]), ("10".to_owned(), None));
    assert_eq!(
        usd(&settled[4]),
        ("0".to_owned(), Some(UncountedReason::Zero))
    );
}

#[test]
fn a_refund_of_an_uncounted_payment_does_not_count() {
    let chain = [
        payment(1, PaymentClaim::Start, "t1", "2000.01"),
        money(2, NotificationMeaning::Refund, "t1", "-2000.01"),
    ];
    let settled = settle(&chain);
    assert_eq!(usd(&settled[0]).1, Some(UncountedReason::OverLimit));
    assert_eq!(usd(&settled[1]).1, Some(UncountedReason::PaymentNotCounted));
}

#[test]
fn a_full_refund_nets_to_zero_whatever_the_rates_did() {
    let mut paid = payment(1, PaymentClaim::Start, "t1", "8.14");
    let mut refund = money(2, NotificationMeaning::Refund, "t1", "-9.01");
    for (one, amount) in [(&mut paid, "7.99"), (&mut refund, "-7.99")] {
        let money = one.money.as_mut().unwrap();
        money.amount = Amount::parse(amount).unwrap();
        money.currency = crate::vocabulary::currency::Currency::from_stored("EUR");
    }
    assert_eq!(usd(&settle(&[paid, refund])[1]), ("-8.14".to_owned(), None));
}

#[test]
fn one_transaction_under_two_ids_is_one_payment() {
    let first = payment(1, PaymentClaim::Start, "t1", "4.99");
    let mut again = payment(1, PaymentClaim::Continuation, "t1", "4.99");
    "z-another".clone_into(&mut again.content.external_id);
    let settled = settle(&[again, first]);
    assert_eq!(settled[0].name, None, "the earliest report counts");
    assert_eq!(settled[0].revenue, None);
    assert_eq!(settled[1].name.as_deref(), Some(PURCHASE));
}

#[test]
fn a_receipt_causes_no_event() {
    let settled = settle(&[notification(1, NotificationMeaning::Receipt)]);
    assert_eq!(settled[0].name, None);
    assert_ne!(QUALIFIED_TRIAL, START_TRIAL);
}

#[test]
fn a_first_payment_of_a_subscription_that_began_with_a_trial_is_a_conversion() {
    let trial = notification(1, NotificationMeaning::TrialStart);
    let paid = payment(2, PaymentClaim::Start, "t2", "4.99");
    assert_eq!(settle(&[paid, trial])[0].name.as_deref(), Some(SUBSCRIBE));
}

/// Example from the acceptance tests: an advertising id joins the second subscription to the first
/// subscription's device, until a later notification names another device.
#[test]
fn a_subscription_that_moves_to_another_device_takes_its_first_payment_along() {
    let advertising_id = AdvertisingId::stored("ad".to_owned());
    let mut second = in_chain("tx2", payment(2, PaymentClaim::Start, "tx2", "5"));
    second.content.subscriber.advertising = vec![advertising_id.clone()];
    let connected = ConnectedSubscriptions {
        notifications: vec![
            on_device(
                "A",
                in_chain("tx1", payment(1, PaymentClaim::Start, "tx1", "5")),
            ),
            second.clone(),
            on_device(
                "B",
                in_chain("tx2", payment(3, PaymentClaim::Continuation, "tx3", "5")),
            ),
        ],
        advertising: vec![DeviceLink {
            id: advertising_id,
            device: device("A"),
            since: at(0),
            latest: at(0),
            is_used: true,
            is_signed: false,
            is_flagged: false,
        }],
        ..ConnectedSubscriptions::default()
    };
    let (after, _) = connected.outcome(at(9));
    let settled = &after[&id(&second)].settled;
    assert_eq!(settled.name.as_deref(), Some(PURCHASE));
    assert_eq!(settled.device, Some(device("B")));
    let mut without = connected;
    without.notifications.pop();
    let (after, _) = without.outcome(at(9));
    assert_eq!(after[&id(&second)].settled.name.as_deref(), Some(RENEWAL));
}

#[test]
fn transferred_payments_count_whenever_the_transfer_arrives() {
    let first = of_people(
        &["p"],
        in_chain("s1", payment(1, PaymentClaim::Start, "t1", "5")),
    );
    let second = of_people(
        &["r"],
        in_chain("s2", payment(5, PaymentClaim::Start, "t2", "5")),
    );
    let transfer = |from: &str, to: &str, second| {
        let meaning = NotificationMeaning::Transfer {
            from: vec![person(from)],
            to: vec![person(to)],
        };
        in_chain("alone", notification(second, meaning))
    };
    let all = [second, transfer("q", "r", 7), first, transfer("p", "q", 9)];
    assert_eq!(settle(&all)[0].name.as_deref(), Some(RENEWAL));
    assert_eq!(settle(&all[..3])[0].name.as_deref(), Some(PURCHASE));
}

fn lifecycle_of_a_subscription() -> Vec<Notification> {
    let lifecycle =
        |second, name: &str| notification(second, NotificationMeaning::Lifecycle(name.to_owned()));
    vec![
        notification(1, NotificationMeaning::TrialStart),
        payment(2, PaymentClaim::Conversion, "t1", "9.99"),
        payment(3, PaymentClaim::Continuation, "t2", "9.99"),
        payment(4, PaymentClaim::Continuation, "t3", "9.99"),
        payment(5, PaymentClaim::Continuation, "t4", "9.99"),
        lifecycle(6, "billing_issue"),
        money(7, NotificationMeaning::Refund, "t4", "-9.99"),
        money(8, NotificationMeaning::RefundReversed, "t4", "9.99"),
    ]
}

fn user_link(name: &str, who: &str, since: i64) -> PersonLink {
    DeviceLink {
        id: person(who),
        device: device(name),
        since: at(since),
        latest: at(since),
        is_used: true,
        is_signed: false,
        is_flagged: false,
    }
}

/// A customer's phone and three devices that claim the same user: a later one, a flagged one, and
/// one whose claims are not used.
fn claims_of_strangers() -> Vec<PersonLink> {
    let phone = user_link("phone", "p", 10);
    let thief = user_link("thief", "p", 20);
    let flagged = PersonLink {
        is_flagged: true,
        ..user_link("a-flagged", "p", 1)
    };
    let unused = PersonLink {
        is_used: false,
        ..user_link("a-pre-claimer", "p", 1)
    };
    vec![phone, thief, flagged, unused]
}

fn settled_devices(all: &[Notification], links: &[PersonLink]) -> BTreeSet<Option<DeviceKey>> {
    let connected = ConnectedSubscriptions {
        notifications: all.to_vec(),
        people: links.to_vec(),
        ..ConnectedSubscriptions::default()
    };
    let (after, _) = connected.outcome(at(1_000));
    let settled = after.into_values().map(|one| one.settled.device);
    settled.collect()
}

proptest! {
    /// Claims arrive one by one in any order, and notifications in any order between them. The
    /// joins that earlier settlements stored do not change the outcome.
    #[test]
    fn the_order_of_claims_and_notifications_changes_nothing(
        links in Just(claims_of_strangers()).prop_shuffle(),
        notifications in Just(lifecycle_of_a_subscription()).prop_shuffle(),
        known in 0..4_usize,
    ) {
        let all: Vec<_> = notifications.into_iter().map(|one| of_people(&["p"], one)).collect();
        let first = ConnectedSubscriptions {
            notifications: all[..4].to_vec(),
            people: links[..known].to_vec(),
            ..ConnectedSubscriptions::default()
        };
        let (before, _) = first.outcome(at(1_000));
        let later = before.into_values().chain(all[4..].iter().cloned());
        let later: Vec<_> = later.collect();
        let expected = BTreeSet::from([Some(device("phone"))]);
        prop_assert_eq!(settled_devices(&later, &links), expected);
    }

    #[test]
    fn the_order_of_arrival_changes_nothing(
        shuffled in Just(lifecycle_of_a_subscription()).prop_shuffle()
    ) {
        let by_id = |chain: &[Notification]| -> BTreeMap<String, SettledNotification> {
            let ids = chain.iter().map(|one| one.content.external_id.clone());
            ids.zip(settle(chain)).collect()
        };
        prop_assert_eq!(by_id(&shuffled), by_id(&lifecycle_of_a_subscription()));
        let sum: i64 = settle(&shuffled)
            .iter()
            .filter_map(|one| one.revenue.as_ref())
            .map(|revenue| revenue.counted_usd().micros())
            .sum();
        prop_assert_eq!(sum, 4 * 9_990_000);
    }
}

/// A notification about a payment that Stripe took, under these ids. The first one names it.
fn of_stripe(ids: &[&str], subscription: Option<&str>, mut one: Notification) -> Notification {
    let mut ids = ids.iter().map(|id| (*id).to_owned());
    one.content.external_id = format!("{subscription:?}:{}", one.content.external_id);
    one.content.store = Some("STRIPE".to_owned());
    one.content.transaction = ids.next();
    one.content.other_transactions = ids.collect();
    one.content.original_transaction = subscription.map(str::to_owned);
    one
}

fn refunded(second: i64, payment: &str, refund: &str, usd: &str) -> Notification {
    let mut one = money(second, NotificationMeaning::Refund, payment, usd);
    one.content.refund = Some(refund.to_owned());
    of_stripe(&[payment], None, one)
}

#[test]
fn partial_refunds_add_up_and_count_once_each() {
    let invoice = payment(1, PaymentClaim::Start, "in", "10");
    let link = notification(2, NotificationMeaning::Receipt);
    let all = [
        of_stripe(&["in"], Some("sub"), invoice),
        of_stripe(&["in", "pi"], None, link),
        refunded(3, "pi", "r1", "4"),
        refunded(4, "pi", "r2", "3"),
        refunded(5, "pi", "r2", "3"),
        // Another provider knows no ids of refunds.
        of_stripe(
            &["pi"],
            Some("other"),
            money(6, NotificationMeaning::Refund, "pi", "4"),
        ),
    ];
    let settled = settle(&all);
    assert_eq!(usd(&settled[2]), ("-4".to_owned(), None));
    assert_eq!(usd(&settled[3]), ("-3".to_owned(), None));
    assert_eq!((&settled[4].name, &settled[5].name), (&None, &None));
    // Without the link, nothing says which payment was refunded.
    let unlinked: Vec<Notification> = all.iter().filter(|one| one.is_period()).cloned().collect();
    let unlinked = settle(&[unlinked, vec![all[2].clone()]].concat());
    assert_eq!(
        unlinked[1].revenue.as_ref().unwrap().uncounted,
        Some(UncountedReason::PaymentNotCounted)
    );
}

#[test]
fn a_subscriptions_payment_comes_before_the_same_one_off_payment() {
    let early = of_stripe(&["pi"], None, payment(1, PaymentClaim::OneOff, "pi", "10"));
    let invoice = of_stripe(
        &["in", "pi"],
        Some("sub"),
        payment(2, PaymentClaim::Start, "in", "10"),
    );
    let settled = settle(&[early.clone(), invoice]);
    assert_eq!(settled[0].name, None);
    assert_eq!(settled[1].name.as_deref(), Some(PURCHASE));
    assert_eq!(settle(&[early])[0].name.as_deref(), Some(PURCHASE));
}

#[rstest]
#[case::stripe("STRIPE", "Stripe", true)]
#[case::another_store("PLAY_STORE", "PLAY_STORE", false)]
fn a_payment_of_two_providers_counts_once_if_stripe_took_it(
    #[case] store: &str,
    #[case] other_store: &str,
    #[case] once: bool,
) {
    let at_store = |store: &str, chain: &str, mut one: Notification| {
        one.content.store = Some(store.to_owned());
        in_chain(chain, one)
    };
    let stripe = at_store(store, "sub", payment(1, PaymentClaim::Start, "pi", "10"));
    let mut other = at_store(
        other_store,
        "rc",
        payment(2, PaymentClaim::Start, "pi", "10"),
    );
    other.provider = BillingProvider::Superwall;
    other.content.subscriber.device = Some(device("phone"));
    let renewed = at_store(store, "sub", payment(3, PaymentClaim::Start, "in2", "10"));
    let settled = settle(&[stripe, other, renewed]);
    assert_eq!(settled[0].name.as_deref(), Some(PURCHASE));
    assert_eq!(settled[1].name.is_none(), once);
    assert_eq!(settled[0].device.is_some(), once, "they share the device");
    assert_eq!(settled[2].name.as_deref(), Some(RENEWAL));
    assert_eq!(settled[2].device.is_some(), once);
}

/// A website's event for the payment `pi_1`: 20 USD, of which the website refunded this amount.
fn web_payment(external_id: &str, number: u8, refunded: &str) -> WebPayment {
    let mut event = crate::forwarding::plan::samples::event("purchase");
    event.id = EventId::from_bytes([number; 16]);
    event.source = crate::event::EventSource::Web;
    event.revenue = payment(1, PaymentClaim::Start, "pi_1", "20").money;
    WebPayment {
        external_id: external_id.to_owned(),
        event,
        refunded: Amount::parse(refunded).unwrap(),
    }
}

fn of_shop(mut one: Notification, number: usize) -> Notification {
    one.content.external_id = format!("s{number}");
    one.content.store = Some("STRIPE".to_owned());
    one.content.refund =
        (one.content.meaning == NotificationMeaning::Refund).then(|| format!("re_{number}"));
    one
}

/// A payment, the receipt that links its ids, and its refunds.
fn paid_in_shop(refunds: &[&str]) -> Vec<Notification> {
    let mut link = money(4, NotificationMeaning::Receipt, "in_1", "0");
    link.content.other_transactions = vec!["pi_1".to_owned()];
    let mut all = vec![payment(3, PaymentClaim::Start, "in_1", "10"), link];
    let refund = |usd: &&str| money(9, NotificationMeaning::Refund, "pi_1", usd);
    all.extend(refunds.iter().map(refund));
    let all = all.into_iter().enumerate();
    all.map(|(number, one)| of_shop(one, number)).collect()
}

fn settle_with_website(all: &[Notification], web: &[WebPayment]) -> Vec<Notification> {
    let connected = ConnectedSubscriptions {
        notifications: all.to_vec(),
        web_payments: web.to_vec(),
        ..ConnectedSubscriptions::default()
    };
    let (after, _) = connected.outcome(at(1_000));
    all.iter().map(|one| after[&id(one)].clone()).collect()
}

/// The refunds that count, in USD, besides those that the website reported.
#[rstest]
#[case::only_stripe_reports_them("0", &["-5", "-3"], &["-5", "-3"])]
#[case::both_report_all("8", &["-5", "-3"], &["", ""])]
#[case::stripe_reports_more("6", &["-5", "-3"], &["", "-2"])]
#[case::the_website_reports_more("9", &["-5"], &[""])]
#[case::more_than_the_payment("5", &["-15", "-15"], &["-10", "-5"])]
fn the_larger_sum_of_refunds_counts(
    #[case] by_website: &str,
    #[case] refunds: &[&str],
    #[case] expected: &[&str],
) {
    let web = [web_payment("pi_1", 5, by_website)];
    let settled = settle_with_website(&paid_in_shop(refunds), &web);
    assert_eq!(settled[0].settled.duplicate_of(), Some(web[0].event.id));
    for (one, expected) in settled[2..].iter().zip(expected) {
        let settled = &one.settled;
        let revenue = settled.revenue.as_ref().unwrap();
        let usd = Amount::parse(expected).unwrap_or(Amount::ZERO);
        assert_eq!(revenue.counted_usd(), usd);
        assert_eq!(settled.web_payment, Some(web[0].event.id));
        let covered = expected.is_empty().then_some(web[0].event.id);
        assert_eq!(settled.duplicate_of(), covered);
    }
}

#[test]
fn the_earliest_event_of_a_website_is_used() {
    let web = [
        web_payment("pi_1", 5, "0"),
        web_payment("in_1", 4, "0"),
        web_payment("other", 3, "0"),
    ];
    let settled = settle_with_website(&paid_in_shop(&[]), &web);
    assert_eq!(settled[0].settled.duplicate_of(), Some(web[1].event.id));
}

#[test]
fn payments_of_other_stores_are_not_shared_with_a_website() {
    let mut all = paid_in_shop(&["-5"]);
    for one in &mut all {
        one.content.store = Some("PLAY_STORE".to_owned());
    }
    let web = [web_payment("in_1", 4, "0"), web_payment("pi_1", 5, "0")];
    for one in settle_with_website(&all, &web) {
        assert_eq!(one.settled.web_payment, None);
    }
}

/// Retention may remove the website's event before the billing events.
#[test]
fn a_removed_website_event_still_counted() {
    let web = [web_payment("pi_1", 5, "3")];
    let mut before = settle_with_website(&paid_in_shop(&["-5"]), &web);
    let after = settle_with_website(&before, &[]);
    assert_eq!(after, before);
    let late = money(12, NotificationMeaning::Refund, "pi_1", "-2");
    before.push(of_shop(late, 9));
    let after = settle_with_website(&before, &[]);
    let revenue = after[3].settled.revenue.as_ref().unwrap();
    assert_eq!(revenue.uncounted, Some(UncountedReason::PaymentNotCounted));
    assert_eq!(after[..3], before[..3]);
}
