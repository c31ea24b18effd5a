//! A server on an upgraded database: it starts, and reports include the figures of the old rows.

use super::clock;
use super::rows::{self, FIGURE, PENDING_PURCHASES};
use serde_json::Value;
use tributary_testkit::ServerProcess;

/// First schema with roll-ups.
const ROLLUPS_SINCE: i64 = 2;
/// First schema with increments that are merged into the roll-ups later.
const INCREMENTS_SINCE: i64 = 12;
/// Reports that read different roll-ups.
const GROUPS: [&str; 4] = ["network", "campaign", "event", "country"];
/// Lists with rows that a person or the server wrote.
const LISTS: [&str; 5] = ["links", "events", "deliveries", "costs", "integrations"];

/// Requests reports and lists of the first app, and checks the figures.
pub(super) async fn assert_answers(server: &ServerProcess, from: i64) {
    let app = format!("/api/v1/apps/{}", rows::app());
    let key = rows::key();
    let get = async |path: &str| -> Value {
        let path = format!("{app}/{path}");
        let answer = server.call("GET", &path, key.reveal(), None).await;
        assert_eq!(
            answer.status,
            200,
            "schema {from}, {path}: {answer:?}\n{}",
            server.log()
        );
        serde_json::from_str(&answer.text).unwrap()
    };
    let mut expected = 0;
    if from >= ROLLUPS_SINCE {
        expected += FIGURE;
    }
    if from >= INCREMENTS_SINCE {
        expected += PENDING_PURCHASES;
    }
    let date = clock::date();
    for group in GROUPS {
        let path = format!("stats?groupBy={group}&from={date}&to={date}&timezone=UTC");
        let report = get(&path).await;
        let totals = report["meta"]["totals"]["purchases"].clone();
        assert_eq!(totals, expected, "schema {from}, by {group}");
    }
    for list in LISTS {
        let found = get(list).await;
        assert!(found["data"].is_array(), "{list}: {found}");
    }
}
