//! Imports of exported events.

use super::erasure_fixtures::{billing_notification, device};
use super::fixtures::{
    SharedStore, app, assert_rebuild_changes_nothing, at, first_page, join_all, new_link,
    organization, origin, refusal,
};
use super::reports::all_answers;
use super::sdk_fixtures::{Tenant, event, payment, tenant};
use super::web_events::{post, purchase, shop};
use crate::ImportMode;
use std::sync::Arc;
use tributary_domain::access::{Authorized, InstallsReview};
use tributary_domain::app::{AppChange, BillingProvider};
use tributary_domain::attribution::{HoldDecision, HoldState};
use tributary_domain::billing::{IncomingNotification, NotificationMeaning, PaymentClaim};
use tributary_domain::click::Click;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::import::{CreditLoss, ImportOutcome, ImportRejection, ImportedEvent};
use tributary_domain::event::sdk::SdkEvent;
use tributary_domain::event::web::{WebEvent, WebEventKind, recorded_fingerprint};
use tributary_domain::event::{Event, EventFilter, EventSource};
use tributary_domain::link::Link;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;

const NEW: ImportOutcome = ImportOutcome::New(CreditLoss {
    link: false,
    click: false,
});

/// Builds a posted event without an email hash, which an export does not contain.
pub(super) fn posted(
    click: &Click,
    kind: WebEventKind,
    id: &str,
    amount: &str,
    parent: Option<&str>,
) -> WebEvent {
    WebEvent {
        email_sha256: None,
        ..post(click, kind, id, amount, parent)
    }
}

pub(super) async fn send(tenant: &Tenant, device: &str, second: i64, events: Vec<SdkEvent>) {
    let arrival = tenant.arrival(device, second);
    let accepted = tenant.store.accept_sdk_events(arrival, events).await;
    accepted.expect("events are accepted");
}

pub(super) async fn post_web_event(tenant: &Tenant, posted: WebEvent) {
    let accepted = tenant.store.accept_web_event(posted).await;
    accepted.expect("an event is accepted");
}

/// Builds a provider's notification of a payment of 10 USD in transaction t1.
pub(super) fn payment_notification(
    tenant: &Tenant,
    notification: &str,
    second: i64,
) -> IncomingNotification {
    let start = NotificationMeaning::Payment(PaymentClaim::Start);
    let mut billed = billing_notification(tenant, notification, "sub-1", second, start);
    billed.content.transaction = Some("t1".to_owned());
    billed.content.subscriber.people.clear();
    billed.content.subscriber.device = Some(device("phone"));
    billed
}

/// Sends a provider's notification of a payment of 10 USD in transaction t1.
pub(super) async fn bill(tenant: &Tenant, notification: &str, second: i64) {
    let billed = payment_notification(tenant, notification, second);
    let accepted = tenant.store.accept_notification(billed).await;
    accepted.expect("a notification is stored");
}

/// Creates an app with clicks, installs, payments of all sources, refunds, and events that two
/// sources report. Returns it with its clicks; the first one leads to the shop.
async fn history(store: &SharedStore) -> (Tenant, Vec<Click>) {
    let (tenant, shop_click) = shop(store).await;
    let click = tenant.record_click(10).await;
    let attributed = tenant.configure_with_click("phone", &click, 20);
    tenant.call_configure(attributed).await;
    tenant.call_configure(tenant.configure("tablet", 30)).await;
    for (device, second) in [
        ("phone", 40),
        ("tablet", 50),
        ("unknown", 60),
        ("phone", 100_000),
        ("tablet", 300_000),
    ] {
        let id = |kind: &str| format!("{kind}-{device}-{second}");
        let events = vec![
            event(&id("open"), "open", second),
            payment(&id("paid"), "5", "USD", second + 1),
            payment(&id("euro"), "7.5", "EUR", second + 2),
        ];
        send(&tenant, device, second + 3, events).await;
    }
    send(&tenant, "phone", 90, vec![payment("o1", "9", "USD", 90)]).await;
    let web = |kind, id, amount, parent| posted(&shop_click, kind, id, amount, parent);
    post_web_event(&tenant, web(WebEventKind::Purchase, "o1", "10", None)).await;
    post_web_event(&tenant, web(WebEventKind::Purchase, "o2", "20", None)).await;
    post_web_event(&tenant, web(WebEventKind::Refund, "r1", "-5", Some("o2"))).await;
    send(&tenant, "tablet", 95, vec![payment("o2", "20", "USD", 95)]).await;
    bill(&tenant, "n1", 110).await;
    send(&tenant, "phone", 120, vec![payment("t1", "9", "USD", 115)]).await;
    (tenant, vec![shop_click, click])
}

/// Creates an app with the same clicks as another one, on another link, but without installs and
/// events. Link ids are unique, so the copy has a link with another id.
pub(super) async fn copy_without_events(
    store: &SharedStore,
    of: &Tenant,
    clicks: &[Click],
) -> Tenant {
    let writer = organization(store).await;
    let app = app(store, &writer).await;
    let link = Link {
        kind: of.link.kind,
        destination_url: of.link.destination_url.clone(),
        ..new_link(app.id, 2)
    };
    let created = store.create_link(&writer, link, origin(2)).await;
    let link = created.expect("a link is created");
    for click in clicks {
        let recorded = store.record_click(Click {
            app: app.id,
            link: link.id,
            ..click.clone()
        });
        recorded.await.expect("a click is recorded");
    }
    Tenant {
        store: store.clone(),
        reader: Authorized::operator(writer.organization()),
        writer,
        app,
        link,
    }
}

pub(super) async fn log(tenant: &Tenant) -> Vec<Event> {
    let page = first_page("500");
    let filter = EventFilter::default();
    let log = tenant
        .store
        .events(&tenant.reader, tenant.app.id, filter, page);
    log.await.expect("the log is read").items
}

/// Removes from an event what an export does not contain, and changes its app and link.
fn as_exported(event: Event, to: &Tenant) -> Event {
    let mut event = Event {
        app: to.app.id,
        original_name: None,
        dedup_root: None,
        skipped: Vec::new(),
        device: event.device.map(|key| DeviceKey::stored(key.into_string())),
        ..event
    };
    if let Some(revenue) = &mut event.revenue {
        (revenue.rate, revenue.rate_source) = (None, None);
    }
    if let Some(website) = &mut event.website {
        website.email_sha256 = None;
    }
    if let Some(credit) = &mut event.credit {
        credit.link = credit.link.map(|_| to.link.id);
    }
    event
}

/// Returns the events of an app as lines of an export, oldest first.
pub(super) async fn exported(from: &Tenant, to: &Tenant) -> Vec<ImportedEvent> {
    let mut events = log(from).await;
    events.reverse();
    let imported = |event: Event| {
        let event = as_exported(event, to);
        let credit = event.credit.as_ref();
        let click = credit.and_then(|credit| credit.click);
        let click = click.map(|click| click.to_string()).unwrap_or_default();
        let is_web = event.source == EventSource::Web;
        let is_billing = event.source == EventSource::Billing;
        ImportedEvent {
            fingerprint: is_web.then(|| recorded_fingerprint(&event, &click)),
            transaction: is_billing.then(|| "t1".to_owned()),
            provider: is_billing.then_some(BillingProvider::Revenuecat),
            event,
        }
    };
    events.into_iter().map(imported).collect()
}

pub(super) async fn import_as(
    tenant: &Tenant,
    batch: &[ImportedEvent],
    mode: ImportMode,
) -> Vec<ImportOutcome> {
    let batch: Arc<[ImportedEvent]> = batch.into();
    let store = &tenant.store;
    let imported = store.import_events(tenant.app.id, batch, mode, at(500_000));
    imported.await.expect("events are imported")
}

pub(super) async fn import(tenant: &Tenant, batch: &[ImportedEvent]) -> Vec<ImportOutcome> {
    import_as(tenant, batch, ImportMode::Write).await
}

/// Returns payments as lines of an export, and the app to import them into.
pub async fn exported_payments(store: &SharedStore, count: i64) -> (AppId, Vec<ImportedEvent>) {
    let source = tenant(store).await;
    for second in 0..count {
        let paid = payment(&format!("p{second}"), "1", "USD", second);
        send(&source, "phone", 100, vec![paid]).await;
    }
    let copy = tenant(store).await;
    (copy.app.id, exported(&source, &copy).await)
}

/// Asserts that two apps have the same events and figures, and that the figures are right.
pub(super) async fn assert_equal(one: &Tenant, other: &Tenant) {
    let events = async |tenant: &Tenant| -> Vec<Event> {
        let log = log(tenant).await.into_iter();
        log.map(|event| as_exported(event, one)).collect()
    };
    assert_eq!(events(other).await, events(one).await);
    let answers = async |tenant: &Tenant| {
        let mut answers = all_answers(tenant).await;
        let link = tenant.link.id.to_string();
        for value in answers.iter_mut().flat_map(|row| &mut row.values) {
            if *value == link {
                "the link".clone_into(value);
            }
        }
        answers
    };
    let expected = answers(one).await;
    assert_eq!(answers(other).await, expected);
    assert_rebuild_changes_nothing(&one.store).await;
    assert_eq!(answers(other).await, expected);
    assert_eq!(events(other).await, events(one).await);
}

pub(super) async fn total(tenant: &Tenant) -> Figures {
    let mut total = Figures::default();
    for (_, figures) in tenant.figures().await {
        total.add(&figures, 1);
    }
    total
}

/// An import gives the events and figures of the exporting app. Repeated, it changes nothing.
pub async fn an_import_gives_the_same_log_and_reports(store: &SharedStore) {
    let (source, clicks) = history(store).await;
    let copy = copy_without_events(store, &source, &clicks).await;
    let lines = exported(&source, &copy).await;
    let planned = import_as(&copy, &lines, ImportMode::DryRun).await;
    assert_eq!(planned, vec![NEW; lines.len()]);
    assert_eq!(log(&copy).await, [], "a dry run stores nothing");
    assert_eq!(import(&copy, &lines).await, planned);
    assert_equal(&source, &copy).await;
    let stored = vec![ImportOutcome::AlreadyStored; lines.len()];
    for mode in [ImportMode::DryRun, ImportMode::Write] {
        assert_eq!(import_as(&copy, &lines, mode).await, stored);
    }
    assert_equal(&source, &copy).await;
}

/// Neither the order of the lines nor their division into batches changes the result.
pub async fn the_order_of_imported_events_does_not_matter(store: &SharedStore) {
    let (source, clicks) = history(store).await;
    for (stride, batch) in [(1, 1), (7, 3), (11, 5)] {
        let copy = copy_without_events(store, &source, &clicks).await;
        let lines = exported(&source, &copy).await;
        let mut shuffled: Vec<ImportedEvent> = (0..lines.len())
            .map(|index| lines[(index * stride + 3) % lines.len()].clone())
            .collect();
        shuffled.reverse();
        assert!(!lines.len().is_multiple_of(7) && !lines.len().is_multiple_of(11));
        for part in shuffled.chunks(batch) {
            import(&copy, part).await;
        }
        assert_equal(&source, &copy).await;
    }
}

/// An event that live traffic recorded already is skipped, and an event that another source reports
/// counts once, whichever is stored first.
pub async fn an_import_beside_live_events_counts_money_once(store: &SharedStore) {
    let (source, shop_click) = shop(store).await;
    send(&source, "d1", 80, vec![payment("a", "1", "USD", 80)]).await;
    send(&source, "d1", 90, vec![payment("b", "2", "USD", 90)]).await;
    send(&source, "d1", 95, vec![payment("c", "4", "USD", 95)]).await;
    post_web_event(&source, purchase(&shop_click, "d", "8")).await;
    let clicks = [shop_click];
    let live = copy_without_events(store, &source, &clicks).await;
    let click = Click {
        app: live.app.id,
        link: live.link.id,
        ..clicks[0].clone()
    };
    let lines = exported(&source, &live).await;
    send(&live, "d1", 200, vec![payment("a", "1", "USD", 200)]).await;
    post_web_event(&live, purchase(&click, "b", "2")).await;
    send(&live, "d2", 200, vec![payment("d", "8", "USD", 60)]).await;
    let imports = (0..3).map(|_| import(&live, &lines)).collect();
    let outcomes: Vec<ImportOutcome> = join_all(imports).await.concat();
    let new = outcomes.iter().filter(|outcome| **outcome == NEW).count();
    assert_eq!((new, outcomes.len()), (3, 12), "{outcomes:?}");
    let figures = total(&live).await;
    assert_eq!((figures.purchases, figures.revenue_micros), (4, 15_000_000));
    // Both devices have an earlier payment than the live one, and a duplicate does not count as one.
    let first_payments = log(&live).await.into_iter();
    let first_payments = first_payments.filter(|event| event.first_payment);
    let mut first: Vec<String> = first_payments.map(|event| event.external_id).collect();
    first.sort();
    assert_eq!(first, ["c", "d"]);
    assert_rebuild_changes_nothing(store).await;
    assert_eq!(total(&live).await, figures);
}

/// A link or click that does not exist is removed from the credit; network and campaign stay.
pub async fn a_missing_link_is_removed_from_the_credit(store: &SharedStore) {
    let (source, _) = history(store).await;
    let other = tenant(store).await;
    let mut lines = exported(&source, &other).await;
    for line in &mut lines {
        if let Some(credit) = &mut line.event.credit {
            credit.link = credit.link.map(|_| source.link.id);
        }
    }
    let outcomes = import(&other, &lines).await;
    let lost = |outcome: &&ImportOutcome| {
        **outcome
            == ImportOutcome::New(CreditLoss {
                link: true,
                click: true,
            })
    };
    let credited = lines.iter().filter_map(|line| line.event.credit.as_ref());
    let with_click = credited.filter(|credit| credit.click.is_some()).count();
    assert_eq!(outcomes.iter().filter(lost).count(), with_click);
    let credits = log(&other).await.into_iter();
    let credits: Vec<_> = credits.filter_map(|event| event.credit).collect();
    assert!(credits.iter().all(|credit| credit.link.is_none()));
    assert!(credits.iter().all(|credit| credit.click.is_none()));
    let by_network = |tenant: Vec<(String, Figures)>| -> Vec<(String, i64, i64)> {
        let figures = tenant.into_iter();
        figures
            .map(|(network, one)| (network, one.events, one.revenue_micros))
            .collect()
    };
    assert_eq!(
        by_network(other.figures().await),
        by_network(source.figures().await)
    );
    assert_rebuild_changes_nothing(store).await;
}

/// An imported install registers its device. The device's next call is not counted as a first open,
/// and the device cannot get another install.
pub async fn an_imported_device_is_installed(store: &SharedStore) {
    let (source, clicks) = history(store).await;
    let copy = copy_without_events(store, &source, &clicks).await;
    let lines = exported(&source, &copy).await;
    import(&copy, &lines).await;
    let again = copy.call_configure(copy.configure("phone", 400_000)).await;
    assert!(!again.is_first_open);
    assert_eq!(total(&copy).await.installs, 2);
    let details = copy.device_details("phone").await;
    let decided = details.state.attribution.expect("an attribution");
    assert_eq!(decided.decision.click, Some(clicks[1].id));
    let install = lines.iter().find(|line| line.event.is_install());
    let mut install = install.expect("an install").clone();
    "another".clone_into(&mut install.event.external_id);
    let id_taken = ImportOutcome::Rejected(ImportRejection::IdTaken);
    assert_eq!(import(&copy, &[install.clone()]).await, [id_taken]);
    install.event.id = install.event.id.following();
    let installed = ImportOutcome::Rejected(ImportRejection::DeviceInstalled);
    assert_eq!(import(&copy, &[install]).await, [installed]);
    assert_eq!(total(&copy).await.installs, 2);
}

/// The events of a device register it, even if its install is not imported. Its next call is not
/// counted as a first open and does not change the credit. The install can be imported later.
pub async fn events_without_their_install_register_the_device(store: &SharedStore) {
    let (source, clicks) = history(store).await;
    let copy = copy_without_events(store, &source, &clicks).await;
    let lines = exported(&source, &copy).await;
    let (installs, others): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| line.event.is_install());
    import(&copy, &others).await;
    for device in ["phone", "tablet"] {
        let call = copy.call_configure(copy.configure(device, 400_000)).await;
        assert!(!call.is_first_open, "{device}");
    }
    assert_eq!(total(&copy).await.installs, 0);
    assert_rebuild_changes_nothing(store).await;
    assert_eq!(import(&copy, &installs).await, [NEW, NEW]);
    assert_equal(&source, &copy).await;
}

/// Live refunds and repeated posts find imported payments.
pub async fn live_web_events_find_imported_ones(store: &SharedStore) {
    let (source, clicks) = history(store).await;
    let copy = copy_without_events(store, &source, &clicks).await;
    import(&copy, &exported(&source, &copy).await).await;
    let click = Click {
        app: copy.app.id,
        link: copy.link.id,
        ..clicks[0].clone()
    };
    let again = posted(&click, WebEventKind::Purchase, "o2", "20", None);
    let again = store.accept_web_event(again).await;
    assert!(again.expect("a duplicate is accepted").is_duplicate);
    let refund = |id, amount| posted(&click, WebEventKind::Refund, id, amount, Some("o2"));
    let exceeding = store.accept_web_event(refund("r2", "-15.01")).await;
    assert_eq!(refusal(exceeding), Refusal::RefundExceedsPayment);
    let rest = store.accept_web_event(refund("r2", "-15")).await;
    assert!(!rest.expect("a refund is accepted").is_duplicate);
    assert_rebuild_changes_nothing(store).await;
}

/// The events of a held install count as held, until a review of the imported install.
pub async fn a_held_install_can_be_reviewed_after_an_import(store: &SharedStore) {
    let source = tenant(store).await;
    source.call_configure(source.configure("phone", 20)).await;
    send(&source, "phone", 40, vec![payment("a", "1", "USD", 40)]).await;
    let other = tenant(store).await;
    let mut lines = exported(&source, &other).await;
    for line in &mut lines {
        let credit = line.event.credit.as_mut().expect("a credit");
        credit.hold = Some(HoldState::Held);
    }
    import(&other, &lines).await;
    let figures = total(&other).await;
    assert_eq!((figures.installs, figures.revenue_micros), (0, 0));
    assert_eq!(
        (figures.held_installs, figures.held_revenue_micros),
        (1, 1_000_000)
    );
    let reviewer: Authorized<InstallsReview> = Authorized::operator(other.writer.organization());
    let (app, release) = (other.app.id, HoldDecision::Release);
    let reviewed = store.review_install(&reviewer, app, device("phone"), release, origin(600_000));
    reviewed.await.expect("an install is reviewed");
    let figures = total(&other).await;
    assert_eq!((figures.installs, figures.revenue_micros), (1, 1_000_000));
    assert_rebuild_changes_nothing(store).await;
}

/// Events are imported into existing apps only, and not into an archived one.
pub async fn an_unknown_or_archived_app_is_refused(store: &SharedStore) {
    let source = tenant(store).await;
    send(&source, "d1", 40, vec![event("a", "open", 40)]).await;
    let lines: Arc<[ImportedEvent]> = exported(&source, &source).await.into();
    let archive = AppChange {
        archived: Change::Set(true),
        ..AppChange::default()
    };
    let (app, any) = (source.app.id, Precondition::None);
    let archived = store.update_app(&source.writer, app, archive, any, origin(50));
    archived.await.expect("an app is archived");
    let unknown = AppId::from_bytes([9; 16]);
    for mode in [ImportMode::DryRun, ImportMode::Write] {
        for (app, expected) in [(unknown, Refusal::AppNotFound), (app, Refusal::AppArchived)] {
            let imported = store.import_events(app, lines.clone(), mode, at(100));
            assert_eq!(refusal(imported.await), expected);
        }
    }
}
