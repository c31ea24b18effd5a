//! Clicks, and link lookups for the public endpoints.

use super::fixtures::{SharedStore, app, at, join_all, new_app, new_link, origin};
use super::sdk_fixtures::tenant;
use crate::{LinkRef, LogPart};
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::app::AppChange;
use tributary_domain::click::agent::BotReason;
use tributary_domain::click::params::{Offer, TrackingParams};
use tributary_domain::click::{NetworkSource, PageHints};
use tributary_domain::device::Screen;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::link::{Campaign, LinkChange, Slug};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HostName;

/// A link is found by its id and by its current and former slugs, unless it is archived.
pub async fn a_link_is_found_by_id_and_slugs(store: &SharedStore) {
    let tenant = tenant(store).await;
    let by_id = LinkRef::Id(tenant.link.id);
    let former = LinkRef::Slug(tenant.link.slug.clone());
    let change = LinkChange {
        slug: Some(Slug::parse("another-slug").expect("a slug")),
        active: Change::Set(false),
        ..LinkChange::default()
    };
    let changed = store
        .update_link(
            &tenant.writer,
            tenant.app.id,
            tenant.link.id,
            change,
            Precondition::None,
            origin(3),
        )
        .await
        .expect("a link is changed");
    let present = LinkRef::Slug(changed.slug.clone());
    for link in [&by_id, &former, &present] {
        let found = store
            .tracking_link(link.clone())
            .await
            .expect("links are read");
        let found = found.expect("the link is found, active or not");
        assert_eq!(found.link, changed);
        assert_eq!(found.app, tenant.app);
    }
    store
        .delete_link(
            &tenant.writer,
            tenant.app.id,
            tenant.link.id,
            Precondition::None,
            origin(4),
        )
        .await
        .expect("a link is archived");
    let unknown = LinkRef::Id(LinkId::from_bytes([9; 16]));
    let never = LinkRef::Slug(Slug::parse("never-was").expect("a slug"));
    for link in [by_id, former, present, unknown, never] {
        assert!(
            store
                .tracking_link(link)
                .await
                .expect("links are read")
                .is_none()
        );
    }
}

/// A custom host serves its app only; the service's host serves all other apps.
pub async fn apps_are_listed_per_host(store: &SharedStore) {
    let tenant = tenant(store).await;
    let other = app(store, &tenant.writer).await;
    let own = HostName::parse("go.example.com").expect("a host");
    let change = AppChange {
        link_domain: Change::Set(own.clone()),
        ..AppChange::default()
    };
    store
        .update_app(
            &tenant.writer,
            other.id,
            change,
            Precondition::None,
            origin(3),
        )
        .await
        .expect("an app is changed");
    let verified =
        store.set_link_domain_verified(&tenant.writer, other.id, own.clone(), true, origin(4));
    verified.await.expect("the domain is verified");
    let ids = async |host: Option<&HostName>| {
        let apps = store
            .apps_for_host(host.cloned())
            .await
            .expect("apps are read");
        apps.into_iter().map(|app| app.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Some(&own)).await, [other.id]);
    assert_eq!(ids(None).await, [tenant.app.id]);
    let stranger = HostName::parse("elsewhere.example.com").expect("a host");
    assert!(ids(Some(&stranger)).await.is_empty());
}

/// Every field of a click is stored, and is read back when the click is a candidate for an
/// attribution.
pub async fn a_click_is_read_as_it_was_recorded(store: &SharedStore) {
    let tenant = tenant(store).await;
    let mut captured = TrackingParams {
        campaign: Campaign {
            id: Some("c1".to_owned()),
            name: Some("Spring \"sale\" é".to_owned()),
            adset_id: Some("s1".to_owned()),
            adset_name: None,
            ad_id: Some("a1".to_owned()),
            ad_name: None,
        },
        offer: Some(Offer::Trial),
        keyword: Some("running".to_owned()),
        query_params: BTreeMap::from([("invite".to_owned(), "x=1&y".to_owned())]),
        ..TrackingParams::default()
    };
    captured.click_ids.fbclid = Some("AbC".to_owned());
    captured.utm.source = Some("ig".to_owned());
    captured.browser_ids.fbp = Some("fb.1".to_owned());
    let mut click = tenant.click(10);
    click.network_by = Some(NetworkSource::ClickId);
    click.timezone = Some("Europe/Berlin".to_owned());
    click.screen = Screen::new(390, 844, 300);
    click.advertising_hash = Some(Digest::of(b"gaid"));
    click.referer = Some("https://example.com".to_owned());
    click.destination_origin = Some("https://shop.example.com".to_owned());
    click.captured = captured;
    store
        .record_click(click.clone())
        .await
        .expect("a click is recorded");
    let configured = tenant
        .call_configure(tenant.configure_with_click("device-1", &click, 60))
        .await;
    let decision = configured.attribution.decision;
    assert_eq!(decision.click, Some(click.id));
    assert_eq!(decision.campaign, click.captured.campaign);
    assert_eq!(decision.query_params, click.captured.query_params);
    assert_eq!(decision.keyword, click.captured.keyword);
}

/// A repeated click counts once. Bot clicks do not count.
pub async fn a_click_is_counted_once_and_bots_are_not(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    store.record_click(click).await.expect("a repeated click");
    let mut bot = tenant.click(11);
    bot.bot = Some(BotReason::KnownAgent);
    store.record_click(bot).await.expect("a bot is recorded");
    let mut unattributed = tenant.click(12);
    unattributed.network = None;
    store
        .record_click(unattributed)
        .await
        .expect("a click is recorded");
    assert_eq!(tenant.figures_of("network_a").await.clicks, 1);
    assert_eq!(tenant.figures_of("other").await.clicks, 1);
}

/// Concurrent clicks are all recorded.
pub async fn concurrent_clicks_are_all_recorded(store: &SharedStore) {
    let tenant = tenant(store).await;
    let clicks = (0..200).map(|_| store.record_click(tenant.click(10)));
    for outcome in join_all(clicks.collect()).await {
        outcome.expect("a click is recorded");
    }
    assert_eq!(tenant.figures_of("network_a").await.clicks, 200);
}

/// Page hints fill in fields that the click lacks, but only while the click is recent.
pub async fn page_hints_fill_missing_fields(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    let hints = PageHints {
        timezone: Some("Europe/Berlin".to_owned()),
        screen: Screen::new(412, 915, 262),
        model: Some("Another".to_owned()),
        os_version: None,
    };
    let add = async |not_before| {
        let added = store.add_page_hints(click.app, click.id, hints.clone(), at(not_before));
        added.await.expect("hints are added")
    };
    assert!(!add(11).await, "the click is too old");
    assert!(add(10).await);
    let command = ConfigureCommand {
        traits: tributary_domain::device::Traits {
            timezone: Some("Europe/Berlin".to_owned()),
            screen: Screen::new(915, 412, 262),
            ..tenant.configure("d", 60).traits
        },
        ..tenant.configure_from_address("device-1", 60)
    };
    let decision = tenant.call_configure(command).await.attribution.decision;
    let signals = decision.candidates[0]
        .signals
        .expect("a probabilistic match has signals");
    assert_eq!(
        (signals.timezone, signals.screen, signals.model),
        (Some(10), Some(10), Some(10))
    );
}

/// Old addresses are deleted, and old clicks that nothing refers to are removed.
pub async fn old_clicks_are_removed_unless_referenced(store: &SharedStore) {
    let tenant = tenant(store).await;
    let taken = tenant.record_click(10).await;
    let first = tenant
        .call_configure(tenant.configure_with_click("device-1", &taken, 60))
        .await;
    assert_eq!(first.attribution.decision.click, Some(taken.id));
    for seconds in 11..14 {
        tenant.record_click(seconds).await;
    }
    let young = tenant.record_click(500).await;
    let forget = async |limit| {
        let forgotten = store.forget_addresses(at(100), at(0), limit);
        forgotten.await.expect("addresses are deleted")
    };
    assert_eq!(
        (forget(3).await, forget(3).await, forget(3).await),
        (3, 1, 0)
    );
    let remove = async |limit| {
        let removed = store.remove_clicks(at(100), limit);
        removed.await.expect("clicks are removed")
    };
    assert_eq!(
        (remove(2).await, remove(2).await, remove(2).await),
        (2, 1, 0)
    );
    // A removed click is unknown; a click that an install claimed is still claimed.
    let again = tenant
        .call_configure(tenant.configure_with_click("device-2", &taken, 510))
        .await;
    let rejected = again.attribution.decision.candidates[0].rejection;
    assert_eq!(
        rejected.map(tributary_domain::attribution::Rejection::as_str),
        Some("duplicate_click")
    );
    let from_address = tenant
        .call_configure(tenant.configure_from_address("device-3", 520))
        .await;
    let considered = from_address.attribution.decision.candidates;
    let clicks: Vec<_> = considered
        .iter()
        .filter_map(|candidate| candidate.click)
        .collect();
    assert_eq!(clicks, [young.id], "a deleted address matches nothing");
}

/// A device's address hash is deleted in time, whatever happens to the clicks'.
pub async fn old_device_addresses_are_deleted(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant
        .call_configure(tenant.configure_from_address("device-1", 60))
        .await;
    tenant
        .call_configure(tenant.configure("device-2", 60))
        .await;
    tenant
        .call_configure(tenant.configure_from_address("device-3", 500))
        .await;
    tenant.record_click(60).await;
    // Clicks may wait for the end of their partition; devices never wait.
    let forget = async || {
        let forgotten = store.forget_addresses(at(60), at(100), 10);
        forgotten.await.expect("addresses are deleted")
    };
    assert_eq!((forget().await, forget().await), (1, 0));
}

/// Real clicks stay among the candidates, no matter how many bot clicks there are.
pub async fn bot_clicks_do_not_crowd_out_real_ones(store: &SharedStore) {
    let tenant = tenant(store).await;
    let gaid = Some(Digest::of(b"gaid"));
    let mut click = tenant.click(10);
    click.advertising_hash = gaid;
    store
        .record_click(click.clone())
        .await
        .expect("a click is recorded");
    for seconds in 11..41 {
        let mut bot = tenant.click(seconds);
        bot.bot = Some(BotReason::Head);
        bot.advertising_hash = gaid;
        store.record_click(bot).await.expect("a bot is recorded");
    }
    let by_gaid = ConfigureCommand {
        environment: tributary_domain::access::Environment::Test,
        advertising_hash: gaid,
        ..tenant.configure("device-1", 60)
    };
    let from_address = tenant.configure_from_address("device-2", 60);
    for command in [by_gaid, from_address] {
        let decision = tenant.call_configure(command).await.attribution.decision;
        assert_eq!(decision.click, Some(click.id));
    }
}

/// A click on another app's link is not stored.
pub async fn a_click_needs_the_link_of_its_app(store: &SharedStore) {
    let tenant = tenant(store).await;
    let other = new_app(&tenant.writer, 3);
    let mut stray = tenant.click(10);
    stray.link = new_link(other.id, 3).id;
    assert!(store.record_click(stray).await.is_err());
    let click = tenant.record_click(11).await;
    assert_eq!(tenant.figures_of("network_a").await.clicks, 1);
    assert_eq!(click.link, tenant.link.id);
}

/// A click made with a test key counts only in test figures and never matches a live install.
pub async fn a_click_of_a_test_key_stays_in_the_test_environment(store: &SharedStore) {
    let tenant = tenant(store).await;
    let mut click = tenant.click(60);
    click.environment = Some(Environment::Test);
    let opened = ConfigureCommand {
        environment: Environment::Test,
        app_link_click: Some(click.clone()),
        ..tenant.configure("tester", 61)
    };
    let opened = tenant.call_configure(opened).await;
    assert_eq!(opened.attribution.decision.click, Some(click.id));
    assert_eq!(tenant.figures_of("network_a").await.clicks, 0);
    let part = || LogPart {
        after: None,
        from: at(0),
        until: at(1_000),
        limit: 10,
    };
    let test = tenant.test_reader();
    let app = tenant.app.id;
    let figures = store
        .figures_by_network(&test, app, (at(-1_000_000), at(10_000_000)))
        .await;
    let counted: i64 = figures
        .expect("figures are read")
        .iter()
        .map(|(_, figures)| figures.clicks)
        .sum();
    assert_eq!(counted, 1);
    let found = store.log_clicks(&test, app, part()).await;
    assert_eq!(found.expect("clicks are read"), [click.clone()]);
    let found = store.log_clicks(&tenant.reader, app, part()).await;
    assert_eq!(found.expect("clicks are read"), []);
    let probabilistic = tenant
        .call_configure(tenant.configure_from_address("person", 120))
        .await;
    assert_eq!(probabilistic.attribution.decision.click, None);
    let by_name = tenant
        .call_configure(tenant.configure_with_click("other", &click, 121))
        .await;
    assert_eq!(by_name.attribution.decision.click, None);
}
