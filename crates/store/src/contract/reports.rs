//! Reports: figures, cohorts, costs, parts of the log.

use super::fixtures::{
    SharedStore, assert_rebuild_changes_nothing, at, first_page, join_all, organization, origin,
    refusal,
};
use super::sdk_fixtures::{Tenant, event, payment, tenant};
use crate::LogPart;
use std::sync::atomic::{AtomicI64, Ordering};
use tributary_domain::access::Authorized;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::event::{EVENTS_SCANNED_MAX, EventFilter, EventSource};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cardinality_cap::NAMES_PER_DAY_MAX;
use tributary_domain::report::cohort::{AGE_DAYS_MAX, CohortDimension, CohortReportQuery};
use tributary_domain::report::cost::{Cost, CostFilter};
use tributary_domain::report::{Dimension, Figures, OTHER, ReportQuery, StatsRow};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::money::Amount;

fn report_query(by: &[Dimension]) -> ReportQuery {
    ReportQuery {
        periods: vec![(at(-1_000_000), at(0)), (at(0), at(10_000_000))],
        group_by: by.to_vec(),
        filters: Vec::new(),
        rows_max: 10_000,
    }
}

/// The period, the values and the number of events of each row.
async fn rows(tenant: &Tenant, question: ReportQuery) -> Vec<(usize, Vec<String>, i64)> {
    let found = tenant.store.stats(&tenant.reader, tenant.app.id, question);
    let found = found.await.expect("figures are read").into_iter();
    let mut rows: Vec<_> = found
        .map(|row| (row.period, row.values, row.figures.events))
        .collect();
    rows.sort();
    rows
}

/// While many record something and many ask, every report has at least what was answered before it was asked for, and
/// in the end each click counts once in every report.
pub async fn a_report_has_all_that_was_answered_before_it(store: &SharedStore) {
    const CLICKS: i64 = 120;
    let tenant = tenant(store).await;
    let answered = AtomicI64::new(0);
    let record = async |number: i64| {
        let recorded = store.record_click(tenant.click(number)).await;
        recorded.expect("a click is taken");
        let before = answered.fetch_add(1, Ordering::SeqCst) + 1;
        let clicks = if number % 2 == 0 {
            tenant.figures_of("network_a").await.clicks
        } else {
            let asked = (tenant.app.id, vec![(at(-1_000_000), at(10_000_000))]);
            let reader = Authorized::operator(tenant.writer.organization());
            let totals = store.totals(&reader, vec![asked]).await;
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

/// Figures are told apart by period and by what is asked for, and only those of the question count.
pub async fn figures_are_told_apart_by_what_is_asked_for(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    tenant
        .call_configure(tenant.configure_with_click("d1", &click, 20))
        .await;
    let events = vec![event("e1", "open", 30), payment("e2", "5", "USD", 40)];
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 50), events);
    accepted.await.expect("events are taken");
    let words = |values: &[&str]| values.iter().map(|one| (*one).to_owned()).collect();
    assert_eq!(rows(&tenant, report_query(&[])).await, [(1, words(&[]), 3)]);
    let link = tenant.link.id.to_string();
    assert_eq!(
        rows(
            &tenant,
            report_query(&[Dimension::Link, Dimension::Network])
        )
        .await,
        [(1, words(&[&link, "network_a"]), 3)]
    );
    assert_eq!(
        rows(&tenant, report_query(&[Dimension::Event])).await,
        [
            (1, words(&["install"]), 1),
            (1, words(&["open"]), 1),
            (1, words(&["purchase"]), 1)
        ]
    );
    let mut question = report_query(&[Dimension::Country]);
    question.filters = vec![(Dimension::Platform, "ios".to_owned())];
    assert_eq!(rows(&tenant, question.clone()).await, []);
    question.filters = vec![(Dimension::Platform, "android".to_owned())];
    assert_eq!(rows(&tenant, question).await, [(1, words(&["DE"]), 3)]);
    let mut question = report_query(&[]);
    question.filters = vec![(Dimension::Link, link)];
    assert_eq!(rows(&tenant, question).await, [(1, words(&[]), 3)]);
    let refused = store.stats(
        &tenant.reader,
        tenant.app.id,
        report_query(&[Dimension::Event, Dimension::Country]),
    );
    assert!(refused.await.is_err(), "no roll-up has both");
}

/// What every question about figures and cohorts is answered with, by one dimension at a time. The first row is the sum
/// of all figures.
pub async fn all_answers(tenant: &Tenant) -> Vec<StatsRow> {
    let (store, reader, app) = (&tenant.store, &tenant.reader, tenant.app.id);
    let mut found = Vec::new();
    let questions = Dimension::ALL.iter().map(std::slice::from_ref);
    for by in std::iter::once([].as_slice()).chain(questions) {
        let stats = store.stats(reader, app, report_query(by)).await;
        found.extend(stats.expect("figures are read"));
    }
    let dimensions = CohortDimension::ALL.iter().copied().map(Some);
    for by in std::iter::once(None).chain(dimensions) {
        let question = CohortReportQuery {
            periods: report_query(&[]).periods,
            group_by: by,
            age_max: AGE_DAYS_MAX,
            rows_max: 10_000,
        };
        let cohorts = store.cohorts(reader, app, question).await;
        let rows = cohorts.expect("cohorts are read").into_iter();
        let mut rows: Vec<StatsRow> = rows
            .map(|row| StatsRow {
                period: row.period,
                values: vec![row.value, row.age.to_string()],
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

/// A report adds what is not merged into the roll-ups yet, so merging changes no answer: not after clicks, installs,
/// events of later days, or an install that a click gets later.
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
        accepted.await.expect("events are taken");
        if number == 1 {
            let claims = tenant.configure_with_click("d0", &click, 100_100);
            tenant.call_configure(claims).await;
        }
        let unmerged = all_answers(&tenant).await;
        assert_ne!(
            unmerged, before,
            "a report has what was counted a moment ago"
        );
        assert_rebuild_changes_nothing(store).await;
        assert_eq!(all_answers(&tenant).await, unmerged);
        before = unmerged;
    }
}

/// An app of another organization has no figures, no log and no costs.
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

/// A day tells so many names apart; the rest counts together, and nothing is lost.
pub async fn names_beyond_the_limit_of_a_day_count_together(store: &SharedStore) {
    let tenant = tenant(store).await;
    let names = NAMES_PER_DAY_MAX + 20;
    for first in (0..names).step_by(80) {
        let sent = (first..names.min(first + 80))
            .map(|number| event(&format!("e{number}"), &format!("name {number}"), 30))
            .collect();
        let accepted = store.accept_sdk_events(tenant.arrival("d1", 50), sent);
        accepted.await.expect("events are taken");
    }
    let late = vec![event("late", "another name", 31)];
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 50), late);
    accepted.await.expect("events are taken");
    let found = rows(&tenant, report_query(&[Dimension::Event])).await;
    assert_eq!(found.len(), NAMES_PER_DAY_MAX + 1);
    let other = found.iter().find(|(_, values, _)| values[0] == OTHER);
    assert_eq!(other.map(|(_, _, events)| *events), Some(21));
}

/// A decision that is made better moves the device's cohort, and figures that are made anew are the same.
pub async fn better_evidence_moves_a_cohort(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let paid = vec![payment("e1", "5", "USD", 90_000)];
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 90_000), paid);
    accepted.await.expect("events are taken");
    let told = async |by| {
        let question = CohortReportQuery {
            periods: vec![(at(-1_000_000), at(1_000_000))],
            group_by: by,
            age_max: 30,
            rows_max: 1_000,
        };
        let found = store.cohorts(&tenant.reader, tenant.app.id, question).await;
        let found = found.expect("cohorts are read").into_iter();
        let mut rows: Vec<_> = found
            .map(|row| {
                (
                    row.value,
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
    let network = Some(CohortDimension::Network);
    assert_eq!(
        told(network).await,
        [row("organic", 0, 1, 0), row("organic", 1, 1, 5_000_000)]
    );
    tenant
        .call_configure(tenant.configure_with_click("d1", &click, 91_000))
        .await;
    let moved = told(network).await;
    assert_eq!(
        moved,
        [row("network_a", 0, 1, 0), row("network_a", 1, 1, 5_000_000)]
    );
    let by_country = [row("DE", 0, 1, 0), row("DE", 1, 1, 5_000_000)];
    assert_eq!(told(Some(CohortDimension::Country)).await, by_country);
    assert_rebuild_changes_nothing(store).await;
    assert_eq!(told(network).await, moved);
}

fn cost(day: &str, campaign: &str, amount: &str, currency: &str) -> Cost {
    Cost {
        day: Day::parse(day).expect("a day"),
        network: CreditedNetwork::AppleAds,
        campaign: campaign.to_owned(),
        amount: Amount::parse(amount).expect("an amount"),
        currency: Currency::from_stored(currency).expect("a currency"),
    }
}

/// A cost takes the place of the one before it, nothing removes it, and what cannot be exchanged changes nothing.
pub async fn a_cost_takes_the_place_of_the_one_before(store: &SharedStore) {
    let tenant = tenant(store).await;
    let app = tenant.app.id;
    let put = async |costs| store.put_costs(&tenant.writer, app, costs, origin(5)).await;
    let told = async || {
        let reader = tenant.writer.read_access();
        let all = store.costs(&reader, app, CostFilter::default(), first_page("50"));
        let all = all.await.expect("costs are read").items.into_iter();
        let told: Vec<_> = all
            .map(|one| {
                (
                    one.cost.day.to_string(),
                    one.cost.campaign,
                    one.usd.to_string(),
                )
            })
            .collect();
        told
    };
    let first = vec![
        cost("2024-01-02", "a", "5", "USD"),
        cost("2024-01-03", "a", "7", "USD"),
    ];
    assert_eq!(put(first).await.expect("costs are taken"), 2);
    put(vec![cost("2024-01-02", "a", "6.5", "USD")])
        .await
        .expect("a cost is taken");
    let row = |day: &str, usd: &str| (day.to_owned(), "a".to_owned(), usd.to_owned());
    assert_eq!(
        told().await,
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
    assert_eq!(told().await, [row("2024-01-02", "6.5")]);
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

/// The log is read in parts that neither skip nor repeat, installs alone where they are asked for.
pub async fn the_log_is_read_in_parts(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let sent = (0..7).map(|number| event(&format!("e{number}"), "open", 30 + number));
    let accepted = store.accept_sdk_events(tenant.arrival("d1", 60), sent.collect());
    accepted.await.expect("events are taken");
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

/// A search that no index helps stops after so many events, says where, and goes on from there.
pub async fn a_long_search_stops_early_and_says_so(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(tenant.configure("d1", 20)).await;
    let requests = i64::from(EVENTS_SCANNED_MAX / 100 + 1);
    let send = |request: i64| {
        let sent =
            (0..100).map(|number| event(&format!("{request}-{number}"), "open", 30 + request));
        store.accept_sdk_events(tenant.arrival("d1", 60), sent.collect())
    };
    for taken in join_all((0..requests).map(send).collect()).await {
        taken.expect("events are taken");
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
    let stopped_at = first.stopped_at.expect("it stops early");
    assert!(first.items.is_empty() && first.has_more);
    let rest = search(Some(*stopped_at.as_bytes()), None).await;
    assert_eq!(
        (rest.items.len(), rest.has_more, rest.stopped_at),
        (0, false, None)
    );
}
