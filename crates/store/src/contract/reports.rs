//! Reports: figures, cohorts, costs and parts of the event and click logs.

use super::fixtures::{
    SharedStore, assert_rebuild_changes_nothing, at, first_page, join_all, organization, origin,
    refusal,
};
use super::sdk_fixtures::{Tenant, event, payment, tenant};
use crate::LogPart;
use std::sync::atomic::{AtomicI64, Ordering};
use tributary_domain::access::{Authorized, Environment};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::click::Click;
use tributary_domain::click::agent::BotReason;
use tributary_domain::device::Platform;
use tributary_domain::event::{EVENTS_SCANNED_MAX, EventFilter, EventSource};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cardinality_cap::NAMES_PER_DAY_MAX;
use tributary_domain::report::cohort::{AGE_DAYS_MAX, CohortReportQuery, CohortTable};
use tributary_domain::report::cost::{Cost, CostFilter, CostOrigin};
use tributary_domain::report::{
    ClickBreakdown, Dimension, Figures, OTHER, ReportQuery, Rollup, StatsRow,
};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::money::Amount;

fn report_query(by: &[Dimension]) -> ReportQuery {
    ReportQuery {
        periods: vec![(at(-1_000_000), at(0)), (at(0), at(10_000_000))],
        group_by: by.to_vec(),
        filters: Vec::new(),
        rows_max: 10_000,
    }
}

/// Returns the period, the values and the number of events of each row.
async fn rows(tenant: &Tenant, query: ReportQuery) -> Vec<(usize, Vec<String>, i64)> {
    let found = tenant.store.stats(&tenant.reader, tenant.app.id, query);
    let found = found.await.expect("figures are read").into_iter();
    let mut rows: Vec<_> = found
        .map(|row| (row.period, row.values, row.figures.events))
        .collect();
    rows.sort();
    rows
}

/// While clicks are recorded and reports are read concurrently, every report contains at least the
/// clicks that were acknowledged before it started. In the end, every report counts each click
/// once.
pub async fn a_report_contains_everything_answered_before_it(store: &SharedStore) {
    const CLICKS: i64 = 120;
    let tenant = tenant(store).await;
    let answered = AtomicI64::new(0);
    let record = async |number: i64| {
        let recorded = store.record_click(tenant.click(number)).await;
        recorded.expect("a click is recorded");
        let before = answered.fetch_add(1, Ordering::SeqCst) + 1;
        let clicks = if number % 2 == 0 {
            tenant.figures_of("network_a").await.clicks
        } else {
            let app_periods = (tenant.app.id, vec![(at(-1_000_000), at(10_000_000))]);
            let reader = Authorized::operator(tenant.writer.organization());
            let totals = store.totals(&reader, vec![app_periods]).await;
            totals.expect("figures are read")[0].2.clicks
        };
        assert!((before..=CLICKS).contains(&clicks), "{clicks} of {before}");
    };
    join_all((0..CLICKS).map(record).collect()).await;
    for clicks in [
        tenant.figures_of("network_a").await.clicks,
        tenant.figures_of("network_a").await.clicks,
    ] {
        assert_eq!(clicks, CLICKS);
    }
    assert_rebuild_changes_nothing(store).await;
}

/// Figures are grouped by period and the requested dimensions, and filters apply.
pub async fn figures_are_grouped_by_the_requested_dimensions(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    tenant
        .call_configure(tenant.configure_with_click("d1", &click, 20))
        .await;
    let events = vec![event("e1", "open", 30), payment("e2", "5", "USD", 40)];
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 50), events);
    accepted.await.expect("events are accepted");
    let texts = |values: &[&str]| values.iter().map(|one| (*one).to_owned()).collect();
    assert_eq!(rows(&tenant, report_query(&[])).await, [(1, texts(&[]), 3)]);
    let link = tenant.link.id.to_string();
    assert_eq!(
        rows(
            &tenant,
            report_query(&[Dimension::Link, Dimension::Network])
        )
        .await,
        [(1, texts(&[&link, "network_a"]), 3)]
    );
    assert_eq!(
        rows(&tenant, report_query(&[Dimension::Event])).await,
        [
            (1, texts(&["install"]), 1),
            (1, texts(&["open"]), 1),
            (1, texts(&["purchase"]), 1)
        ]
    );
    let mut query = report_query(&[Dimension::Country]);
    query.filters = vec![(Dimension::Platform, "ios".to_owned())];
    assert_eq!(rows(&tenant, query.clone()).await, []);
    query.filters = vec![(Dimension::Platform, "android".to_owned())];
    assert_eq!(rows(&tenant, query).await, [(1, texts(&["DE"]), 3)]);
    let mut query = report_query(&[]);
    query.filters = vec![(Dimension::Link, link)];
    assert_eq!(rows(&tenant, query.clone()).await, [(1, texts(&[]), 3)]);
    query.filters = vec![(Dimension::Link, "no id".to_owned())];
    assert_eq!(rows(&tenant, query).await, []);
    let refused = store.stats(
        &tenant.reader,
        tenant.app.id,
        report_query(&[Dimension::Event, Dimension::Country]),
    );
    assert!(refused.await.is_err(), "no roll-up has both");
}

/// Returns the rows of the figures and cohort reports: without dimensions, by the dimensions of the
/// pivots, and by one dimension at a time.
pub async fn all_answers(tenant: &Tenant) -> Vec<StatsRow> {
    let (store, reader, app) = (&tenant.store, &tenant.reader, tenant.app.id);
    let mut found = Vec::new();
    let questions = Dimension::ALL.iter().map(std::slice::from_ref);
    let pivots = Rollup::Pivots.dimensions();
    for by in [[].as_slice(), pivots].into_iter().chain(questions) {
        let stats = store.stats(reader, app, report_query(by)).await;
        found.extend(stats.expect("figures are read"));
    }
    let tables = CohortTable::ALL.into_iter().map(CohortTable::dimensions);
    let single = tables.clone().flatten().map(std::slice::from_ref);
    for by in std::iter::once([].as_slice()).chain(tables).chain(single) {
        let periods = report_query(&[]).periods;
        let query = CohortReportQuery::new(periods, by, AGE_DAYS_MAX, 10_000);
        let cohorts = store.cohorts(reader, app, query).await;
        let rows = cohorts.expect("cohorts are read").into_iter();
        let mut rows: Vec<StatsRow> = rows
            .map(|row| StatsRow {
                period: row.period,
                values: row
                    .values
                    .into_iter()
                    .chain([row.age.to_string()])
                    .collect(),
                figures: Figures {
                    events: row.figures.devices,
                    revenue_micros: row.figures.revenue_micros,
                    refunded_micros: row.figures.refunded_micros,
                    ..Figures::default()
                },
            })
            .collect();
        rows.sort_by(|one, other| (one.period, &one.values).cmp(&(other.period, &other.values)));
        found.extend(rows);
    }
    found
}

/// Merging increments changes no report, because reports add unmerged increments. This is checked
/// after clicks, installs, events on later days and a late attribution.
pub async fn merging_changes_no_report(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let mut before = Vec::new();
    for (number, second) in [30, 100_000, 200_000, 1_000_000].into_iter().enumerate() {
        let id = |kind: &str| format!("{kind}-{number}");
        let events = vec![
            event(&id("open"), "open", second),
            payment(&id("paid"), "5", "USD", second + 1),
        ];
        let arrival = tenant.arrival(&format!("d{}", number % 2), second + 2);
        let accepted = store.accept_sdk_events(arrival, events);
        accepted.await.expect("events are accepted");
        if number == 1 {
            let claims = tenant.configure_with_click("d0", &click, 100_100);
            tenant.call_configure(claims).await;
        }
        let unmerged = all_answers(&tenant).await;
        assert_ne!(unmerged, before, "a report contains unmerged increments");
        assert_rebuild_changes_nothing(store).await;
        assert_eq!(all_answers(&tenant).await, unmerged);
        before = unmerged;
    }
}

/// Other organizations read no figures, no log and no costs.
pub async fn another_organization_reads_no_reports(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let stranger = organization(store).await;
    let reader = Authorized::operator(stranger.organization());
    let app = tenant.app.id;
    let stats = store.stats(&reader, app, report_query(&[])).await;
    assert_eq!(refusal(stats), Refusal::AppNotFound);
    let part = LogPart {
        after: None,
        from: at(0),
        until: at(1_000),
        limit: 10,
    };
    let log = store.log_events(&reader, app, part, false).await;
    assert_eq!(refusal(log), Refusal::AppNotFound);
    let foreign = stranger.read_access();
    let costs = store.costs(&foreign, app, CostFilter::default(), first_page("5"));
    assert_eq!(refusal(costs.await), Refusal::AppNotFound);
    let totals = store.totals(&foreign, vec![(app, vec![(at(0), at(1_000))])]);
    assert_eq!(refusal(totals.await), Refusal::AppNotFound);
}

/// Per day, only a limited number of event names get their own row. The events with all other names
/// are counted together, and nothing is lost.
pub async fn names_beyond_the_daily_limit_count_together(store: &SharedStore) {
    let tenant = tenant(store).await;
    let names = NAMES_PER_DAY_MAX + 20;
    for first in (0..names).step_by(80) {
        let sent = (first..names.min(first + 80))
            .map(|number| event(&format!("e{number}"), &format!("name {number}"), 30))
            .collect();
        let accepted = store.accept_sdk_events(tenant.arrival("d1", 50), sent);
        accepted.await.expect("events are accepted");
    }
    let late = vec![event("late", "another name", 31)];
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 50), late);
    accepted.await.expect("events are accepted");
    let found = rows(&tenant, report_query(&[Dimension::Event])).await;
    assert_eq!(found.len(), NAMES_PER_DAY_MAX + 1);
    let other = found.iter().find(|(_, values, _)| values[0] == OTHER);
    assert_eq!(other.map(|(_, _, events)| *events), Some(21));
}

/// A better decision moves the device's cohort, and a rebuild changes nothing.
pub async fn better_evidence_moves_a_cohort(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let paid = vec![payment("e1", "5", "USD", 90_000)];
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 90_000), paid);
    accepted.await.expect("events are accepted");
    let cohorts = async |by| {
        let periods = vec![(at(-1_000_000), at(1_000_000))];
        let query = CohortReportQuery::new(periods, &[by], 30, 1_000);
        let found = store.cohorts(&tenant.reader, tenant.app.id, query).await;
        let found = found.expect("cohorts are read").into_iter();
        let mut rows: Vec<_> = found
            .map(|row| {
                (
                    row.values.concat(),
                    row.age,
                    row.figures.devices,
                    row.figures.revenue_micros,
                )
            })
            .filter(|row| (row.2, row.3) != (0, 0))
            .collect();
        rows.sort();
        rows
    };
    let row = |value: &str, age, devices, paid| (value.to_owned(), age, devices, paid);
    let network = Dimension::Network;
    assert_eq!(
        cohorts(network).await,
        [row("organic", 0, 1, 0), row("organic", 1, 1, 5_000_000)]
    );
    tenant
        .call_configure(tenant.configure_with_click("d1", &click, 91_000))
        .await;
    let moved = cohorts(network).await;
    assert_eq!(
        moved,
        [row("network_a", 0, 1, 0), row("network_a", 1, 1, 5_000_000)]
    );
    let by_country = [row("DE", 0, 1, 0), row("DE", 1, 1, 5_000_000)];
    assert_eq!(cohorts(Dimension::Country).await, by_country);
    assert_rebuild_changes_nothing(store).await;
    assert_eq!(cohorts(network).await, moved);
}

fn cost(day: &str, campaign: &str, amount: &str, currency: &str) -> Cost {
    Cost {
        day: Day::parse(day).expect("a day"),
        network: CreditedNetwork::AppleAds,
        campaign: campaign.to_owned(),
        amount: Amount::parse(amount).expect("an amount"),
        currency: Currency::from_stored(currency).expect("a currency"),
        origin: CostOrigin::Manual,
    }
}

/// A cost replaces the previous one, and an amount of zero removes it. A cost that cannot be
/// converted changes nothing.
pub async fn a_cost_replaces_the_previous_one(store: &SharedStore) {
    let tenant = tenant(store).await;
    let app = tenant.app.id;
    let put = async |costs| store.put_costs(&tenant.writer, app, costs, origin(5)).await;
    let stored_costs = async || {
        let reader = tenant.writer.read_access();
        let all = store.costs(&reader, app, CostFilter::default(), first_page("50"));
        let all = all.await.expect("costs are read").items.into_iter();
        let stored_costs: Vec<_> = all
            .map(|one| {
                (
                    one.cost.day.to_string(),
                    one.cost.campaign,
                    one.usd.to_string(),
                )
            })
            .collect();
        stored_costs
    };
    let first = vec![
        cost("2024-01-02", "a", "5", "USD"),
        cost("2024-01-03", "a", "7", "USD"),
    ];
    assert_eq!(put(first).await.expect("costs are stored"), 2);
    put(vec![cost("2024-01-02", "a", "6.5", "USD")])
        .await
        .expect("a cost is stored");
    let row = |day: &str, usd: &str| (day.to_owned(), "a".to_owned(), usd.to_owned());
    assert_eq!(
        stored_costs().await,
        [row("2024-01-03", "7"), row("2024-01-02", "6.5")]
    );
    let faulty = vec![
        cost("2024-01-04", "b", "1", "USD"),
        cost("2024-01-04", "c", "1", "ZZZ"),
    ];
    assert!(put(faulty).await.is_err());
    put(vec![cost("2024-01-03", "a", "0", "USD")])
        .await
        .expect("a cost is removed");
    assert_eq!(stored_costs().await, [row("2024-01-02", "6.5")]);
    let (from, to) = (
        cost("2024-01-02", "", "0", "USD").day,
        cost("2024-01-02", "", "0", "USD").day,
    );
    let sums = store
        .cost_sums(&tenant.reader, vec![app], from, to)
        .await
        .expect("sums");
    assert_eq!(
        sums.iter().map(|(_, sum)| sum.usd_micros).sum::<i64>(),
        6_500_000
    );
    let of_test = store
        .cost_sums(&tenant.test_reader(), vec![app], from, to)
        .await;
    assert_eq!(of_test.expect("sums"), []);
}

/// The event log is read in parts without gaps or repetitions; the parts can contain all events or
/// installs only.
pub async fn the_log_is_read_in_parts(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let sent = (0..7).map(|number| event(&format!("e{number}"), "open", 30 + number));
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 60), sent.collect());
    accepted.await.expect("events are accepted");
    let mut part = LogPart {
        after: None,
        from: at(0),
        until: at(36),
        limit: 3,
    };
    let mut seen = Vec::new();
    loop {
        let read = store.log_events(&tenant.reader, tenant.app.id, part, false);
        let read = read.await.expect("the log is read");
        part.after = read.last().map(|event| event.id);
        seen.extend(read.into_iter().map(|event| event.external_id));
        if part.after.is_none() {
            break;
        }
    }
    assert_eq!(seen[1..], ["e0", "e1", "e2", "e3", "e4", "e5"]);
    part.limit = 50;
    let installs = store.log_events(&tenant.reader, tenant.app.id, part, true);
    let installs = installs.await.expect("the log is read");
    assert_eq!(
        installs
            .iter()
            .map(|event| event.name.as_str())
            .collect::<Vec<_>>(),
        ["install"]
    );
    let click = tenant.record_click(21).await;
    let part = LogPart {
        after: None,
        from: at(0),
        until: at(36),
        limit: 3,
    };
    let clicks = store.log_clicks(&tenant.reader, tenant.app.id, part).await;
    assert_eq!(clicks.expect("clicks are read"), [click]);
    let of_test = store
        .log_clicks(&tenant.test_reader(), tenant.app.id, part)
        .await;
    assert_eq!(of_test.expect("clicks are read"), []);
}

/// A search that no index supports stops after a number of events, returns its position, and can
/// continue from there.
pub async fn a_long_search_stops_early_and_returns_its_position(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let requests = i64::from(EVENTS_SCANNED_MAX / 100 + 1);
    let send = |request: i64| {
        let sent =
            (0..100).map(|number| event(&format!("{request}-{number}"), "open", 30 + request));
        store.accept_sdk_events(tenant.arrival("d1", 60), sent.collect())
    };
    for accepted in join_all((0..requests).map(send).collect()).await {
        accepted.expect("events are accepted");
    }
    let search = async |before, source| {
        let filter = EventFilter {
            name: None,
            source,
            network: Some(CreditedNetwork::Other),
            ..EventFilter::default()
        };
        let mut page = first_page("50");
        page.before = before;
        let found = store.events(&tenant.reader, tenant.app.id, filter, page);
        found.await.expect("the log is searched")
    };
    let first = search(None, Some(EventSource::Sdk)).await;
    let stopped_at = first.stopped_at.expect("the search stops early");
    assert!(first.items.is_empty() && first.has_more);
    let rest = search(Some(*stopped_at.as_bytes()), None).await;
    assert_eq!(
        (rest.items.len(), rest.has_more, rest.stopped_at),
        (0, false, None)
    );
}

/// A link's clicks in a period are counted by country and platform, without bots, other links and
/// other environments.
pub async fn clicks_of_a_link_are_counted_by_country_and_platform(store: &SharedStore) {
    let tenant = tenant(store).await;
    let record = async |seconds: i64, change: fn(&mut Click)| {
        let mut click = tenant.click(seconds);
        change(&mut click);
        let recorded = store.record_click(click).await;
        recorded.expect("a click is recorded");
    };
    record(10, |_| {}).await;
    record(20, |click| click.country = None).await;
    record(30, |click| click.agent.platform = Platform::Ios).await;
    record(40, |click| click.bot = Some(BotReason::KnownAgent)).await;
    record(50, |click| click.environment = Some(Environment::Test)).await;
    record(5_000, |_| {}).await;
    let count = async |period| {
        let (app, link) = (tenant.app.id, tenant.link.id);
        let counted = store.click_breakdown(&tenant.reader, app, link, period);
        counted.await.expect("clicks are counted")
    };
    let counted = count((at(0), at(1_000))).await;
    assert_eq!(counted.clicks, 3);
    let sum = |name: &str, clicks| (name.to_owned(), clicks);
    assert_eq!(counted.countries, [sum("DE", 2), sum("", 1)]);
    assert_eq!(counted.platforms, [sum("android", 2), sum("ios", 1)]);
    assert_eq!(count((at(0), at(10_000))).await.clicks, 4);
    assert_eq!(count((at(11), at(20))).await, ClickBreakdown::default());
    let other = LinkId::from_bytes([9; 16]);
    let none = store.click_breakdown(&tenant.reader, tenant.app.id, other, (at(0), at(1_000)));
    assert_eq!(none.await.expect("clicks are counted").clicks, 0);
}
