//! Imported events that several sources report.

use super::fixtures::{SharedStore, assert_rebuild_changes_nothing};
use super::imports::{
    assert_equal, bill, copy_without_events, exported, import, log, payment_notification,
    post_web_event, posted, send, total,
};
use super::sdk_fixtures::{Tenant, payment, tenant};
use super::web_events::shop;
use tributary_domain::billing::NotificationMeaning;
use tributary_domain::click::Click;
use tributary_domain::event::EventSource;
use tributary_domain::event::web::WebEventKind;
use tributary_domain::vocabulary::money::Amount;

/// Reports a purchase of 10 USD by all three sources under one id. The sources send in this order.
/// Returns the shop's click, too.
async fn purchase_by_all_sources(store: &SharedStore, order: [EventSource; 3]) -> (Tenant, Click) {
    let (tenant, click) = shop(store).await;
    for source in order {
        match source {
            EventSource::Sdk => {
                send(&tenant, "phone", 100, vec![payment("t1", "10", "USD", 90)]).await;
            }
            EventSource::Web => {
                let bought = posted(&click, WebEventKind::Purchase, "t1", "10", None);
                post_web_event(&tenant, bought).await;
            }
            EventSource::Billing => bill(&tenant, "n1", 110).await,
        }
    }
    (tenant, click)
}

/// An id that all three sources share can be imported in every order and division.
pub async fn three_imported_sources_may_share_an_id(store: &SharedStore) {
    let (sdk, web, billing) = (EventSource::Sdk, EventSource::Web, EventSource::Billing);
    for recorded in [[sdk, web, billing], [sdk, billing, web]] {
        let (source, click) = purchase_by_all_sources(store, recorded).await;
        let clicks = [click];
        for order in [
            [sdk, web, billing],
            [sdk, billing, web],
            [web, sdk, billing],
            [web, billing, sdk],
            [billing, sdk, web],
            [billing, web, sdk],
        ] {
            for size in 1..=3 {
                let copy = copy_without_events(store, &source, &clicks).await;
                let mut lines = exported(&source, &copy).await;
                lines.sort_by_key(|line| order.iter().position(|one| *one == line.event.source));
                for part in lines.chunks(size) {
                    import(&copy, part).await;
                }
                assert_equal(&source, &copy).await;
                let figures = total(&copy).await;
                assert_eq!((figures.purchases, figures.revenue_micros), (2, 20_000_000));
            }
        }
    }
}

/// Notifications about an imported payment leave the app's report of the payment a duplicate.
pub async fn a_notification_about_an_imported_payment_counts_nothing_twice(store: &SharedStore) {
    let order = [EventSource::Billing, EventSource::Sdk, EventSource::Web];
    let (source, click) = purchase_by_all_sources(store, order).await;
    let copy = copy_without_events(store, &source, &[click]).await;
    let mut lines = exported(&source, &copy).await;
    lines.retain(|line| line.event.source != EventSource::Web);
    import(&copy, &lines).await;
    let imported = total(&copy).await;
    assert_eq!(
        (imported.purchases, imported.revenue_micros),
        (1, 10_000_000)
    );
    let log_before = log(&copy).await;
    bill(&copy, "n1", 110).await;
    assert_eq!(total(&copy).await, imported, "the provider repeats n1");
    assert_eq!(log(&copy).await, log_before);
    let mut refund = payment_notification(&copy, "n2", 120);
    refund.content.meaning = NotificationMeaning::Refund;
    refund.content.price.usd = Amount::parse("-4").ok();
    let refunded = store.accept_notification(refund).await;
    refunded.expect("a notification is stored");
    let figures = total(&copy).await;
    assert_eq!((figures.purchases, figures.refunds), (1, 1));
    assert_eq!(figures.refunded_micros, 4_000_000);
    assert_rebuild_changes_nothing(store).await;
    assert_eq!(total(&copy).await, figures);
}

/// An SDK event that was exported without its billing event, or that arrives after the import, finds
/// the imported billing event.
pub async fn an_sdk_event_finds_an_imported_billing_event(store: &SharedStore) {
    let source = tenant(store).await;
    bill(&source, "n1", 110).await;
    let reports = tenant(store).await;
    send(&reports, "phone", 120, vec![payment("t1", "10", "USD", 90)]).await;
    for (is_imported, size) in [(true, 2), (true, 1), (false, 1)] {
        let copy = tenant(store).await;
        let mut lines = exported(&source, &copy).await;
        if is_imported {
            lines.extend(exported(&reports, &copy).await);
        }
        for part in lines.chunks(size) {
            import(&copy, part).await;
        }
        if !is_imported {
            send(&copy, "phone", 120, vec![payment("t1", "10", "USD", 90)]).await;
        }
        let log_after = log(&copy).await;
        let of = |source| log_after.iter().find(move |event| event.source == source);
        let (sdk, billed) = (of(EventSource::Sdk), of(EventSource::Billing));
        let duplicate_of = sdk.and_then(|sdk| sdk.duplicate_of);
        assert_eq!(duplicate_of, billed.map(|billed| billed.id));
        let figures = total(&copy).await;
        assert_eq!((figures.purchases, figures.revenue_micros), (1, 10_000_000));
        bill(&copy, "n1", 110).await;
        assert_eq!(log(&copy).await, log_after, "the provider repeats n1");
        assert_eq!(total(&copy).await, figures);
        assert_rebuild_changes_nothing(store).await;
        assert_eq!(log(&copy).await, log_after);
    }
}
