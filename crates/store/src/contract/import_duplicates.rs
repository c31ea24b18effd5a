//! Imported events that several sources report.

use super::fixtures::SharedStore;
use super::imports::{
    assert_equal, bill, copy_without_events, exported, import, post_web_event, posted, send, total,
};
use super::sdk_fixtures::{Tenant, payment};
use super::web_events::shop;
use tributary_domain::click::Click;
use tributary_domain::event::EventSource;
use tributary_domain::event::web::WebEventKind;

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
