//! Payers of cohorts whose installs were recorded before payers were counted.

use super::cohort_pages::{CREDITS, Question, compare_api, count_cohorts};
use super::reports::{FROM, ReportFixture, TO};
use serde_json::Value;
use tributary_domain::access::person::Role;
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::id::AppId;
use tributary_testkit::on_both_engines;

on_both_engines! {
    async fn payers_of_earlier_installs_are_counted_in_steps(engine: Engine) {
        let fixture = ReportFixture::start(engine, 400).await;
        fixture.put_costs().await;
        let store = &fixture.server.store;
        for day in store.rollup_days().await.unwrap() {
            // Merges the increments, so that the payers can be removed.
            store.rebuild_rollups(day).await.unwrap();
        }
        let app = AppId::parse(fixture.app.rsplit('/').next().unwrap()).unwrap();
        let cookie = fixture.server.sign_in_as(fixture.organization, Role::Analyst).await;
        let whole = Question { unit: "day", by: None, filters: Vec::new() };
        let recorded = fixture.read_recorded().await;
        let counted = count_cohorts(&recorded, &whole);
        // As after an upgrade: nothing is counted.
        let database = fixture.server.database.direct_connection().await;
        for table in ["rollup_cohorts", "rollup_cohort_places"] {
            database.run(&format!("update {table} set payers = 0")).await;
        }
        database.run("update cohort_devices set paid_ages = null").await;
        database.run(
            "insert into payer_history (app_id, complete_from, due_at)
             select app_id, 1775520000000, 0 from apps",
        ).await;
        let query = format!("from={FROM}&to={TO}&interval=month&maxAge=90");
        let answer = fixture.get(&format!("/cohorts?{query}")).await;
        // Payers are known from the day after the last install on.
        let oldest = answer["data"].as_array().unwrap().last().unwrap();
        assert_eq!(oldest["ages"][0]["payers"], Value::Null, "not known yet");
        assert_eq!(oldest["ages"][0]["payerShare"], Value::Null);
        let page = fixture.page("/cohorts?range=30d&show=payerShare", &cookie).await;
        assert!(page.contains("Payers are known for installs since 7 Apr 2026"), "{page}");

        let now = fixture.server.clock.now();
        assert_eq!(store.apps_without_payers(now, 10).await.unwrap(), [app]);
        let mut steps = 0;
        loop {
            // Two nodes count at the same time. Between the steps, a rebuild runs and installs are reviewed.
            let (one, other) = tokio::join!(store.fill_payers(app), store.fill_payers(app));
            let (one, other) = (one.unwrap(), other.unwrap());
            steps += 1;
            if !one || !other {
                break;
            }
            if steps == 3 {
                let days = store.rollup_days().await.unwrap();
                store.rebuild_rollups(days[5]).await.unwrap();
            }
            assert!(steps < 2_000, "counting does not end");
        }
        assert!(steps > 5, "{steps}");
        assert_eq!(store.apps_without_payers(now, 10).await.unwrap(), []);
        compare_api(&fixture, &counted, &whole).await;
        for by in CREDITS {
            let question = Question { unit: "week", by: Some(by), filters: Vec::new() };
            let counted = count_cohorts(&recorded, &question);
            compare_api(&fixture, &counted, &question).await;
        }
        for day in store.rollup_days().await.unwrap() {
            let rebuilt = store.rebuild_rollups(day).await.unwrap();
            assert_eq!(rebuilt.corrected_rows, 0, "{day:?} {rebuilt:?}");
        }
    }
}
