//! Reports under attack: invented values do not hide the real ones, and maintained figures equal
//! rebuilt ones.

use super::fixtures::{
    SharedStore, assert_rebuild_changes_nothing, at, join_all, new_link, origin,
};
use super::reports::all_answers;
use super::sdk_fixtures::{Tenant, event, tenant};
use std::collections::BTreeMap;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::click::Click;
use tributary_domain::integration::{IntegrationChange, MappingRow, Network};
use tributary_domain::report::cardinality_cap::{CAMPAIGNS_PER_DAY_MAX, NAMES_PER_DAY_MAX};
use tributary_domain::report::cost::{Cost, CostOrigin};
use tributary_domain::report::{Dimension, Figures, OTHER, ReportQuery};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Precondition;

async fn tap(tenant: &Tenant, campaign: &str, ad: &str, seconds: i64) -> Click {
    let mut click = tenant.click(seconds);
    click.captured.campaign.id = Some(campaign.to_owned());
    click.captured.campaign.ad_id = Some(ad.to_owned());
    let recorded = tenant.store.record_click(click.clone()).await;
    recorded.expect("a click is recorded");
    click
}

/// Taps with invented campaigns, whose names sort before the real ones.
async fn attack(tenant: &Tenant, first: i64, count: i64) {
    let taps = (first..first + count)
        .map(async |number| tap(tenant, &format!("!{number:05}"), "x", 10 + number % 5_000).await);
    join_all(taps.collect()).await;
}

/// Returns the figures by value of a dimension.
async fn figures_by(tenant: &Tenant, dimension: Dimension) -> BTreeMap<String, Figures> {
    figures_in_rows(tenant, dimension, 10_000).await
}

/// Returns the figures by value of a dimension, in a report of limited size.
async fn figures_in_rows(
    tenant: &Tenant,
    dimension: Dimension,
    rows_max: u32,
) -> BTreeMap<String, Figures> {
    let query = ReportQuery {
        periods: vec![(at(0), at(10_000_000))],
        group_by: vec![dimension],
        filters: Vec::new(),
        rows_max,
    };
    let found = tenant.store.stats(&tenant.reader, tenant.app.id, query);
    let found = found.await.expect("figures are read").into_iter();
    found
        .map(|row| (row.values.concat(), row.figures))
        .collect()
}

/// Asserts that reports do not change when the increments are merged and the figures rebuilt.
async fn assert_settled(tenant: &Tenant) {
    let unmerged = all_answers(tenant).await;
    assert_rebuild_changes_nothing(&tenant.store).await;
    assert_eq!(all_answers(tenant).await, unmerged);
}

/// Campaigns with conversions, costs or links keep their rows, no matter whether the invented taps
/// come before, between or after them, and whether costs and links come late.
pub async fn invented_campaigns_do_not_hide_real_ones(store: &SharedStore) {
    let tenant = tenant(store).await;
    let real = ["converting", "linked", "paid", "popular"];
    attack(&tenant, 0, 150).await;
    let click = tap(&tenant, "converting", "a1", 20).await;
    tap(&tenant, "linked", "a2", 21).await;
    tap(&tenant, "paid", "a3", 22).await;
    for seconds in 30..33 {
        tap(&tenant, "popular", "a4", seconds).await;
    }
    attack(&tenant, 150, 150).await;
    let campaigns = figures_by(&tenant, Dimension::Campaign).await;
    assert_eq!(campaigns.len(), CAMPAIGNS_PER_DAY_MAX + 1);
    assert!(campaigns.contains_key("popular"));
    assert!(
        !campaigns.contains_key("converting"),
        "nothing sets it apart yet"
    );
    assert_settled(&tenant).await;

    // A conversion, a cost and a link that come late.
    let configure = tenant.configure_with_click("d1", &click, 100);
    tenant.call_configure(configure).await;
    let cost = Cost {
        day: Day::of(at(0)),
        network: CreditedNetwork::Ad(Network::A),
        campaign: "paid".to_owned(),
        amount: Amount::parse("5").expect("an amount"),
        currency: Currency::USD,
        origin: CostOrigin::Manual,
    };
    let stored = store.put_costs(&tenant.writer, tenant.app.id, vec![cost], origin(200));
    stored.await.expect("a cost is stored");
    let mut link = new_link(tenant.app.id, 200);
    link.campaign.id = Some("linked".to_owned());
    let created = store.create_link(&tenant.writer, link, origin(200)).await;
    created.expect("a link is created");
    let unmerged = figures_by(&tenant, Dimension::Campaign).await;
    let clicks = |name: &str| unmerged.get(name).map(|figures| figures.clicks);
    assert_eq!(real.map(clicks), [Some(1), Some(1), Some(1), Some(3)]);
    assert_settled(&tenant).await;

    attack(&tenant, 300, 200).await;
    let campaigns = figures_by(&tenant, Dimension::Campaign).await;
    for name in real {
        let figures = campaigns.get(name);
        assert_eq!(figures, unmerged.get(name), "{name}");
    }
    assert_eq!(campaigns.len(), CAMPAIGNS_PER_DAY_MAX + 1);
    let clicks: i64 = campaigns.values().map(|figures| figures.clicks).sum();
    assert_eq!(clicks, 500 + 6, "no click is lost");
    assert_eq!(tenant.figures_of("network_a").await.installs, 1);
    assert_settled(&tenant).await;
    let ads = figures_by(&tenant, Dimension::Ad).await;
    let clicks = |ad: &str| ads.get(ad).map(|figures| figures.clicks);
    let ads = ["a1", "a2", "a3", "a4"].map(clicks);
    assert_eq!(ads, [Some(1), Some(1), Some(1), Some(3)]);
}

/// Event names rank by frequency, and a name in a mapping is kept.
pub async fn invented_names_do_not_hide_real_ones(store: &SharedStore) {
    let tenant = tenant(store).await;
    let names = i64::try_from(NAMES_PER_DAY_MAX).unwrap_or(i64::MAX) + 40;
    let send = async |events: Vec<_>| {
        let accepted = store.accept_sdk_events(tenant.arrival("d1", 6_000), events);
        accepted.await.expect("events are accepted");
    };
    for first in (0..names).step_by(85) {
        let name = |number: i64| event(&format!("e{number}"), &format!("!{number:05}"), 30);
        send((first..names.min(first + 85)).map(name).collect()).await;
    }
    send(vec![event("mapped", "mapped", 40)]).await;
    send(vec![
        event("often1", "often", 41),
        event("often2", "often", 5_000),
    ])
    .await;
    let found = figures_by(&tenant, Dimension::Event).await;
    assert_eq!(found.len(), NAMES_PER_DAY_MAX + 1);
    assert_eq!(found.get("often").map(|figures| figures.events), Some(2));
    assert_eq!(found.get("mapped"), None);
    assert_settled(&tenant).await;
    let change = IntegrationChange {
        event_mapping: Change::Set(vec![MappingRow {
            event: "mapped".to_owned(),
            network_event: "Lead".to_owned(),
            enabled: true,
        }]),
        ..IntegrationChange::default()
    };
    let (writer, app, none) = (&tenant.writer, tenant.app.id, Precondition::None);
    let changed = store.update_integration(writer, app, Network::A, change, none, origin(6_000));
    changed.await.expect("the integration is changed");
    let found = figures_by(&tenant, Dimension::Event).await;
    assert_eq!(found.len(), NAMES_PER_DAY_MAX + 1);
    assert_eq!(found.get("mapped").map(|figures| figures.events), Some(1));
    let events: i64 = found.values().map(|figures| figures.events).sum();
    assert_eq!(events, names + 3);
    assert!(found.contains_key(OTHER));
    assert_settled(&tenant).await;
}

/// Values that lost their rows to others do not fill a report whose size is limited.
pub async fn displaced_values_use_up_no_rows(store: &SharedStore) {
    let tenant = tenant(store).await;
    let limit = i64::try_from(CAMPAIGNS_PER_DAY_MAX).unwrap_or(i64::MAX);
    attack(&tenant, 1_000, limit).await;
    assert_settled(&tenant).await;
    // Their names sort before the first ones.
    attack(&tenant, 0, limit).await;
    assert_settled(&tenant).await;
    let rows_max = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let found = figures_in_rows(&tenant, Dimension::Campaign, rows_max).await;
    assert_eq!(found.len(), CAMPAIGNS_PER_DAY_MAX + 1);
    let other = found.get(OTHER).map(|figures| figures.clicks);
    assert_eq!(other, Some(limit));
    assert!(found.contains_key("!00000") && !found.contains_key("!01000"));
}
