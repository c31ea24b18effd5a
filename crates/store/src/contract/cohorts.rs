//! Cohorts by several dimensions, with filters.

use super::fixtures::{SharedStore, assert_rebuild_changes_nothing, at, refusal};
use super::sdk_fixtures::{payment, tenant};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Dimension;
use tributary_domain::report::cohort::{CohortReportQuery, CohortRow};

const DAY: i64 = 24 * 60 * 60;
/// Amount of every payment in micro-units.
const PAID: i64 = 5_000_000;

/// Values, days since install, number of active devices and revenue.
type Row = (Vec<String>, u8, i64, i64);

/// Cohorts are grouped by several dimensions and filtered, before and after increments are merged.
/// Dimensions that no table has together are refused.
pub async fn cohorts_are_grouped_and_filtered(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    let credited = tenant.configure_with_click("paid", &click, 20);
    tenant.call_configure(credited).await;
    tenant.call_configure(tenant.configure("organic", 30)).await;
    for (device, second) in [("paid", DAY + 100), ("paid", 3 * DAY), ("organic", 40)] {
        let sent = vec![payment(&format!("{device}-{second}"), "5", "USD", second)];
        let accepted = store.accept_sdk_events(tenant.arrival(device, second), sent);
        accepted.await.expect("events are accepted");
    }
    let cohorts = async |by: &[Dimension], filters: &[(Dimension, &str)]| {
        let mut query = CohortReportQuery::new(vec![(at(-DAY), at(DAY))], by, 30, 1_000);
        let filters = filters.iter();
        let filters = filters.map(|(one, value)| (*one, (*value).to_owned()));
        query.report.filters = filters.collect();
        store.cohorts(&tenant.reader, tenant.app.id, query).await
    };
    let rows = async |by: &[Dimension], filters: &[(Dimension, &str)]| {
        let found = cohorts(by, filters).await.expect("cohorts are read");
        let row = |one: CohortRow| {
            let figures = one.figures;
            (one.values, one.age, figures.devices, figures.revenue_micros)
        };
        let mut rows: Vec<Row> = found.into_iter().map(row).collect();
        rows.sort();
        rows
    };
    let row = |values: &[&str], age, devices, paid| -> Row {
        let values = values.iter().map(|value| (*value).to_owned());
        (values.collect(), age, devices, paid)
    };
    let link = tenant.link.id.to_string();
    let (network, country) = (Dimension::Network, Dimension::Country);
    for _ in 0..2 {
        let credits = [Dimension::Link, network];
        let paid = [&*link, "network_a"];
        let expected = [
            row(&["", "organic"], 0, 1, PAID),
            row(&paid, 0, 1, 0),
            row(&paid, 1, 1, PAID),
            row(&paid, 2, 1, PAID),
        ];
        assert_eq!(rows(&credits, &[]).await, expected);
        let paid = [
            row(&[], 0, 1, 0),
            row(&[], 1, 1, PAID),
            row(&[], 2, 1, PAID),
        ];
        assert_eq!(rows(&[], &[(network, "network_a")]).await, paid);
        assert_eq!(rows(&[], &[(Dimension::Link, &link)]).await, paid);
        let organic = [row(&["organic"], 0, 1, PAID)];
        assert_eq!(rows(&[network], &[(Dimension::Link, "")]).await, organic);
        let none = [(network, "network_a"), (Dimension::Campaign, "another")];
        assert_eq!(rows(&[], &none).await, []);
        assert_eq!(rows(&[], &[(Dimension::Link, "no id")]).await, []);
        let german = rows(&[], &[(country, "DE")]).await;
        let all = [
            row(&[], 0, 2, PAID),
            row(&[], 1, 1, PAID),
            row(&[], 2, 1, PAID),
        ];
        assert_eq!(german, all);
        assert_eq!(rows(&[country], &[(country, "FR")]).await, []);
        assert_rebuild_changes_nothing(store).await;
    }
    for (by, filter) in [(country, network), (network, Dimension::Platform)] {
        let refused = cohorts(&[by], &[(filter, "x")]).await;
        assert!(
            matches!(refusal(refused), Refusal::Invalid(_)),
            "{by:?} {filter:?}"
        );
    }
}

/// A device counts once, at the age of its first counted payment, whatever arrives in which order.
pub async fn a_device_is_a_payer_from_its_first_payment_on(store: &SharedStore) {
    let tenant = tenant(store).await;
    for device in ["early", "late", "refunded", "unknown-currency", "never"] {
        tenant.call_configure(tenant.configure(device, 20)).await;
    }
    let payers = async |network: &str| {
        let mut query = CohortReportQuery::new(vec![(at(-DAY), at(DAY))], &[], 30, 1_000);
        query.report.filters = vec![(Dimension::Network, network.to_owned())];
        let rows = store.cohorts(&tenant.reader, tenant.app.id, query).await;
        let rows = rows.expect("cohorts are read").into_iter();
        let rows = rows.map(|one| (one.age, one.figures.payers));
        rows.filter(|(_, payers)| *payers != 0).collect::<Vec<_>>()
    };
    let pay = async |device: &str, amount: &str, currency: &str, second: i64| {
        let id = format!("{device}-{second}-{amount}");
        let sent = vec![payment(&id, amount, currency, second)];
        let accepted = store.accept_sdk_events(tenant.arrival(device, 9 * DAY), sent);
        accepted.await.expect("events are accepted");
    };
    pay("late", "5", "USD", 4 * DAY).await;
    pay("refunded", "5", "USD", 2 * DAY).await;
    pay("refunded", "-5", "USD", 3 * DAY).await;
    pay("unknown-currency", "5", "XXX", 100).await;
    assert_eq!(payers("organic").await, [(1, 1), (3, 1)]);
    pay("late", "5", "USD", 6 * DAY).await;
    pay("early", "5", "USD", 200).await;
    pay("late", "5", "USD", DAY + 100).await;
    assert_eq!(payers("organic").await, [(0, 1), (1, 2)]);
    assert_rebuild_changes_nothing(store).await;
    pay("early", "5", "USD", 3 * DAY).await;
    // Late evidence moves an install, and with it its payer.
    let click = tenant.record_click(10).await;
    let claims = tenant.configure_with_click("late", &click, 60);
    tenant.call_configure(claims).await;
    assert_eq!(payers("organic").await, [(0, 1), (1, 1)]);
    assert_eq!(payers("network_a").await, [(1, 1)]);
    assert_rebuild_changes_nothing(store).await;
    let (reader, app) = (&tenant.reader, tenant.app.id);
    let from = store.payers_complete_from(reader, app).await;
    assert_eq!(from.expect("a read"), None, "a new app lacks nothing");
    assert!(!store.fill_payers(app).await.expect("nothing to fill"));
}
