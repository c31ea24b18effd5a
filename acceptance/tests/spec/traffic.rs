//! Unusual traffic: the overview endpoint and the Overview page.

use reqwest::Method;
use serde_json::json;
use tributary_domain::access::person::Role;
use tributary_domain::access::{Environment, Permission};
use tributary_domain::report::Grain;
use tributary_domain::report::anomaly::{
    TrafficAnomaly, TrafficCheck, TrafficFigure, TrafficSubject,
};
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_store::CheckedHour;
use tributary_testkit::{TestServer, on_both_engines};

on_both_engines! {
    async fn the_overview_shows_unusual_traffic(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let live = server.key(organization, Permission::Full, Environment::Live).await;
        let path = server.app(&live).await;
        let link = server.post(&format!("{path}/links"), &live, json!({"name": "Spring <b>"})).await.expect(201).data();
        let link = link["id"].as_str().unwrap();
        let app = path.rsplit('/').next().unwrap();
        let hour = Grain::Hour.bucket_start(server.clock.now());
        let anomaly = |subject, figure, value, expected| TrafficAnomaly {
            subject, figure, hour, value, expected, ended_at: None,
        };
        let raised = vec![
            anomaly(TrafficSubject::Link(LinkId::parse(link).unwrap()), TrafficFigure::Installs, 812, 14),
            anomaly(TrafficSubject::App, TrafficFigure::Revenue, 5_000_500_000, 20_000_000),
            anomaly(TrafficSubject::Address("0a1b2c3d4e5f".to_owned()), TrafficFigure::Installs, 400, 1),
        ];
        let checked = CheckedHour {
            app: AppId::parse(app).unwrap(),
            hour,
            peak: 400,
            check: TrafficCheck { raised, ended: Vec::new() },
            alerts: Vec::new(),
            at: server.clock.now(),
        };
        assert!(server.store.record_checked_hour(checked, hour).await.unwrap());

        let overview = format!("{path}/overview");
        let shown = server.get(&overview, &live).await.expect(200).data();
        let rows = shown["anomalies"].as_array().unwrap();
        let brief: Vec<_> = rows.iter().map(|row| json!([
            row["subject"], row["subjectId"], row["figure"], row["value"], row["expected"], row["endedAt"],
        ])).collect();
        assert_eq!(brief, [
            json!(["address", "0a1b2c3d4e5f", "installs", 400, 1, null]),
            json!(["app", null, "revenue", 5000.5, 20, null]),
            json!(["link", link, "installs", 812, 14, null]),
        ]);
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let hidden = server.get(&overview, &test).await.expect(200).data();
        assert_eq!(hidden["anomalies"], json!([]), "test data is not compared");

        let cookie = server.sign_in_as(organization, Role::Viewer).await;
        let request = server.request(Method::GET, &format!("/apps/{app}")).header("cookie", &cookie);
        let page = server.send(request).await.expect(200).text;
        for part in ["Unusual traffic", "Spring &#60;b&#62;", "812", "$5,000.50", "0a1b2c3d4e5f"] {
            assert!(page.contains(part), "{part} is missing: {page}");
        }
    }
}
