//! Previews of web events.

use super::duplicates::forwarding_shop;
use super::fixtures::{SharedStore, new_link, origin, refusal};
use super::sdk_fixtures::payment;
use super::web_events::{post, purchase, shop};
use tributary_domain::click::{BotReason, Click};
use tributary_domain::event::EventSource;
use tributary_domain::event::web::{UncreditedReason, WebEvent, WebEventKind, WebEventPreview};
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::link::{Link, LinkKind};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::web_url::PageUrl;

async fn validate(store: &SharedStore, posted: &WebEvent) -> WebEventPreview {
    let previewed = store.validate_web_event(posted.clone()).await;
    previewed.expect("an event is valid")
}

/// A preview is the event that is then recorded, with its deliveries. It stores nothing.
pub async fn a_preview_is_what_is_recorded(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    one.report_sdk_event("phone", payment("o2", "9", "USD", 100))
        .await;
    let mut sign_up = post(&click, WebEventKind::SignUp, "s1", "0", None);
    sign_up.currency = None;
    for posted in [
        purchase(&click, "o1", "100"),
        // The SDK reported the same payment.
        purchase(&click, "o2", "9"),
        post(&click, WebEventKind::Renewal, "r1", "50", Some("o1")),
        post(&click, WebEventKind::Refund, "f1", "-30", Some("o1")),
        post(&click, WebEventKind::Refund, "f2", "-70", Some("o1")),
        sign_up,
    ] {
        let id = posted.external_id.as_str();
        let before = (one.log().await, one.total().await);
        let previewed = validate(store, &posted).await;
        assert_eq!(validate(store, &posted).await, previewed, "{id}");
        assert_eq!((one.log().await, one.total().await), before, "{id}");
        let replaced = previewed.replaced.iter().map(|event| event.source);
        let replaced: Vec<EventSource> = replaced.collect();
        let expected: &[EventSource] = if id == "o2" { &[EventSource::Sdk] } else { &[] };
        assert_eq!(replaced, expected, "{id}");

        one.post_web_event(posted.clone()).await;
        let stored = one.event(EventSource::Web, id).await;
        assert_eq!(previewed.event.as_ref(), Some(&stored), "{id}");
        let planned = previewed.planned.iter();
        let planned: Vec<_> = planned
            .map(|delivery| {
                (
                    delivery.network,
                    &*delivery.network_event,
                    &*delivery.dedup_id,
                )
            })
            .collect();
        let deliveries = one.deliveries(DeliveryFilter::default()).await;
        let deliveries = deliveries.iter().map(|one| &one.delivery);
        let deliveries: Vec<_> = deliveries
            .filter(|delivery| delivery.event == stored.id)
            .map(|delivery| {
                (
                    delivery.network,
                    &*delivery.network_event,
                    &*delivery.dedup_id,
                )
            })
            .collect();
        assert_eq!(planned, deliveries, "{id}");

        let repeated = validate(store, &posted).await;
        assert!(repeated.accepted.is_duplicate && repeated.planned.is_empty());
        assert!(repeated.replaced.is_empty(), "{id}");
        assert_eq!(
            repeated.accepted.received_at,
            previewed.accepted.received_at
        );
        assert_eq!(repeated.event, Some(stored), "{id}");
    }
}

/// A preview is refused for the same reason as the event.
pub async fn a_preview_is_refused_like_its_event(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    let paid = purchase(&click, "o1", "100");
    let accepted = store.accept_web_event(paid.clone()).await;
    accepted.expect("an event is accepted");
    let unknown = tenant.click(6);
    for posted in [
        purchase(&click, "o1", "99"),
        purchase(&unknown, "o2", "1"),
        post(&click, WebEventKind::Refund, "f1", "-101", Some("o1")),
        post(&click, WebEventKind::Refund, "f1", "-1", Some("nothing")),
        post(&click, WebEventKind::Renewal, "f1", "1", Some("f1")),
    ] {
        let previewed = refusal(store.validate_web_event(posted.clone()).await);
        let refused = refusal(store.accept_web_event(posted).await);
        assert_eq!(previewed, refused);
    }
}

/// Clicks on test links are stored but count nowhere, and pass in previews only.
pub async fn clicks_on_test_links_pass_in_previews_only(store: &SharedStore) {
    const LOCAL: &str = "http://localhost:3000";
    let (tenant, _) = shop(store).await;
    let page = PageUrl::parse(LOCAL).expect("a URL");
    let link = Link {
        kind: LinkKind::WebFunnel,
        is_test: true,
        destination_url: Some(page.clone()),
        ..new_link(tenant.app.id, 7)
    };
    let created = store.create_link(&tenant.writer, link.clone(), origin(7));
    created.await.expect("a link is created");
    let reader = tenant.writer.read_access();
    let read = store.link(&reader, tenant.app.id, link.id).await;
    assert_eq!(read.expect("a link"), link);
    let before = tenant.figures_of("network_a").await;
    let click = Click {
        link: link.id,
        bot: Some(BotReason::TestLink),
        destination_origin: Some(LOCAL.to_owned()),
        ..tenant.click(8)
    };
    let recorded = store.record_click(click.clone()).await;
    recorded.expect("a click is recorded");
    assert_eq!(tenant.figures_of("network_a").await, before);

    let posted = WebEvent {
        source_url: format!("{LOCAL}/paid"),
        origin: page.origin(),
        ..purchase(&click, "o1", "10")
    };
    let previewed = validate(store, &posted).await;
    let credit = previewed.event.and_then(|event| event.credit);
    assert_eq!(credit.and_then(|credit| credit.click), Some(click.id));
    let uncredited = previewed.click.and_then(|click| click.uncredited);
    assert_eq!(uncredited, Some(UncreditedReason::TestLink));
    let refused = store.accept_web_event(posted).await;
    assert_eq!(refusal(refused), Refusal::TestClick);
    assert_eq!(tenant.figures_of("network_a").await, before);
}
