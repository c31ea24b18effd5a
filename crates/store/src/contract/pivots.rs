//! Pivots: network and campaign together with country and platform.

use super::fixtures::{SharedStore, assert_rebuild_changes_nothing, at, organization, refusal};
use super::sdk_fixtures::{Tenant, event, payment, tenant};
use tributary_domain::access::Authorized;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::{Dimension, ReportQuery, Rollup};

fn by(dimensions: &[Dimension]) -> ReportQuery {
    ReportQuery {
        periods: vec![(at(-1_000_000), at(10_000_000))],
        group_by: dimensions.to_vec(),
        filters: Vec::new(),
        rows_max: 10_000,
    }
}

/// Returns the values, the clicks, the installs and the events of each row.
async fn rows(tenant: &Tenant, query: ReportQuery) -> Vec<(String, i64, i64, i64)> {
    let found = tenant.store.stats(&tenant.reader, tenant.app.id, query);
    let found = found.await.expect("figures are read").into_iter();
    found
        .map(|row| {
            let figures = row.figures;
            let values = row.values.join(" ");
            (values, figures.clicks, figures.installs, figures.events)
        })
        .collect()
}

/// Clicks and events count by credit and place, and move with their credit.
pub async fn pivots_follow_the_credit(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let events = vec![event("e1", "open", 30), payment("e2", "5", "USD", 40)];
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 50), events);
    accepted.await.expect("events are accepted");
    let events_of = async |network: &str| -> i64 {
        let mut query = by(&[Dimension::Country]);
        query.filters = vec![(Dimension::Network, network.to_owned())];
        rows(&tenant, query).await.iter().map(|row| row.3).sum()
    };
    assert_eq!(events_of("organic").await, 3);
    // Late evidence moves the install and its events to the click.
    let claims = tenant.configure_with_click("d1", &click, 60);
    tenant.call_configure(claims).await;
    assert_eq!(
        (events_of("organic").await, events_of("network_a").await),
        (0, 3)
    );
    let found = rows(&tenant, by(Rollup::Pivots.dimensions())).await;
    let sum = |pick: fn(&(String, i64, i64, i64)) -> i64| found.iter().map(pick).sum::<i64>();
    let sums = (sum(|row| row.1), sum(|row| row.2), sum(|row| row.3));
    assert_eq!(sums, (1, 1, 3), "{found:?}");
    assert_rebuild_changes_nothing(store).await;
}

/// A new app has no history to fill.
pub async fn the_pivots_of_a_new_app_are_complete(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.record_click(10).await;
    let query = by(&[Dimension::Country, Dimension::Network]);
    let (reader, app) = (&tenant.reader, tenant.app.id);
    let complete_from = store.complete_from(reader, app, &query).await;
    assert_eq!(complete_from.expect("a read"), None);
    assert!(!store.fill_pivots(app).await.expect("nothing to fill"));
    let apps = store.apps_to_fill(at(10_000_000), 1_000).await;
    assert!(!apps.expect("apps").contains(&app));
    let stranger = Authorized::operator(organization(store).await.organization());
    let refused = store.pivots_complete_from(&stranger, app).await;
    assert_eq!(refusal(refused), Refusal::AppNotFound);
}
