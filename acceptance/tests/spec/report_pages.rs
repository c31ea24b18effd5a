//! The pages show the figures of the REST API, and paid figures equal a full count.

use super::reports::{FROM, ReportFixture, TO, values};
use super::reports_model::{RecordedRows, micros};
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tributary_domain::access::person::Role;
use tributary_domain::report::metric::{METRICS, Metric, Unit};
use tributary_domain::vocabulary::money::Amount;
use tributary_testkit::on_both_engines;

/// Dimensions that a page can combine.
const GROUPS: [&[&str]; 4] = [
    &["network", "link", "campaign", "adset"],
    &["event", "source"],
    &["country", "platform"],
    &["network", "campaign", "country", "platform"],
];
const UNITS: [&str; 4] = ["day", "hour", "week", "month"];
/// Columns of the file, as the REST API names them.
const COLUMNS: [&str; 22] = [
    "cost",
    "clicks",
    "installs",
    "paidCpi",
    "netRevenue",
    "paidRoas",
    "arpu",
    "payingDevices",
    "conversionRate",
    "organicInstalls",
    "signUps",
    "trials",
    "qualifiedTrials",
    "subscriptions",
    "purchases",
    "renewals",
    "refunds",
    "events",
    "cpi",
    "roas",
    "heldInstalls",
    "heldRevenue",
];

/// Columns that compare figures of different events.
const RATIOS: [&str; 6] = [
    "paidCpi",
    "paidRoas",
    "arpu",
    "conversionRate",
    "cpi",
    "roas",
];

/// Reads the figures of a row of the API, in the order of [`COLUMNS`].
fn figures(row: &Value) -> Vec<Option<i64>> {
    let figure = |name: &&str| Some(&row[*name]).filter(|one| !one.is_null()).map(micros);
    COLUMNS.iter().map(figure).collect()
}

/// Returns the figures of a row that the API leaves out.
fn no_figures(has_costs: bool) -> Vec<Option<i64>> {
    let figure = |name: &&str| match *name {
        "cost" => has_costs.then_some(0),
        name => (!RATIOS.contains(&name)).then_some(0),
    };
    COLUMNS.iter().map(figure).collect()
}

/// Reads the figures of each line of a CSV file, which are its last fields.
fn file_figures(text: &str, count: usize) -> Vec<Vec<Option<i64>>> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let figure = |text: &&str| Amount::parse(text).ok().map(Amount::micros);
        fields[fields.len() - count..].iter().map(figure).collect()
    };
    text.lines().skip(1).map(line).collect()
}

/// Reads the key figures of the overview: the label and the text of each card.
fn cards(page: &str) -> BTreeMap<String, String> {
    let cards = page.split("class=\"kpi-label\">").skip(1);
    let card = |rest: &str| {
        let (label, rest) = rest.split_once('<').unwrap();
        let value = rest.split_once("class=\"kpi-value\">").unwrap().1;
        (
            label.to_owned(),
            value.split_once('<').unwrap().0.to_owned(),
        )
    };
    cards.map(card).collect()
}

/// Returns the text of a card for a metric of the API.
fn written(metric: &Metric, totals: &Value) -> String {
    let value = &totals[metric.word];
    if value.is_null() {
        return "–".to_owned();
    }
    let value = match metric.unit {
        Unit::Count => value.as_i64().unwrap(),
        _ => micros(value),
    };
    metric.unit.write_brief(value)
}

fn with_commas(digits: &str) -> String {
    let count = digits.len();
    let digits = digits.chars().enumerate();
    let separated = digits.flat_map(|(place, digit)| {
        let comma = place > 0 && (count - place).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([digit])
    });
    separated.collect()
}

impl ReportFixture {
    pub(super) async fn page(&self, path: &str, cookie: &str) -> String {
        let app = self.app.rsplit('/').next().unwrap();
        let url = format!("/apps/{app}{path}");
        let request = self.server.request(reqwest::Method::GET, &url);
        let answer = self.server.send(request.header("cookie", cookie)).await;
        answer.expect(200).text.clone()
    }

    pub(super) async fn put_costs(&self) {
        let day = |day: u32| {
            json!([
                {"day": format!("2026-03-{day}"), "network": "network_a", "campaign": "c1", "amount": 80},
                {"day": format!("2026-03-{day}"), "network": "network_b", "amount": "20.5"},
            ])
        };
        let costs: Vec<Value> = (18..28)
            .flat_map(|number| day(number).as_array().unwrap().clone())
            .collect();
        let path = format!("{}/costs", self.app);
        let body = Some(json!({ "costs": costs }));
        let stored = self.server.call("PUT", &path, &self.key, body).await;
        stored.expect(200);
    }
}

/// Counts the installs and the net revenue that an ad or a link is credited with.
fn paid(recorded: &RecordedRows, days: (&str, &str)) -> (i64, i64) {
    let rows = recorded.report(&["network"], &[], days, "Europe/Berlin");
    let (mut installs, mut net) = (0, 0);
    for (key, row) in rows {
        let figure = |name| row.get(name).copied().unwrap_or(0);
        if key[0]
            .1
            .as_deref()
            .is_some_and(|network| network != "organic")
        {
            installs += figure("installs");
            net += figure("revenue") - figure("refunded");
        }
    }
    (installs, net)
}

on_both_engines! {
    async fn pages_show_the_figures_of_the_api(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        fixture.put_costs().await;
        let recorded = fixture.read_recorded().await;
        let cookie = fixture.server.sign_in_as(fixture.organization, Role::Viewer).await;
        let columns = format!("&column={}", COLUMNS.join("&column="));
        let mut random = rand_chacha::ChaCha12Rng::seed_from_u64(5);
        for _ in 0..50 {
            let dimensions = GROUPS.choose(&mut random).unwrap();
            let mut group: Vec<&str> = UNITS.choose(&mut random).copied().into_iter().collect();
            group.truncate(random.random_range(0..=1));
            let count = random.random_range(1..=2 - group.len());
            group.extend(dimensions.sample(&mut random, count));
            let mut query = format!("from=2026-03-{}&to=2026-04-05", random.random_range(15..=31));
            let count = random.random_range(0..=2);
            for dimension in dimensions.sample(&mut random, count) {
                let known: Vec<String> = values(&recorded, dimension).into_iter().filter(|value| !value.is_empty()).collect();
                query = format!("{query}&{dimension}={}", known.choose(&mut random).unwrap());
            }
            let by = group.join(",");
            let (rows, _) = fixture.stats(&format!("{query}&groupBy={by}"), 500).await;
            let path = format!("/explore.csv?{query}&groupBy={by}&compare=none{columns}");
            let file = fixture.page(&path, &cookie).await;
            let mut expected: Vec<_> = rows.iter().map(figures).collect();
            let mut found = file_figures(&file, COLUMNS.len());
            // Clicks and other counts do not exist for events of one name or source. Pages leave them out,
            // where the API has a zero, and also the ratios of such counts.
            let is_by_event = dimensions.contains(&"event");
            if is_by_event {
                for figure in expected.iter_mut().chain(&mut found).flatten() {
                    *figure = figure.filter(|value| *value != 0);
                }
                for row in &mut expected {
                    for (figure, _) in row.iter_mut().zip(COLUMNS).filter(|(_, column)| RATIOS.contains(column)) {
                        *figure = None;
                    }
                }
            }
            expected.sort();
            found.sort();
            assert!(found == expected, "{query}&groupBy={by}: {} and {} rows", found.len(), expected.len());
            let cards = cards(&fixture.page(&format!("?{query}"), &cookie).await);
            // Costs are not known by every dimension, so the totals of these groups may lack them.
            let (_, totals) = fixture.stats(&format!("{query}&groupBy=day"), 500).await;
            // The card of a count that does not exist is left out.
            assert!(cards.len() == 6 || is_by_event && cards.len() > 1, "{query}: {cards:?}");
            for (label, text) in &cards {
                let metric = METRICS.iter().find(|metric| metric.label == label).unwrap();
                assert_eq!(text, &written(metric, &totals), "{query}: {label}");
            }
        }
    }

    async fn pages_show_the_figures_of_the_compared_period(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        fixture.put_costs().await;
        let retired = json!({"costs": [{"day": "2026-03-20", "network": "network_d", "campaign": "retired", "amount": 5}]});
        let path = format!("{}/costs", fixture.app);
        fixture.server.call("PUT", &path, &fixture.key, Some(retired)).await.expect(200);
        let cookie = fixture.server.sign_in_as(fixture.organization, Role::Viewer).await;
        let columns = format!("&column={}", COLUMNS.join("&column="));
        let (now, before) = ("from=2026-03-26&to=2026-04-04", "from=2026-03-16&to=2026-03-25");
        let mut gone = 0;
        for (by, filter) in [
            ("network", ""), ("campaign", ""), ("network,campaign", ""), ("country", ""), ("campaign", "&network=network_a"),
        ] {
            let key = |row: &Value| by.split(',').map(|name| row[name].to_string()).collect::<Vec<_>>();
            let mut expected: BTreeMap<Vec<String>, [Vec<Option<i64>>; 2]> = BTreeMap::new();
            let has_costs = by != "country";
            for (place, days) in [now, before].into_iter().enumerate() {
                let (rows, _) = fixture.stats(&format!("{days}{filter}&groupBy={by}"), 500).await;
                for row in &rows {
                    let nothing = || [no_figures(has_costs), no_figures(has_costs)];
                    expected.entry(key(row)).or_insert_with(nothing)[place] = figures(row);
                }
            }
            gone += expected.values().filter(|[now, _]| *now == no_figures(has_costs)).count();
            let file = fixture.page(&format!("/explore.csv?{now}{filter}&groupBy={by}{columns}"), &cookie).await;
            let heads = file.lines().next().unwrap();
            let previous = COLUMNS.map(|name| format!("{name}.previous")).join(",");
            assert!(heads.ends_with(&format!("{},{previous}", COLUMNS.join(","))), "{heads}");
            let mut expected: Vec<Vec<Option<i64>>> = expected.into_values().map(|pair| pair.concat()).collect();
            let mut found = file_figures(&file, 2 * COLUMNS.len());
            expected.sort();
            found.sort();
            assert!(found == expected, "{by}{filter}: {found:?} and {expected:?}");
        }
        assert!(gone > 0, "some row has figures only in the earlier period");
        let (rows, _) = fixture.stats(&format!("{before}&groupBy=network"), 500).await;
        let page = fixture.page(&format!("?{now}"), &cookie).await;
        let (_, panel) = page.rsplit_once("id=\"top-network\"").unwrap();
        let (panel, _) = panel.split_once("</section>").unwrap();
        for row in rows.iter().filter(|row| row["network"].is_string()) {
            let shown = format!("<span class=\"from\">from {}</span>", with_commas(&row["installs"].to_string()));
            assert!(panel.contains(&shown), "{shown}: {panel}");
        }
        let overview = fixture.get(&format!("/overview?{now}")).await;
        let previous = &overview["data"]["kpis"]["installs"]["previous"];
        let shown = format!("<span class=\"kpi-note\">from {}</span>", with_commas(&previous.to_string()));
        assert!(page.contains(&shown), "{shown}: {page}");
        let explored = fixture.page(&format!("/explore?{now}&groupBy=network&column=installs"), &cookie).await;
        let shown = explored.matches("<span class=\"from\">from ").count();
        assert_eq!(shown, panel.matches("class=\"name\"").count(), "every row has its earlier figure: {explored}");
    }

    async fn the_install_funnel_follows_the_same_devices(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        let cookie = fixture.server.sign_in_as(fixture.organization, Role::Viewer).await;
        let days = format!("from={FROM}&to={TO}");
        let overview = fixture.get(&format!("/overview?{days}")).await;
        let stages = overview["data"]["installFunnel"].as_array().unwrap();
        let steps: Vec<String> = stages.iter().map(|one| format!("{} {}", one["step"].as_str().unwrap(), one["day"])).collect();
        assert_eq!(steps, ["installed 0", "active 1", "active 3", "active 7", "paid 7"]);
        assert_eq!(overview["data"]["kpis"]["installs"]["value"], stages[0]["devices"]);
        let page = fixture.page(&format!("?{days}"), &cookie).await;
        let (_, panel) = page.rsplit_once("id=\"retention\"").unwrap();
        for stage in stages {
            let (installs, devices) = (stage["installs"].as_i64().unwrap(), stage["devices"].as_i64().unwrap());
            assert!(devices <= installs, "{stage}");
            let shown = format!("<strong>{}</strong>", with_commas(&devices.to_string()));
            assert!(installs == 0 || panel.contains(&shown), "{shown}: {panel}");
        }
        let funnel = overview["data"]["funnel"].as_array().unwrap();
        assert!(funnel.iter().all(|step| step["rate"].is_null()), "{funnel:?}");
    }

    async fn the_overview_lists_campaigns_with_a_filter_by_place(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        let recorded = fixture.read_recorded().await;
        let cookie = fixture.server.sign_in_as(fixture.organization, Role::Viewer).await;
        let days = format!("from={FROM}&to={TO}");
        for dimension in ["country", "platform"] {
            let known = values(&recorded, dimension).into_iter().find(|value| !value.is_empty());
            let query = format!("{days}&{dimension}={}", known.unwrap());
            let (rows, _) = fixture.stats(&format!("{query}&groupBy=campaign"), 500).await;
            let campaigns = rows.iter().filter(|row| row["campaign"].as_str().is_some_and(|one| !one.is_empty()));
            let page = fixture.page(&format!("?{query}"), &cookie).await;
            let (_, panel) = page.rsplit_once("id=\"top-campaign\"").unwrap();
            let (panel, _) = panel.split_once("</section>").unwrap();
            assert!(panel.contains("<th scope=\"col\" class=\"num\">Net revenue</th>"), "{panel}");
            assert_eq!(panel.matches("class=\"name\"").count(), campaigns.count().min(8), "{query}: {panel}");
        }
    }

    async fn organic_installs_never_change_paid_figures(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        fixture.put_costs().await;
        let recorded = fixture.read_recorded().await;
        let (installs, net) = paid(&recorded, (FROM, TO));
        let cost = 1_005_000_000_i64;
        let rounded = |part: i128, by: i64| Amount::from_micros(i64::try_from((part * 2 + i128::from(by)) / (2 * i128::from(by))).unwrap());
        let paid_cpi = rounded(i128::from(cost), installs);
        let paid_roas = rounded(i128::from(net) * 1_000_000, cost);
        let days = format!("from={FROM}&to={TO}");
        assert!(installs > 0 && net > 0);
        for by in ["day", "week", "network", "campaign", "network,campaign", "day,campaign"] {
            let (_, totals) = fixture.stats(&format!("{days}&groupBy={by}"), 500).await;
            assert_eq!(micros(&totals["paidCpi"]), paid_cpi.micros(), "{by}");
            assert_eq!(micros(&totals["paidRoas"]), paid_roas.micros(), "{by}");
            assert!(micros(&totals["cpi"]) < paid_cpi.micros(), "blended figures include organic installs");
        }
        let (rows, _) = fixture.stats(&format!("{days}&groupBy=network"), 500).await;
        let organic = rows.iter().find(|row| row["network"] == "organic").unwrap();
        assert_eq!((&organic["paidCpi"], &organic["paidRoas"]), (&Value::Null, &Value::Null));
        let overview = fixture.get(&format!("/overview?{days}")).await;
        assert_eq!(micros(&overview["data"]["kpis"]["paidCpi"]["value"]), paid_cpi.micros());
        assert_eq!(micros(&overview["data"]["kpis"]["paidRoas"]["value"]), paid_roas.micros());
        let (_, by_link) = fixture.stats(&format!("{days}&groupBy=link"), 500).await;
        assert_eq!(by_link["paidRoas"], Value::Null, "costs have no link");
        let cookie = fixture.server.sign_in_as(fixture.organization, Role::Viewer).await;
        let cards = cards(&fixture.page(&format!("?{days}"), &cookie).await);
        assert_eq!(cards["Spend"], "$1,005");
        assert!(cards["ROAS (paid)"].parse::<f64>().is_ok(), "{cards:?}");
    }
}
