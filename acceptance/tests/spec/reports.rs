//! Reports: every figure is compared with a full count of the recorded events and clicks.

use super::reports_model::{
    RecordedRows, is_withheld, micros, nonzero_figures, parse_lines, response_rows, totals,
};
use super::track::SdkFixture;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tributary_domain::access::{AppsRead, Authorized, Environment, Permission};
use tributary_domain::vocabulary::id::{AppId, LinkId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_testkit::{AdLink, Engine, SampleApp, TestServer, on_both_engines};

/// Reads a column of an event.
type ColumnReader = fn(&Value) -> Value;

/// Start of the sample data, 2026-03-15T00:00:00Z: two weeks before Europe switches to summer time
/// and one week after America does.
const SAMPLE_START: i64 = 1_773_532_800_000;
const DAYS: u32 = 21;
pub(super) const FROM: &str = "2026-03-14";
pub(super) const TO: &str = "2026-04-06";
pub(super) const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Kiritimati",
];
const DIMENSIONS: [&str; 9] = [
    "network", "link", "campaign", "adset", "ad", "country", "platform", "event", "source",
];
pub(super) const UNITS: [&str; 4] = ["day", "hour", "week", "month"];

/// An app with three weeks of sample data.
pub(super) struct ReportFixture {
    pub(super) server: TestServer,
    pub(super) organization: OrganizationId,
    pub(super) key: String,
    pub(super) app: String,
    sample: SampleApp,
}

impl ReportFixture {
    pub(super) async fn start(engine: Engine, events: u64) -> Self {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let key = server
            .key(organization, Permission::Full, Environment::Live)
            .await;
        let app = server.app(&key).await;
        let enabled = json!({
            "webEvents": {"enabled": true}, "timezone": "Europe/Berlin", "attribution": {"fraud": "hold"},
        });
        server.patch(&app, &key, enabled).await.expect(200);
        let mut links = Vec::new();
        for number in 0..4 {
            let body =
                json!({"name": format!("Link {number}"), "fallbackUrl": "https://example.com"});
            links.push(AdLink {
                link: create_link(&server, &app, &key, body).await,
                network: None,
            });
        }
        let body = json!({"name": "Shop", "type": "web_funnel", "destinationUrl": "https://shop.example.com/start"});
        let funnel = create_link(&server, &app, &key, body).await;
        let id = AppId::parse(app.rsplit('/').next().unwrap()).unwrap();
        let reader: Authorized<AppsRead> = Authorized::operator(organization);
        let rules = server.store.app(&reader, id).await.unwrap().attribution;
        let sample = SampleApp {
            app: id,
            rules,
            links,
            funnel,
            environment: Environment::Live,
            begin: Timestamp::from_millis(SAMPLE_START),
            days: DAYS,
            events,
            seed: 7,
        };
        sample.apply(&server.store).await.unwrap();
        let fixture = Self {
            server,
            organization,
            key,
            app,
            sample,
        };
        // Of the flagged installs, some are released, some are rejected and the rest stay held.
        for (number, device) in fixture.held().await.iter().enumerate() {
            match number % 3 {
                0 => fixture.decide(device, "release").await,
                1 => fixture.decide(device, "reject").await,
                _ => {}
            }
        }
        // Moves the clock past the sample data.
        let after = Duration::from_hours(24 * 100);
        fixture.server.clock.advance(after);
        fixture
    }

    /// Returns the devices with held installs.
    pub(super) async fn held(&self) -> Vec<String> {
        let page = self.get("/held?limit=100").await;
        let installs = page["data"].as_array().unwrap().iter();
        installs
            .map(|install| install["deviceId"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Reviews a held install.
    pub(super) async fn decide(&self, device: &str, decision: &str) {
        let path = format!("{}/held/{device}/decision", self.app);
        let decided = self
            .server
            .post(&path, &self.key, json!({"decision": decision}));
        decided.await.expect(200);
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let answer = self
            .server
            .get(&format!("{}{path}", self.app), &self.key)
            .await;
        serde_json::from_str(&answer.expect(200).text).unwrap()
    }

    async fn export(&self, kind: &str) -> Vec<Value> {
        let path = format!(
            "{}/export?kind={kind}&format=ndjson&from={FROM}&to={TO}&timezone=UTC",
            self.app
        );
        parse_lines(&self.server.get(&path, &self.key).await.expect(200).text)
    }

    pub(super) async fn read_recorded(&self) -> RecordedRows {
        RecordedRows {
            events: self.export("events").await,
            clicks: self.export("clicks").await,
        }
    }

    /// Reads all pages of a report and returns its rows and totals.
    pub(super) async fn stats(&self, query: &str, limit: u32) -> (Vec<Value>, Value) {
        let (mut rows, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self
                .get(&format!("/stats?{query}&limit={limit}{cursor}"))
                .await;
            rows.extend(page["data"].as_array().unwrap().iter().cloned());
            let Some(next) = page["meta"]["cursor"].as_str() else {
                return (rows, page["meta"]["totals"].clone());
            };
            cursor = format!("&cursor={next}");
        }
    }

    /// Compares a report with a full count.
    pub(super) async fn compare(
        &self,
        recorded: &RecordedRows,
        group: &[&str],
        filters: &[(&str, String)],
        days: (&str, &str),
        zone: &str,
    ) {
        let mut query = format!(
            "groupBy={}&from={}&to={}&timezone={zone}",
            group.join(","),
            days.0,
            days.1
        );
        for (name, value) in filters {
            query = format!("{query}&{name}={value}");
        }
        let (rows, sums) = self.stats(&query, 500).await;
        let expected = recorded.report(group, filters, days, zone);
        assert_eq!(response_rows(&rows, group), expected, "{query}");
        assert_eq!(nonzero_figures(&sums), totals(&expected), "{query}");
    }
}

async fn create_link(server: &TestServer, app: &str, key: &str, body: Value) -> LinkId {
    let answer = server.post(&format!("{app}/links"), key, body).await;
    LinkId::parse(answer.expect(201).data()["id"].as_str().unwrap()).unwrap()
}

/// Lists the values that occur in a dimension; the empty text is a missing value.
pub(super) fn values(recorded: &RecordedRows, dimension: &str) -> Vec<String> {
    let rows = recorded.report(&[dimension], &[], (FROM, TO), "UTC");
    let found: BTreeSet<String> = rows
        .into_keys()
        .map(|key| key[0].1.clone().unwrap_or_default())
        .collect();
    found.into_iter().collect()
}

on_both_engines! {
    async fn every_report_equals_a_full_count(engine: Engine) {
        let fixture = ReportFixture::start(engine, 1_500).await;
        let recorded = fixture.read_recorded().await;
        assert!(recorded.events.len() > 1_000 && recorded.clicks.len() > 50, "{}", recorded.events.len());
        let has = |state: &str| recorded.events.iter().any(|event| event["attribution"]["hold"] == state);
        assert_eq!(["held", "released", "rejected"].map(has), [true; 3], "every state occurs");
        let days = (FROM, TO);
        for dimension in DIMENSIONS {
            fixture.compare(&recorded, &[dimension], &[], days, "Europe/Berlin").await;
        }
        for zone in ZONES {
            for unit in UNITS {
                fixture.compare(&recorded, &[unit], &[], days, zone).await;
                fixture.compare(&recorded, &[unit, "network"], &[], days, zone).await;
            }
            fixture.compare(&recorded, &["day", "country"], &[], ("2026-03-20", "2026-03-30"), zone).await;
            fixture.compare(&recorded, &["day", "event"], &[], ("2026-03-29", "2026-03-29"), zone).await;
        }
        for group in [
            ["network", "campaign", "ad"], ["link", "adset", "day"], ["event", "source", "week"],
            ["country", "platform", "month"], ["network", "country", "day"], ["campaign", "event", "platform"],
        ] {
            fixture.compare(&recorded, &group, &[], days, "America/New_York").await;
        }
    }

    async fn random_queries_equal_a_full_count(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        let recorded = fixture.read_recorded().await;
        let mut random = rand_chacha::ChaCha12Rng::seed_from_u64(3);
        for _ in 0..60 {
            let mut group: Vec<&str> = UNITS.choose(&mut random).copied().into_iter().collect();
            group.truncate(random.random_range(0..=1));
            let count = random.random_range(0..=2);
            group.extend(DIMENSIONS.sample(&mut random, count));
            if group.is_empty() {
                group.push("platform");
            }
            let mut filters = Vec::new();
            let count = random.random_range(0..=3);
            for dimension in DIMENSIONS.sample(&mut random, count) {
                let mut candidates = values(&recorded, dimension);
                candidates.extend((*dimension == "platform").then(|| "app".to_owned()));
                filters.extend(candidates.choose(&mut random).map(|value| (*dimension, value.clone())));
            }
            let first = random.random_range(15..=31);
            let from = format!("2026-03-{first:02}");
            let to = format!("2026-04-{:02}", random.random_range(1..=5));
            let zone = ZONES.choose(&mut random).unwrap();
            fixture.compare(&recorded, &group, &filters, (&from, &to), zone).await;
        }
    }

    async fn revenue_is_the_same_in_every_report(engine: Engine) {
        let fixture = ReportFixture::start(engine, 800).await;
        let ledger: i64 = fixture.export("events").await.iter()
            .filter(|event| event["revenue"]["counted"] == true && !is_withheld(event))
            .map(|event| micros(&event["revenue"]["usd"]))
            .sum();
        let days = format!("from={FROM}&to={TO}");
        let (_, stats) = fixture.stats(&days, 500).await;
        let overview = fixture.get(&format!("/overview?{days}")).await;
        let portfolio = fixture.server.get(&format!("/api/v1/portfolio?{days}"), &fixture.key).await;
        let portfolio: Value = serde_json::from_str(&portfolio.expect(200).text).unwrap();
        assert!(ledger > 0 && micros(&stats["refunded"]) > 0);
        assert_eq!(micros(&stats["netRevenue"]), ledger);
        assert_eq!(micros(&overview["data"]["kpis"]["netRevenue"]["value"]), ledger);
        assert_eq!(micros(&portfolio["data"][0]["kpis"]["netRevenue"]["value"]), ledger);
        assert_eq!(micros(&portfolio["meta"]["totals"]["netRevenue"]["value"]), ledger);
        let series = overview["data"]["series"].as_array().unwrap();
        assert_eq!(series.iter().map(|day| micros(&day["netRevenue"])).sum::<i64>(), ledger);
    }

    async fn rebuilding_changes_no_rollup(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        let store = &fixture.server.store;
        let days = store.rollup_days().await.unwrap();
        assert!(days.len() >= DAYS as usize);
        for day in days {
            let rebuilt = store.rebuild_rollups(day).await.unwrap();
            assert_eq!(rebuilt.corrected_rows, 0, "{day:?} {rebuilt:?}");
            assert!(rebuilt.correct_rows > 0, "{day:?}");
        }
        let recorded = fixture.read_recorded().await;
        fixture.compare(&recorded, &["day", "network"], &[], (FROM, TO), "UTC").await;
    }

    async fn paging_neither_skips_nor_repeats_rows(engine: Engine) {
        let fixture = ReportFixture::start(engine, 300).await;
        let query = format!("groupBy=day,network&from={FROM}&to={TO}");
        let (whole, sums) = fixture.stats(&query, 500).await;
        let (paged, again) = fixture.stats(&query, 7).await;
        assert_eq!((whole, sums), (paged, again));
    }

    async fn cohorts_follow_their_devices(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        let events = fixture.export("events").await;
        let path = format!("/cohorts?from={FROM}&to={TO}&timezone=UTC&interval=month&maxAge=20&limit=500");
        let cohorts = fixture.get(&path).await;
        let mut installs = std::collections::BTreeMap::new();
        for event in events.iter().filter(|event| event["name"] == "install" && !is_withheld(event)) {
            installs.insert(event["deviceId"].as_str().unwrap(), event["timestampMs"].as_i64().unwrap());
        }
        let (mut devices, mut revenue) = (vec![BTreeSet::new(); 21], vec![0; 21]);
        for event in events.iter().filter(|event| event["source"] != "web") {
            let device = event["deviceId"].as_str().unwrap();
            let Some(installed) = installs.get(device) else { continue };
            let millis = event["timestampMs"].as_i64().unwrap() - installed;
            let age = usize::try_from(millis.max(0) / 86_400_000).unwrap();
            if age > 20 { continue; }
            devices[age].insert(device);
            if event["revenue"]["counted"] == true {
                revenue[age] += micros(&event["revenue"]["usd"]);
            }
        }
        let mut found = (vec![0; 21], vec![0; 21]);
        let mut all = 0;
        for cohort in cohorts["data"].as_array().unwrap() {
            all += cohort["installs"].as_u64().unwrap();
            for (age, row) in cohort["ages"].as_array().unwrap().iter().enumerate() {
                found.0[age] += row["devices"].as_u64().unwrap();
                found.1[age] += micros(&row["revenue"]);
            }
        }
        assert_eq!(all, installs.len() as u64);
        assert_eq!(found.0, devices.iter().map(|seen| seen.len() as u64).collect::<Vec<_>>());
        assert_eq!(found.1, revenue);
        for by in ["network", "link", "campaign", "country"] {
            let rows = fixture.get(&format!("{path}&groupBy={by}")).await;
            let sum: u64 = rows["data"].as_array().unwrap().iter().map(|row| row["installs"].as_u64().unwrap()).sum();
            assert_eq!(sum, all, "{by}");
        }
    }

    async fn costs_are_stored_and_reported(engine: Engine) {
        let fixture = ReportFixture::start(engine, 300).await;
        let path = format!("{}/costs", fixture.app);
        let body = json!({"costs": [
            {"day": "2026-03-20", "network": "network_a", "campaign": "c1", "amount": 80},
            {"day": "2026-03-20", "network": "network_b", "amount": "20.5"},
            {"day": "2026-03-21", "network": "network_a", "campaign": "c1", "amount": 10, "currency": "USD"},
        ]});
        let answer = fixture.server.call("PUT", &path, &fixture.key, Some(body)).await.expect(200);
        assert_eq!(answer.data(), json!({"stored": 3, "skipped": 0}));
        let csv = "day,network,campaign,amount\n2026-03-21,network_a,c1,0\n2026-03-22,apple_ads,,5\n";
        let request = fixture.server.request(reqwest::Method::PUT, &path).bearer_auth(&fixture.key);
        fixture.server.send(request.header("content-type", "text/csv").body(csv)).await.expect(200);
        let listed = fixture.get("/costs").await;
        let stored: Vec<(&str, &str, String)> = listed["data"].as_array().unwrap().iter()
            .map(|cost| (cost["day"].as_str().unwrap(), cost["network"].as_str().unwrap(), cost["usd"].to_string()))
            .collect();
        assert_eq!(stored.len(), 3);
        assert_eq!(stored[0], ("2026-03-22", "apple_ads", "5".to_owned()));
        let test = fixture.server.key(fixture.organization, Permission::Full, Environment::Test).await;
        assert_eq!(fixture.server.get(&path, &test).await.expect(200).data(), json!([]), "costs exist only in live data");
        let (rows, sums) = fixture.stats(&format!("groupBy=day,network&from={FROM}&to={TO}"), 500).await;
        assert_eq!(sums["cost"], json!(105.5));
        let of = |day: &str, network: &str| {
            let found = rows.iter().find(|row| row["day"] == day && row["network"] == network);
            found.map(|row| row["cost"].clone())
        };
        assert_eq!(of("2026-03-20", "network_a"), Some(json!(80)));
        assert_eq!(of("2026-03-22", "apple_ads"), Some(json!(5)), "a cost without installs has a row");
        let (_, by_link) = fixture.stats(&format!("groupBy=link&from={FROM}&to={TO}"), 500).await;
        assert_eq!(by_link["cost"], Value::Null, "costs have no link");
        let bad = json!({"costs": [{"day": "2026-02-30", "network": "organic", "amount": -1, "colour": "red"}]});
        let refused = fixture.server.call("PUT", &path, &fixture.key, Some(bad)).await.expect(422);
        let fields: Vec<String> = refused.json()["error"]["details"].as_array().unwrap().iter()
            .map(|fault| fault["field"].as_str().unwrap().to_owned()).collect();
        assert_eq!(fields, ["costs[0].day", "costs[0].network", "costs[0].amount", "costs[0].colour"]);
    }

    async fn the_portfolio_has_the_paid_and_blended_ratios_of_the_overview(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.change_app(json!({"attribution": {"fraud": "flag"}})).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let click = sdk.tap("/c/spring?fbclid=f1").await;
        sdk.configure("paid", json!({"arClickId": click})).await;
        sdk.configure("organic", json!({})).await;
        for (device, revenue) in [("paid", "20"), ("organic", "5")] {
            let event = json!([{"eventId": device, "name": "purchase", "revenue": revenue, "currency": "USD"}]);
            sdk.send(device, event).await;
        }
        sdk.server.app(&sdk.key).await;
        let portfolio = async || {
            let answer = sdk.server.get("/api/v1/portfolio?sort=-installs", &sdk.key).await;
            answer.expect(200).json()
        };
        let without = portfolio().await;
        assert_eq!(without["data"][0]["kpis"]["paidRoas"]["value"], Value::Null);
        let days = format!("{}/stats?groupBy=day", sdk.app);
        let day = sdk.server.get(&days, &sdk.key).await.expect(200).data()[0]["day"].clone();
        let body = json!({"costs": [{"day": day, "network": "network_a", "amount": 10}]});
        sdk.server.call("PUT", &format!("{}/costs", sdk.app), &sdk.key, Some(body)).await.expect(200);
        let overview = sdk.server.get(&format!("{}/overview", sdk.app), &sdk.key).await.expect(200).data();
        let portfolio = portfolio().await;
        let expected = [("cost", 10.0), ("cpi", 5.0), ("roas", 2.5), ("paidCpi", 10.0), ("paidRoas", 2.0)];
        for (ratio, expected) in expected {
            let value = |kpis: &Value| kpis[ratio]["value"].as_f64();
            for kpis in [&overview["kpis"], &portfolio["data"][0]["kpis"], &portfolio["meta"]["totals"]] {
                assert_eq!(value(kpis), Some(expected), "{ratio}");
            }
        }
        assert_eq!(portfolio["data"][1]["kpis"]["paidRoas"]["value"], Value::Null, "an app without costs");
        for figure in ["clicks", "installs", "netRevenue", "payingDevices", "events"] {
            let value = |portfolio: &Value| portfolio["data"][0]["kpis"][figure].clone();
            assert_eq!(value(&portfolio), value(&without), "{figure}");
        }
    }

    async fn test_data_is_reported_separately(engine: Engine) {
        let fixture = ReportFixture::start(engine, 100).await;
        let test = fixture.server.key(fixture.organization, Permission::Full, Environment::Test).await;
        let stats = fixture.server.get(&format!("{}/stats?groupBy=network&from={FROM}&to={TO}", fixture.app), &test).await;
        assert_eq!(stats.expect(200).json()["data"], json!([]));
        let export = fixture.server.get(&format!("{}/export?format=ndjson&from={FROM}&to={TO}", fixture.app), &test).await;
        assert_eq!(export.expect(200).text, "");
        let test_sample = SampleApp { environment: Environment::Test, seed: 8, days: 3, ..fixture.sample.clone() };
        let steps = test_sample.day(0).into_iter().flatten();
        for step in steps.filter(|step| matches!(step, tributary_testkit::SampleAction::Configure(_))) {
            step.apply(&*fixture.server.store).await.unwrap();
        }
        let stats = fixture.server.get(&format!("{}/stats?groupBy=network&from={FROM}&to={TO}", fixture.app), &test).await;
        assert!(stats.expect(200).json()["meta"]["totals"]["installs"].as_i64().unwrap() > 0);
    }

    async fn rejects_invalid_queries_and_names_the_field(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        for (path, field) in [
            ("/stats?groupBy=colour", "groupBy"),
            ("/stats?groupBy=day,week", "groupBy"),
            ("/stats?groupBy=day,network,link,ad", "groupBy"),
            ("/stats?from=2026-02-01&to=2026-01-01", "to"),
            ("/stats?from=2016-01-01&to=2026-01-01", "from"),
            ("/stats?timezone=Mars/Olympus", "timezone"),
            ("/stats?network=network_z", "network"),
            ("/stats?link=app_1", "link"),
            ("/stats?country=Germany", "country"),
            ("/stats?network=network_a&link=&campaign=a&ad=b", "ad"),
            ("/stats?limit=501", "limit"),
            ("/stats?colour=red", "colour"),
            ("/events?source=fax", "source"),
            ("/events?network=network_z", "network"),
            ("/events?linkId=x", "linkId"),
            ("/overview?from=2026-13-01", "from"),
            ("/cohorts?interval=hour", "interval"),
            ("/cohorts?groupBy=event", "groupBy"),
            ("/cohorts?maxAge=128", "maxAge"),
            ("/export?kind=secrets", "kind"),
            ("/export?format=xlsx", "format"),
            ("/costs?network=organic", "network"),
        ] {
            let answer = server.get(&format!("{app}{path}"), &key).await.expect(422);
            let error = &answer.json()["error"];
            assert_eq!(error["details"][0]["field"], field, "{path}: {error}");
        }
        for path in ["/stats?cursor=abc", "/costs?cursor=AAAA", "/cohorts?cursor=zzz"] {
            let answer = server.get(&format!("{app}{path}"), &key).await.expect(422);
            assert_eq!(answer.json()["error"]["code"], "invalid_cursor", "{path}");
        }
        let answer = server.get("/api/v1/portfolio?sort=colour", &key).await.expect(422);
        assert_eq!(answer.json()["error"]["details"][0]["field"], "sort");
    }

    async fn an_export_is_complete_in_every_format(engine: Engine) {
        let fixture = ReportFixture::start(engine, 300).await;
        let days = format!("from={FROM}&to={TO}&timezone=UTC");
        let json = fixture.export("events").await;
        let csv = fixture.server.get(&format!("{}/export?{days}", fixture.app), &fixture.key).await.expect(200);
        assert_eq!(csv.text.lines().count(), json.len() + 1);
        let installs = fixture.export("installs").await;
        let expected: Vec<&Value> = json.iter().filter(|event| event["name"] == "install").collect();
        assert_eq!(installs.iter().collect::<Vec<_>>(), expected);
        let request = fixture.server.request(reqwest::Method::GET, &format!("{}/export?format=ndjson&{days}", fixture.app));
        let compressed = request.bearer_auth(&fixture.key).header("accept-encoding", "gzip").send().await.unwrap();
        assert_eq!(compressed.headers()["content-encoding"], "gzip");
        let mut text = String::new();
        let bytes = compressed.bytes().await.unwrap();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
        assert_eq!(parse_lines(&text), json);
        assert!(!text.contains("203.0.113.9"), "exports contain no IP addresses");
    }

    async fn filters_the_event_log(engine: Engine) {
        let fixture = ReportFixture::start(engine, 300).await;
        let all = fixture.export("events").await;
        let link = all.iter().find_map(|event| event["attribution"]["linkId"].as_str()).unwrap();
        let filters: [(&str, &str, ColumnReader); 4] = [
            ("source", "web", |event| event["source"].clone()),
            ("network", "organic", |event| event["attribution"]["network"].clone()),
            ("linkId", link, |event| event["attribution"]["linkId"].clone()),
            ("userId", "user-1", |event| event["userId"].clone()),
        ];
        for (name, value, read) in filters {
            let page = fixture.get(&format!("/events?{name}={value}&limit=500")).await;
            let found = page["data"].as_array().unwrap().len();
            assert_eq!(found, all.iter().filter(|event| read(event) == value).count(), "{name}");
            assert_eq!(page["meta"]["stoppedEarly"], false);
            assert!(found > 0, "{name}");
        }
    }
}
