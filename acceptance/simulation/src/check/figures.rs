//! Checks the figures: they equal a slow count over the event log, and a rebuild changes nothing.

use super::{Evidence, micros};
use crate::disk::DATABASE;
use crate::scenario::Keys;
use crate::totals::WRONG_SUM;
use crate::world::START;
use rusqlite::Connection;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Authorized;
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// The network of installs that no network caused. Events of unknown devices have none.
const ORGANIC: &str = "organic";

pub(super) async fn check(evidence: &Evidence<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    let before = read(evidence).await;
    let mut expected = count(evidence);
    if let Err(error) = count_clicks(evidence, &mut expected) {
        violations.push(format!("clicks cannot be read: {error}"));
    }
    let networks: BTreeSet<_> = before.keys().chain(expected.keys()).collect();
    for network in networks {
        let found = before.get(network).copied().unwrap_or_default();
        let expected = expected.get(network).copied().unwrap_or_default();
        if comparable(found) != comparable(expected) {
            violations.push(format!(
                "{WRONG_SUM} of {network}: {found:?}, counted {expected:?}"
            ));
        }
    }
    check_rebuild(evidence, &mut violations).await;
    let after = read(evidence).await;
    if after != before {
        violations.push(format!(
            "{WRONG_SUM} after a rebuild: {after:?}, before {before:?}"
        ));
    }
    violations
}

/// Returns the figures without those that depend on the order of arrival.
fn comparable(figures: Figures) -> Figures {
    Figures {
        paying_devices: 0,
        ..figures
    }
}

/// Reads the live figures of the whole history by network.
async fn read(evidence: &Evidence<'_>) -> BTreeMap<String, Figures> {
    let reader = Authorized::operator(evidence.instance.organization);
    let app = AppId::parse(&evidence.instance.app).expect("an app id");
    let whole = (Timestamp::from_millis(0), Timestamp::from_millis(START * 2));
    let store = &evidence.node.store;
    let figures = store.figures_by_network(&reader, app, whole).await;
    let figures = figures.expect("the disk works").into_iter();
    figures
        .filter(|(_, figures)| *figures != Figures::default())
        .collect()
}

/// Counts the clicks.
fn count_clicks(
    evidence: &Evidence<'_>,
    counted: &mut BTreeMap<String, Figures>,
) -> Result<(), rusqlite::Error> {
    let connection = Connection::open(evidence.folder.join(DATABASE))?;
    let mut statement = connection.prepare("select network from clicks")?;
    let networks = statement.query_map((), |row| row.get::<_, Option<String>>(0))?;
    for network in networks {
        let network = network?.unwrap_or_else(|| ORGANIC.to_owned());
        counted.entry(network).or_default().clicks += 1;
    }
    Ok(())
}

/// Counts over the event log.
fn count(evidence: &Evidence<'_>) -> BTreeMap<String, Figures> {
    let mut counted: BTreeMap<String, Figures> = BTreeMap::new();
    let logs = evidence.logs.iter();
    for (_, log) in logs.filter(|(keys, _)| *keys == Keys::Live) {
        for event in log {
            let network = event["attribution"]["network"].as_str();
            let network = network.unwrap_or_default().to_owned();
            count_event(counted.entry(network).or_default(), event);
        }
    }
    counted
}

fn count_event(figures: &mut Figures, event: &Value) {
    if !event["duplicateOf"].is_null() {
        return;
    }
    let name = event["name"].as_str().unwrap_or_default();
    figures.events += 1;
    match name {
        "install" => {
            figures.installs += 1;
            let is_organic = event["attribution"]["network"] == ORGANIC;
            figures.organic_installs += i64::from(is_organic);
        }
        "sign_up" => figures.sign_ups += 1,
        "start_trial" => figures.trials += 1,
        "subscribe" => figures.subscriptions += 1,
        "purchase" => figures.purchases += 1,
        "renewal" => figures.renewals += 1,
        "refund" => figures.refunds += 1,
        _ => {}
    }
    let money = &event["revenue"];
    if money["counted"] == true {
        let usd = micros(&money["usd"]);
        if name == "refund" {
            figures.refunded_micros -= usd;
        } else {
            figures.revenue_micros += usd;
        }
    }
}

/// Rebuilds every day and checks that nothing had to be corrected.
async fn check_rebuild(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let store = &evidence.node.store;
    for day in store.rollup_days().await.expect("the disk works") {
        let report = store.rebuild_rollups(day).await.expect("the disk works");
        if report.corrected_rows > 0 {
            violations.push(format!(
                "{WRONG_SUM}: a rebuild of {day:?} corrected rows: {report:?}"
            ));
        }
    }
}
