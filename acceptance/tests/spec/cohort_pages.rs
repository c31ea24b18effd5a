//! Cohorts on the page, in its file and in the REST API equal a count of every recorded event.

use super::cohort_curves::{compare_curve, compare_same_cohorts, compare_sums};
use super::reports::{FROM, ReportFixture, TO, values};
use super::reports_model::{RecordedRows, is_withheld, micros};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::person::Role;
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::calendar::to_time_zone;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_testkit::on_both_engines;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;
pub(super) const AGES: [u8; 7] = [0, 1, 3, 7, 14, 30, 90];
pub(super) const CREDITS: [&str; 3] = ["network", "link", "campaign"];
pub(super) const MEASURES: [&str; 6] = [
    "retention",
    "payerShare",
    "revenuePerInstall",
    "cumulativeRevenue",
    "paidRoas",
    "roas",
];

/// A question: length of the periods, grouping and filters.
pub(super) struct Question {
    pub(super) unit: &'static str,
    pub(super) by: Option<&'static str>,
    pub(super) filters: Vec<(&'static str, String)>,
}

impl Question {
    fn text(&self, by: &str) -> String {
        let mut text = format!("from={FROM}&to={TO}&interval={}", self.unit);
        for (name, value) in &self.filters {
            text = format!("{text}&{name}={value}");
        }
        self.by
            .map_or(text.clone(), |value| format!("{text}&{by}={value}"))
    }

    fn dimensions(&self) -> Vec<&'static str> {
        let filters = self.filters.iter().map(|(name, _)| *name);
        self.by.into_iter().chain(filters).collect()
    }

    /// Returns whether costs are known: by network and campaign only.
    fn has_costs(&self) -> bool {
        let known = |name: &&str| ["network", "campaign"].contains(name);
        self.dimensions().iter().all(known)
    }
}

/// A cohort at an age, or a sum of cohorts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) installs: i64,
    devices: i64,
    payers: i64,
    revenue: i64,
    paid: i64,
    cost: Option<i64>,
}

impl Sums {
    pub(super) fn add(&mut self, other: &Self) {
        self.installs += other.installs;
        self.devices += other.devices;
        self.payers += other.payers;
        self.revenue += other.revenue;
        self.paid += other.paid;
        self.cost = self.cost.zip(other.cost).map(|(one, other)| one + other);
    }

    /// Returns the measure in millionths.
    pub(super) fn measure(&self, name: &str) -> Option<i64> {
        let divide = |part: i64, by: i64| {
            let (part, by) = (i128::from(part), i128::from(by));
            let half = if part < 0 { -by / 2 } else { by / 2 };
            (by > 0).then(|| i64::try_from((part + half) / by).unwrap())
        };
        match name {
            "retention" => divide(self.devices * 1_000_000, self.installs),
            "payerShare" => divide(self.payers * 1_000_000, self.installs),
            "revenuePerInstall" => divide(self.revenue, self.installs),
            "cumulativeRevenue" => Some(self.revenue),
            "paidRoas" => divide(self.paid * 1_000_000, self.cost?),
            "roas" => divide(self.revenue * 1_000_000, self.cost?),
            _ => unreachable!("unknown measure"),
        }
    }
}

/// Figures of a cohort by age, and when its last device can have been installed.
#[derive(Debug, Default)]
pub(super) struct CountedCohort {
    pub(super) installs: i64,
    devices: BTreeMap<u8, BTreeSet<String>>,
    /// Age of each device's first payment.
    payers: BTreeMap<String, u8>,
    revenue: BTreeMap<u8, (i64, i64)>,
    cost: Option<i64>,
    end: i64,
}

impl CountedCohort {
    pub(super) fn at(&self, age: u8) -> Sums {
        let mut sums = Sums {
            installs: self.installs,
            devices: self
                .devices
                .get(&age)
                .map_or(0, |seen| i64::try_from(seen.len()).unwrap()),
            payers: i64::try_from(self.payers.values().filter(|first| **first <= age).count())
                .unwrap(),
            cost: self.cost,
            ..Sums::default()
        };
        for (revenue, paid) in self.revenue.range(..=age).map(|(_, sums)| sums) {
            sums.revenue += revenue;
            sums.paid += paid;
        }
        sums
    }

    pub(super) fn is_complete(&self, age: u8, now: i64) -> bool {
        self.end + (i64::from(age) + 1) * DAY_MILLIS <= now
    }
}

fn zone() -> TimeZone {
    to_time_zone(&Timezone::parse("Europe/Berlin").unwrap())
}

/// Returns the label of a day's period and the first day after it.
fn period(day: Date, unit: &str) -> (String, Date) {
    let days = |number: i64| jiff::Span::new().days(number);
    let (label, next) = match unit {
        "day" => (day.to_string(), day.tomorrow().unwrap()),
        "week" => {
            let passed = i64::from(day.weekday().to_monday_zero_offset());
            let monday = day.checked_sub(days(passed)).unwrap();
            (monday.to_string(), monday.checked_add(days(7)).unwrap())
        }
        _ => {
            let next = day.last_of_month().tomorrow().unwrap();
            (day.strftime("%Y-%m").to_string(), next)
        }
    };
    let last: Date = TO.parse().unwrap();
    (label, next.min(last.tomorrow().unwrap()))
}

fn start(day: Date) -> i64 {
    let start = day.to_zoned(zone()).unwrap();
    start.timestamp().as_millisecond()
}

/// Label of the period and value of the group.
pub(super) type Key = (String, Option<String>);

/// Counts the cohorts from the recorded events, one by one.
pub(super) fn count_cohorts(
    recorded: &RecordedRows,
    question: &Question,
) -> BTreeMap<Key, CountedCohort> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Activity and country belong to the install; revenue belongs to the credit of its event.
    let value = |install: &Value, event: &Value, name: &str| match name {
        "network" => text(&event["attribution"]["network"]),
        "link" => text(&event["attribution"]["linkId"]),
        "campaign" => text(&event["attribution"]["campaign"]["id"]),
        _ => text(&install["country"]),
    };
    let mut installs = BTreeMap::new();
    for event in &recorded.events {
        if event["name"] == "install" && !is_withheld(event) {
            installs.insert(text(&event["deviceId"]), event);
        }
    }
    let mut cohorts: BTreeMap<Key, CountedCohort> = BTreeMap::new();
    for event in recorded
        .events
        .iter()
        .filter(|event| event["source"] != "web")
    {
        let device = text(&event["deviceId"]);
        let Some(install) = installs.get(&device) else {
            continue;
        };
        let installed = install["timestampMs"].as_i64().unwrap();
        let age = (event["timestampMs"].as_i64().unwrap() - installed).max(0) / DAY_MILLIS;
        let age = u8::try_from(age).unwrap();
        let moment = jiff::Timestamp::from_millisecond(installed).unwrap();
        let (label, next) = period(moment.to_zoned(zone()).date(), question.unit);
        for is_revenue in [false, true] {
            let source = if is_revenue { event } else { install };
            let of = |name: &str| value(install, source, name);
            if question
                .filters
                .iter()
                .any(|(name, wanted)| of(name) != *wanted)
            {
                continue;
            }
            if is_revenue && event["revenue"]["counted"] != true {
                continue;
            }
            let key = (label.clone(), question.by.map(of));
            let cohort = cohorts.entry(key).or_default();
            cohort.end = start(next);
            if is_revenue {
                let usd = micros(&event["revenue"]["usd"]);
                let is_paid = event["attribution"]["network"] != "organic";
                let sums = cohort.revenue.entry(age).or_default();
                sums.0 += usd;
                sums.1 += if is_paid { usd } else { 0 };
            } else {
                cohort.installs += i64::from(event["name"] == "install");
                let usd = &event["revenue"];
                if usd["counted"] == true && micros(&usd["usd"]) > 0 {
                    let first = cohort.payers.entry(device.clone()).or_insert(age);
                    *first = age.min(*first);
                }
                let active = cohort.devices.entry(age).or_default();
                active.insert(device.clone());
            }
        }
    }
    add_costs(&mut cohorts, question);
    cohorts
}

/// Adds the costs of [`ReportFixture::put_costs`].
fn add_costs(cohorts: &mut BTreeMap<Key, CountedCohort>, question: &Question) {
    if !question.has_costs() {
        return;
    }
    for cohort in cohorts.values_mut() {
        cohort.cost = Some(0);
    }
    for day in 18..28 {
        let day: Date = format!("2026-03-{day}").parse().unwrap();
        let (label, next) = period(day, question.unit);
        for (network, campaign, usd) in [
            ("network_a", "c1", 80_000_000),
            ("network_b", "", 20_500_000),
        ] {
            let of = |name: &str| if name == "network" { network } else { campaign };
            if question
                .filters
                .iter()
                .any(|(name, wanted)| of(name) != wanted)
            {
                continue;
            }
            let key = (label.clone(), question.by.map(|name| of(name).to_owned()));
            let cohort = cohorts.entry(key).or_default();
            cohort.end = start(next);
            cohort.cost = Some(cohort.cost.unwrap_or(0) + usd);
        }
    }
}

pub(super) fn number(value: &Value) -> Option<i64> {
    Some(value).filter(|one| !one.is_null()).map(micros)
}

/// Compares the REST answer with the count, and returns the answer.
pub(super) async fn compare_api(
    fixture: &ReportFixture,
    counted: &BTreeMap<Key, CountedCohort>,
    question: &Question,
) -> Value {
    let query = question.text("groupBy").replace("&link=", "&linkId=");
    let answer = fixture
        .get(&format!("/cohorts?{query}&maxAge=90&limit=500"))
        .await;
    let now = fixture.server.clock.now().as_millis();
    let rows = answer["data"].as_array().unwrap();
    assert_eq!(rows.len(), counted.len(), "{query}");
    for row in rows {
        let value = question
            .by
            .map(|by| row[by].as_str().unwrap_or("").to_owned());
        let key = (row["cohort"].as_str().unwrap().to_owned(), value);
        let expected = &counted[&key];
        assert_eq!(row["installs"], expected.installs, "{query} {key:?}");
        assert_eq!(number(&row["cost"]), expected.cost, "{query} {key:?}");
        for at in row["ages"].as_array().unwrap() {
            let age = u8::try_from(at["day"].as_u64().unwrap()).unwrap();
            let sums = expected.at(age);
            assert_eq!(at["devices"], sums.devices, "{query} {key:?} {age}");
            assert_eq!(at["payers"], sums.payers, "{query} {key:?} {age}");
            assert_eq!(
                at["complete"],
                expected.is_complete(age, now),
                "{query} {key:?} {age}"
            );
            for measure in MEASURES {
                let found = number(&at[measure]);
                assert_eq!(
                    found,
                    sums.measure(measure),
                    "{query} {key:?} {age} {measure}"
                );
            }
        }
    }
    let averages = answer["meta"]["averages"].as_array().unwrap();
    for age in 0..=90_u8 {
        let complete = counted.values().filter(|one| one.is_complete(age, now));
        let expected = complete.map(|one| one.at(age)).reduce(|mut sum, one| {
            sum.add(&one);
            sum
        });
        let found = averages.iter().find(|one| one["day"] == age);
        assert_eq!(found.is_some(), expected.is_some(), "{query} {age}");
        let (Some(found), Some(expected)) = (found, expected) else {
            continue;
        };
        assert_eq!(found["installs"], expected.installs, "{query} {age}");
        for measure in MEASURES {
            let found = number(&found[measure]);
            assert_eq!(found, expected.measure(measure), "{query} {age} {measure}");
        }
    }
    compare_same_cohorts(&answer, counted, now, &query);
    answer
}

/// Compares the file and the average row of the page with the REST answer.
async fn compare_page(
    fixture: &ReportFixture,
    cookie: &str,
    answer: &Value,
    question: &Question,
    measure: &str,
) {
    let query = format!("{}&show={measure}", question.text("by"));
    let file = fixture.page(&format!("/cohorts.csv?{query}"), cookie).await;
    let mut lines = file.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let first = heads
        .iter()
        .position(|head| *head == "completeAge")
        .unwrap();
    let ages: Vec<u64> = heads[first + 1..]
        .iter()
        .map(|head| head.rsplit_once('D').unwrap().1.parse().unwrap())
        .collect();
    let is_known = |age: &u64| AGES.iter().any(|known| u64::from(*known) == *age);
    assert!(!ages.is_empty() && ages.iter().all(is_known), "{heads:?}");
    // Costs without installs are cohorts only where costs are shown.
    let has_figures = |at: &Value| at["devices"] != 0 || at["revenue"] != 0;
    let is_shown = |row: &&Value| {
        measure.ends_with("oas") || row["ages"].as_array().unwrap().iter().any(has_figures)
    };
    let rows: Vec<&Value> = answer["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_shown)
        .collect();
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), rows.len(), "{query}");
    for (row, line) in rows.iter().zip(&lines) {
        assert_eq!(line[0], row["cohort"].as_str().unwrap(), "{query}");
        for (age, text) in ages.iter().zip(&line[first + 1..]) {
            let at = row["ages"]
                .as_array()
                .unwrap()
                .iter()
                .find(|at| at["day"] == *age);
            let expected = at.and_then(|at| number(&at[measure]));
            let found = Amount::parse(text).ok().map(Amount::micros);
            assert_eq!(found, expected, "{query} {age}: {line:?}");
        }
    }
    let page = fixture.page(&format!("/cohorts?{query}"), cookie).await;
    compare_curve(&page, answer, measure, &query);
    let names_websites = page.contains("Payments on websites are not included");
    assert_eq!(names_websites, measure != "retention", "{query}");
    if !["retention", "payerShare"].contains(&measure) {
        return;
    }
    compare_sums(&page, &rows, question, measure);
    let row = page.split_once("Weighted average</th>").unwrap().1;
    let row = row.split_once("</tr>").unwrap().0;
    let cells: Vec<&str> = row
        .split("<td>")
        .skip(1)
        .map(|cell| cell.trim_end_matches("</td>"))
        .collect();
    let averages = answer["meta"]["averages"].as_array().unwrap();
    for (age, cell) in AGES.iter().zip(&cells[1..]) {
        let average = averages.iter().find(|one| one["day"] == *age);
        let expected = average.and_then(|one| number(&one[measure])).map(|micros| {
            let tenths = (micros + 500) / 1_000;
            format!("{}.{} %", tenths / 10, tenths % 10)
        });
        assert_eq!(*cell, expected.unwrap_or_default(), "{query} {age}");
    }
}

on_both_engines! {
    async fn cohorts_equal_a_count_of_events(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        fixture.put_costs().await;
        let recorded = fixture.read_recorded().await;
        let cookie = fixture.server.sign_in_as(fixture.organization, Role::Analyst).await;
        let mut random = rand_chacha::ChaCha12Rng::seed_from_u64(9);
        for round in 0..30 {
            let mut dimensions = if round % 4 == 3 { vec!["country"] } else { CREDITS.to_vec() };
            let by = dimensions.choose(&mut random).copied().filter(|_| round % 3 > 0);
            let count = random.random_range(0..=dimensions.len().min(2));
            dimensions = dimensions.sample(&mut random, count).copied().collect();
            let filter = |name: &'static str, random: &mut _| {
                let known: Vec<String> = values(&recorded, name).into_iter().filter(|value| !value.is_empty()).collect();
                (name, known.choose(random).unwrap().clone())
            };
            let question = Question {
                unit: ["day", "week", "month"].choose(&mut random).unwrap(),
                by,
                filters: dimensions.iter().map(|name| filter(name, &mut random)).collect(),
            };
            let counted = count_cohorts(&recorded, &question);
            let answer = compare_api(&fixture, &counted, &question).await;
            if counted.is_empty() { continue; }
            compare_page(&fixture, &cookie, &answer, &question, MEASURES[round % MEASURES.len()]).await;
            compare_page(&fixture, &cookie, &answer, &question, "retention").await;
        }
    }

    async fn cohort_filters_that_do_not_fit_are_refused(engine: Engine) {
        let fixture = ReportFixture::start(engine, 100).await;
        for (query, field) in [
            ("groupBy=country&network=organic", "groupBy"),
            ("country=DE&campaign=c1", "groupBy"),
            ("platform=ios", "platform"),
            ("groupBy=platform", "groupBy"),
            ("network=nonsense", "network"),
            ("country=Germany", "country"),
        ] {
            let path = format!("{}/cohorts?{query}", fixture.app);
            let answer = fixture.server.get(&path, &fixture.key).await.expect(422);
            assert!(answer.text.contains(&format!("\"{field}\"")), "{query}: {}", answer.text);
        }
    }
}
