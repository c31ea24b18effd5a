use super::*;
use crate::app::{App, AppCreation};
use crate::forwarding::plan::samples::{APP, NOW, event as sample, worth};
use crate::ledger::UncountedReason;
use crate::vocabulary::fault::Faults;
use crate::vocabulary::id::OrganizationId;
use crate::vocabulary::money::Amount;
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use rstest::rstest;

fn app() -> App {
    let creation = AppCreation {
        id: APP,
        organization: OrganizationId::from_bytes([9; 16]),
        live_key: "pk_live".to_owned(),
        test_key: "pk_test".to_owned(),
        at: NOW,
    };
    App::new(creation, Name::parse("Runner").unwrap())
}

fn facts<'a>() -> ImportFacts<'a> {
    ImportFacts::new(&app(), Arc::default())
}

/// A payment of one dollar. The number is the internal id and its order.
fn payment(source: EventSource, id: &str, number: u8) -> ImportedEvent {
    let mut event = sample("purchase");
    event.id = EventId::new(NOW, [number; 10]);
    event.occurred_at = NOW;
    event.external_id = id.to_owned();
    event.source = source;
    event.device = Some(DeviceKey::stored("d".to_owned()));
    event.revenue = Some(worth(Some("1"), None));
    event.credit = None;
    ImportedEvent {
        event,
        fingerprint: None,
        transaction: None,
        provider: None,
    }
}

fn install(number: u8) -> ImportedEvent {
    let mut install = payment(EventSource::Sdk, &format!("install-{number}"), number);
    install.event.credit = sample("install").credit;
    install.event.name = "install".to_owned();
    install.event.revenue = None;
    install.event.is_service_install = true;
    install
}

fn decided<'a>(batch: &'a [ImportedEvent], facts: &ImportFacts<'a>) -> ImportDecisions<'a> {
    decide(batch, select(batch, facts), facts, NOW)
}

const fn is_new(outcome: ImportOutcome) -> bool {
    matches!(outcome, ImportOutcome::New(_))
}

#[test]
fn an_id_is_stored_once() {
    let batch = [
        payment(EventSource::Sdk, "a", 1),
        payment(EventSource::Sdk, "a", 2),
        payment(EventSource::Sdk, "b", 1),
        payment(EventSource::Sdk, "c", 3),
    ];
    let mut facts = facts();
    let stored = ImportKeyHolder {
        event: EventId::from_bytes([8; 16]),
        is_reservation: false,
    };
    facts.keys.insert(batch[3].key(), stored);
    let outcomes = select(&batch, &facts);
    assert!(is_new(outcomes[0]));
    assert_eq!(
        outcomes[1..],
        [
            ImportOutcome::AlreadyStored,
            ImportOutcome::Rejected(ImportRejection::IdTaken),
            ImportOutcome::AlreadyStored
        ]
    );
}

#[rstest]
#[case::new(false, true)]
#[case::installed(true, false)]
fn a_device_is_installed_once(#[case] is_installed: bool, #[case] first_is_new: bool) {
    let batch = [install(1), install(2)];
    let mut facts = facts();
    let device = ImportDeviceFacts {
        is_registered: is_installed,
        is_installed,
        first_payment: None,
    };
    facts.devices.insert(batch[0].device_ref().unwrap(), device);
    let decided = decided(&batch, &facts);
    assert_eq!(is_new(decided.outcomes[0]), first_is_new);
    assert!(!is_new(decided.outcomes[1]));
    assert_eq!(decided.changes.devices.len(), usize::from(first_is_new));
}

/// The stored first payment, the payments of the batch, and the one that gets the flag. `None` means
/// that the stored payments decide.
#[rstest]
#[case::none_stored(None, &[2, 1, 3], Some(1), false)]
#[case::an_earlier_one_is_stored(Some(1), &[2, 3], None, false)]
#[case::a_later_one_is_stored(Some(4), &[5, 3], None, true)]
fn the_earliest_payment_is_the_first(
    #[case] stored: Option<u8>,
    #[case] numbers: &[u8],
    #[case] flagged: Option<u8>,
    #[case] is_unsettled: bool,
) {
    let id = |number: u8| EventId::new(NOW, [number; 10]);
    let numbers = numbers.iter();
    let batch: Vec<ImportedEvent> = numbers
        .map(|number| payment(EventSource::Sdk, &number.to_string(), *number))
        .collect();
    let mut facts = facts();
    let device = ImportDeviceFacts {
        first_payment: stored.map(id),
        ..ImportDeviceFacts::default()
    };
    facts.devices.insert(batch[0].device_ref().unwrap(), device);
    let changes = decided(&batch, &facts).changes;
    let found = changes.recorded.iter();
    let found = found.filter(|record| record.event.first_payment);
    let found: Vec<EventId> = found.map(|record| record.event.id).collect();
    assert_eq!(found, Vec::from_iter(flagged.map(id)));
    assert_eq!(!changes.unsettled.is_empty(), is_unsettled);
}

#[rstest]
#[case::web(EventSource::Web)]
#[case::billing(EventSource::Billing)]
fn an_event_of_two_sources_counts_once(#[case] source: EventSource) {
    let mut verified = payment(source, "a", 1);
    verified.transaction = Some("a".to_owned());
    let reported = payment(EventSource::Sdk, "a", 2);
    for batch in [
        [verified.clone(), reported.clone()],
        [reported.clone(), verified.clone()],
    ] {
        let changes = decided(&batch, &facts()).changes;
        let mut increments = crate::report::Increments::default();
        changes.count(&mut increments);
        let revenue = increments.names.values().map(|one| one.revenue_micros);
        assert_eq!(revenue.sum::<i64>(), 1_000_000);
    }
    let batch = [verified];
    let mut facts = facts();
    let id = batch[0].shared_id().unwrap();
    facts.sdk_events.insert(id, reported.event);
    let changes = decided(&batch, &facts).changes;
    assert_eq!(changes.demotions.len(), 1);
    assert_eq!(changes.unsettled.len(), 1);
}

#[test]
fn an_event_without_an_install_is_in_no_cohort() {
    let paid = || {
        let mut paid = payment(EventSource::Sdk, "a", 2);
        paid.event.credit = sample("purchase").credit;
        paid
    };
    for (batch, entries) in [(vec![paid()], 0), (vec![paid(), install(1)], 2)] {
        let mut increments = crate::report::Increments::default();
        decided(&batch, &facts()).changes.count(&mut increments);
        assert_eq!(increments.cohorts.len(), entries);
    }
}

/// A device is registered by its install, or by its earliest credited event.
#[rstest]
#[case::without_credit(&[], None, 0)]
#[case::events(&[3, 2], Some((2, 0)), 0)]
#[case::install(&[3, 1, 2], Some((1, 1)), 0)]
#[case::stored(&[3, 1, 2], None, 1)]
fn a_device_is_registered(
    #[case] credited: &[u8],
    #[case] by: Option<(u8, u32)>,
    #[case] installed: usize,
) {
    let mut batch = vec![
        payment(EventSource::Sdk, "a", 9),
        payment(EventSource::Web, "b", 8),
    ];
    batch[1].event.credit = sample("purchase").credit;
    batch.extend(credited.iter().map(|number| match number {
        1 => install(1),
        number => {
            let mut paid = payment(EventSource::Sdk, &number.to_string(), *number);
            paid.event.credit = sample("purchase").credit;
            paid
        }
    }));
    let mut facts = facts();
    let stored = ImportDeviceFacts {
        is_registered: installed == 1,
        ..ImportDeviceFacts::default()
    };
    facts.devices.insert(batch[0].device_ref().unwrap(), stored);
    let changes = decided(&batch, &facts).changes;
    let devices = changes.devices.iter();
    let found: Vec<_> = devices
        .map(|(_, _, attribution)| (*attribution.id.as_bytes(), attribution.revision))
        .collect();
    let expected = by.map(|(number, revision)| {
        let id = EventId::new(NOW, [number; 10]);
        (*id.as_bytes(), revision)
    });
    assert_eq!(found, Vec::from_iter(expected));
    assert_eq!(changes.installed.len(), installed);
}

#[test]
fn a_missing_link_and_click_are_removed() {
    let mut batch = [payment(EventSource::Sdk, "a", 1)];
    batch[0].event.credit = sample("purchase").credit;
    let decided = decided(&batch, &facts());
    let loss = CreditLoss {
        link: true,
        click: true,
    };
    assert_eq!(decided.outcomes, [ImportOutcome::New(loss)]);
    let credit = decided.changes.recorded[0].event.credit.as_ref().unwrap();
    let before = batch[0].event.credit.as_ref().unwrap();
    assert_eq!((credit.link, credit.click), (None, None));
    assert_eq!(
        (credit.network, &credit.campaign),
        (before.network, &before.campaign)
    );
}

fn pay(one: &mut ImportedEvent, name: &str, amount: &str, usd: &str) {
    name.clone_into(&mut one.event.name);
    let revenue = one.event.revenue.as_mut().unwrap();
    revenue.amount = Amount::parse(amount).unwrap();
    revenue.usd = Amount::parse(usd).ok();
}

#[rstest]
#[case::valid(|_: &mut ImportedEvent| {}, &[])]
#[case::another_time(|one: &mut ImportedEvent| one.event.occurred_at = crate::vocabulary::time::Timestamp::from_millis(1), &["id"])]
#[case::an_install_without_its_fields(
    |one: &mut ImportedEvent| { one.event.is_service_install = true; one.event.device = None; one.event.platform = None; },
    &["install", "deviceId", "platform", "attribution"]
)]
#[case::a_test_web_event(
    |one: &mut ImportedEvent| { one.event.source = EventSource::Web; one.event.environment = Environment::Test; },
    &["environment"]
)]
#[case::a_verified_duplicate(
    |one: &mut ImportedEvent| {
        one.event.source = EventSource::Web;
        one.event.duplicate_of = Some(EventId::from_bytes([1; 16]));
        one.event.revenue = None;
    },
    &["duplicateOf"]
)]
#[case::a_billing_duplicate(
    |one: &mut ImportedEvent| {
        one.event.source = EventSource::Billing;
        one.event.duplicate_of = Some(EventId::from_bytes([1; 16]));
        one.event.revenue = None;
    },
    &[]
)]
#[case::a_duplicate_that_counts(
    |one: &mut ImportedEvent| one.event.duplicate_of = Some(EventId::from_bytes([1; 16])),
    &["revenue.reason"]
)]
#[case::a_reason_without_a_duplicate(
    |one: &mut ImportedEvent| {
        let revenue = one.event.revenue.as_mut().unwrap();
        revenue.uncounted = Some(UncountedReason::DuplicateOfVerified);
    },
    &["revenue.reason"]
)]
#[case::counted_without_dollars(
    |one: &mut ImportedEvent| one.event.revenue.as_mut().unwrap().usd = None,
    &["revenue.usd"]
)]
#[case::a_negative_payment(|one: &mut ImportedEvent| pay(one, "purchase", "-1", "-1"), &["revenue.amount", "revenue.usd"])]
#[case::a_refund(|one: &mut ImportedEvent| pay(one, "refund", "-1", "-3000"), &[])]
#[case::a_positive_refund(|one: &mut ImportedEvent| pay(one, "refund", "1", "1"), &["revenue.amount", "revenue.usd"])]
#[case::another_sign(|one: &mut ImportedEvent| pay(one, "purchase", "1", "-1"), &["revenue.usd"])]
#[case::the_limit(|one: &mut ImportedEvent| pay(one, "purchase", "9000", "2000"), &[])]
#[case::above_the_limit(|one: &mut ImportedEvent| pay(one, "purchase", "1", "2000.01"), &["revenue.usd"])]
#[case::an_uncounted_amount(
    |one: &mut ImportedEvent| {
        pay(one, "purchase", "-1", "-1");
        one.event.revenue.as_mut().unwrap().uncounted = Some(UncountedReason::Negative);
    },
    &[]
)]
#[case::an_arrival_two_days_before(
    |one: &mut ImportedEvent| one.event.received_at = Timestamp::from_millis(NOW.as_millis() - 48 * 3_600_000),
    &[]
)]
#[case::an_earlier_arrival(
    |one: &mut ImportedEvent| one.event.received_at = Timestamp::from_millis(NOW.as_millis() - 48 * 3_600_000 - 1),
    &["timestampMs"]
)]
#[case::a_long_campaign(
    |one: &mut ImportedEvent| {
        one.event.credit = sample("install").credit;
        one.event.credit.as_mut().unwrap().campaign.ad_name = Some("é".repeat(501));
    },
    &["attribution.campaign.adName"]
)]
fn fields_are_checked_against_each_other(
    #[case] change: fn(&mut ImportedEvent),
    #[case] fields: &[&str],
) {
    let mut imported = payment(EventSource::Sdk, "a", 1);
    change(&mut imported);
    let mut faults = Faults::new();
    check(&imported, &mut faults);
    let found: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(found, fields);
}
