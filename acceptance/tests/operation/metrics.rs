//! Metrics exist from the start, so that the documented alerts fire on the first incident.

use super::metric;
use std::collections::BTreeSet;
use std::fs;
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

/// Counters that appear with the first request or transaction, because they have many labels, or only
/// with a standby.
const APPEAR_LATER: [&str; 3] = [
    "tributary_http_requests_total",
    "tributary_standby_reads_total",
    "tributary_store_transactions_total",
];

fn file(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    fs::read_to_string(format!("{root}/{path}")).unwrap()
}

/// Returns the counters that `docs/OPERATIONS.md` lists.
fn documented_counters() -> Vec<String> {
    let operations = file("docs/OPERATIONS.md");
    let names = operations
        .split(|c: char| !c.is_ascii_lowercase() && c != '_')
        .filter(|word| word.starts_with("tributary_") && word.ends_with("_total"));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

on_both_engines! {
    async fn counters_gauges_and_process_metrics_exist_from_the_start(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let server = ServerProcess::start(&database).await;
        let metrics = server.call("GET", "/metrics", "", None).await.expect(200).text;
        for name in documented_counters() {
            let exists = metrics.lines().any(|line| line.starts_with(&format!("{name} ")) || line.starts_with(&format!("{name}{{")));
            assert!(exists || APPEAR_LATER.contains(&&*name), "{name} is missing: {metrics}");
        }
        for name in [
            "tributary_store_unavailable_total",
            "tributary_clicks_total{outcome=\"not_recorded\"}",
            "tributary_integrations_paused_total{network=\"network_a\"}",
            "tributary_worker_runs_total{worker=\"rates\",outcome=\"failed\"}",
            "tributary_billing_notifications_total{provider=\"revenuecat\",outcome=\"unauthorized\"}",
            "tributary_log_lines_dropped_total",
        ] {
            assert_eq!(metric(&metrics, name), Some("0"), "{name}: {metrics}");
        }
        let name = match engine {
            tributary_testkit::Engine::Sqlite => "sqlite",
            tributary_testkit::Engine::Postgres => "postgres",
        };
        assert!(metrics.contains("tributary_build_info{version=") && metrics.contains(&format!("engine=\"{name}\"}} 1")), "{metrics}");
        for name in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds"] {
            let value = metric(&metrics, name).unwrap_or_else(|| panic!("{name} is missing"));
            assert!(value.parse::<f64>().unwrap() > 0.0, "{name} {value}");
        }
    }
}

on_both_engines! {
    async fn a_key_used_outside_its_addresses_is_counted_and_logged(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let server = ServerProcess::start(&database).await;
        ServerProcess::full_key(&database);
        let create = ["admin", "key", "create", "--permission", "full", "--address", "192.0.2.0/24"];
        let key = ServerProcess::run(&database, &create).unwrap();
        let refused = server.call("GET", "/api/v1/apps", key.trim(), None).await.expect(403);
        assert_eq!(refused.code(), "address_not_allowed");
        let metrics = server.call("GET", "/metrics", "", None).await.expect(200).text;
        for (outcome, count) in [("wrong_address", "1"), ("denied", "0")] {
            let name = format!("tributary_authentications_total{{outcome=\"{outcome}\"}}");
            assert_eq!(metric(&metrics, &name), Some(count), "{metrics}");
        }
        let log = server.log();
        let line = log.lines().find(|line| line.contains("permission denied"));
        assert!(line.is_some_and(|line| line.contains("key_")), "{log}");
        assert!(!log.contains(key.trim()), "{log}");
    }
}

/// Returns the names of alerts, or of metrics, in a text.
fn names<'a>(text: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(prefix))
        .collect()
}

#[test]
fn operations_md_explains_every_alert_and_metric() {
    let (rules, dashboard) = (file("packaging/alerts.yml"), file("packaging/grafana.json"));
    let operations = file("docs/OPERATIONS.md");
    assert_eq!(names(&rules, "Tributary"), {
        let mut explained = names(&operations, "Tributary");
        explained.retain(|name| name.len() > "Tributary".len());
        explained
    });
    let documented = names(&operations, "tributary_");
    let used = [&rules, &dashboard].map(|text| names(text, "tributary_"));
    for name in used.iter().flatten() {
        let name = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(
            documented.contains(name),
            "{name} is not in docs/OPERATIONS.md"
        );
    }
}
