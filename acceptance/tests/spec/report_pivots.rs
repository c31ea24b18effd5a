//! Pivots: network and campaign together with country and platform, and their history.

use super::reports::{FROM, ReportFixture, TO, UNITS, ZONES, values};
use super::reports_model::RecordedRows;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::id::AppId;
use tributary_testkit::on_both_engines;

const CREDITS: [&str; 2] = ["network", "campaign"];
const PLACES: [&str; 2] = ["country", "platform"];

/// Compares random reports over a credit and a place with a full count.
async fn compare_pivots(
    fixture: &ReportFixture,
    recorded: &RecordedRows,
    reports: usize,
    seed: u64,
) {
    let mut random = rand_chacha::ChaCha12Rng::seed_from_u64(seed);
    for _ in 0..reports {
        let mut dimensions = vec![
            *CREDITS.choose(&mut random).unwrap(),
            *PLACES.choose(&mut random).unwrap(),
        ];
        dimensions.extend(
            CREDITS
                .iter()
                .chain(&PLACES)
                .filter(|_| random.random_bool(0.3)),
        );
        // Each dimension groups, filters, or both.
        let (mut group, mut filters): (Vec<&str>, Vec<(&str, String)>) = (Vec::new(), Vec::new());
        for dimension in dimensions {
            let is_filter = random.random_bool(0.5);
            if (!is_filter || random.random_bool(0.3))
                && group.len() < 3
                && !group.contains(&dimension)
            {
                group.push(dimension);
            } else if filters.len() < 3 && !filters.iter().any(|(name, _)| *name == dimension) {
                let mut candidates = values(recorded, dimension);
                candidates.extend((dimension == "platform").then(|| "app".to_owned()));
                filters.push((dimension, candidates.choose(&mut random).unwrap().clone()));
            }
        }
        if group.len() < 3 && (group.is_empty() || random.random_bool(0.5)) {
            group.push(UNITS.choose(&mut random).unwrap());
        }
        let from = format!("2026-03-{:02}", random.random_range(14..=31));
        let to = format!("2026-04-{:02}", random.random_range(1..=6));
        let zone = ZONES.choose(&mut random).unwrap();
        fixture
            .compare(recorded, &group, &filters, (&from, &to), zone)
            .await;
    }
}

async fn first_page(fixture: &ReportFixture, group: &str) -> Value {
    fixture
        .get(&format!("/stats?groupBy={group}&from={FROM}&to={TO}"))
        .await
}

on_both_engines! {
    async fn random_pivots_equal_a_full_count(engine: Engine) {
        let fixture = ReportFixture::start(engine, 800).await;
        let recorded = fixture.read_recorded().await;
        compare_pivots(&fixture, &recorded, 80, 11).await;
    }

    async fn earlier_events_are_filled_in_steps(engine: Engine) {
        let fixture = ReportFixture::start(engine, 600).await;
        let store = &fixture.server.store;
        for day in store.rollup_days().await.unwrap() {
            // Merges the increments, so that the pivots can be removed.
            store.rebuild_rollups(day).await.unwrap();
        }
        let app = AppId::parse(fixture.app.rsplit('/').next().unwrap()).unwrap();
        // As after an upgrade at the start of the 29th of March: later events are counted already.
        let database = fixture.server.database.direct_connection().await;
        database.run("delete from rollup_pivots where bucket < 1774742400000").await;
        database.run(
            "insert into pivot_history (app_id, complete_from, due_at, version)
             select app_id, 1774828800000, 0, 0 from apps",
        ).await;
        let recorded = fixture.read_recorded().await;

        // A small log is counted directly. A large one gives incomplete figures that say so.
        compare_pivots(&fixture, &recorded, 5, 12).await;
        assert_eq!(first_page(&fixture, "network,country").await["meta"].get("completeFrom"), None);
        database.run("update rollup_networks set clicks = clicks + 600000 where grain in (60, 1440)").await;
        let page = first_page(&fixture, "network,country").await;
        assert_eq!(page["meta"]["completeFrom"], "2026-03-30T00:00:00.000Z");
        let page = first_page(&fixture, "network,day").await;
        assert_eq!(page["meta"].get("completeFrom"), None, "another roll-up");
        let later = fixture.get("/stats?groupBy=network,country&from=2026-03-30&to=2026-04-06&timezone=UTC").await;
        assert_eq!(later["meta"].get("completeFrom"), None, "a later range");

        let now = fixture.server.clock.now();
        assert_eq!(store.apps_to_fill(now, 10).await.unwrap(), [app]);
        assert!(store.fill_pivots(app).await.unwrap());
        let page = first_page(&fixture, "network,country").await;
        assert!(page["meta"]["completeFrom"].as_str().unwrap() < "2026-03-30");
        database.run("update rollup_networks set clicks = clicks - 600000 where grain in (60, 1440)").await;
        // Two nodes fill at the same time. Between the steps, a rebuild runs and installs are reviewed.
        let mut steps = 0;
        loop {
            let (one, other) = tokio::join!(store.fill_pivots(app), store.fill_pivots(app));
            steps += 1;
            if !one.unwrap() && !other.unwrap() {
                break;
            }
            if steps == 3 {
                let days = store.rollup_days().await.unwrap();
                store.rebuild_rollups(days[5]).await.unwrap();
                for device in fixture.held().await {
                    fixture.decide(&device, "release").await;
                }
            }
            assert!(steps < 200, "the fill does not end");
        }
        assert!(steps > 5, "{steps}");
        assert_eq!(store.apps_to_fill(now, 10).await.unwrap(), []);
        assert_eq!(first_page(&fixture, "network,country").await["meta"].get("completeFrom"), None);
        let recorded = fixture.read_recorded().await;
        compare_pivots(&fixture, &recorded, 40, 13).await;
        for day in store.rollup_days().await.unwrap() {
            let rebuilt = store.rebuild_rollups(day).await.unwrap();
            assert_eq!(rebuilt.corrected_rows, 0, "{day:?} {rebuilt:?}");
        }
    }
}
