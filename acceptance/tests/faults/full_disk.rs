//! A full disk on SQLite: writes get 503, and reports still include everything acknowledged.

use super::power_cut_round::Machine;
use serde_json::Value;

/// Maximum events to send. The disk is full long before.
const EVENTS_MAX: u64 = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_work_when_the_disk_is_full() {
    let machine = Machine::new().await;
    let (server, site, _disk) = machine.with_full_disk().await;
    let mut acknowledged = 0;
    for number in 0..EVENTS_MAX {
        let event = site.purchase(&format!("event-{number}"), "9.99");
        let answer = site.try_send(&event).await.expect("a response");
        if answer.status == 503 {
            break;
        }
        acknowledged += 1;
        answer.expect(202);
    }
    assert!((1..EVENTS_MAX).contains(&acknowledged), "{acknowledged}");
    for path in ["/stats?groupBy=day", "/stats?groupBy=network"] {
        let report = site.call("GET", path, Value::Null).await.expect(200);
        let report: Value = serde_json::from_str(&report.text).unwrap();
        assert_eq!(
            report["meta"]["totals"]["purchases"], acknowledged,
            "{report}"
        );
    }
    site.call("GET", "/cohorts", Value::Null).await.expect(200);
    let event = site.purchase("late", "9.99");
    let answer = site.try_send(&event).await.expect("a response");
    answer.expect(503);
    server.kill_now();
}
