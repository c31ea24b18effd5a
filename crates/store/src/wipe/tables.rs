//! What a wipe of an app's test data does with each table.
//!
//! A test compares the list with the schemas of both engines, so that a new table with data of apps
//! is wiped, or is kept with a reason.

/// A table with rows of apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppTableWipe {
    /// Table.
    pub name: &'static str,
    /// What a wipe does with its rows.
    pub rows: WipeScope,
}

/// Which rows of a table a wipe removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WipeScope {
    /// Rows of the test environment.
    Test,
    /// The table has no environment, but its rows are merged into tables that are wiped.
    Merged,
    /// None, for this reason.
    Kept(&'static str),
}

use WipeScope::{Kept, Merged, Test};

const fn table(name: &'static str, rows: WipeScope) -> AppTableWipe {
    AppTableWipe { name, rows }
}

/// Reason for tables with settings.
const SETTINGS: &str = "settings, which both environments share";
/// Reason for tables of the delivery queues.
const NEVER_SENT: &str = "test events are never sent, so there are no deliveries of them";
/// Reason for tables with Apple's postbacks.
const POSTBACKS: &str = "postbacks are live data; Apple does not say which key a device used";
/// Reason for tables of workers that compute figures from earlier data.
const PROGRESS: &str = "the progress of a worker through the data of both environments";
/// Reason for tables of the traffic checks.
const TRAFFIC: &str = "traffic is checked in live data only";

/// All tables with rows of apps.
pub const WIPE_TABLES: &[AppTableWipe] = &[
    table("ad_services_tokens", Test),
    table("alert_secrets", Kept(SETTINGS)),
    table(
        "alerts",
        Kept("messages about integrations and live traffic"),
    ),
    table("app_secrets", Kept(SETTINGS)),
    table("app_store_claims", Kept(SETTINGS)),
    table("app_store_ids", Kept(SETTINGS)),
    table("apps", Kept(SETTINGS)),
    table(
        "audit_log",
        Kept("it records what members did, with the wipe itself"),
    ),
    table("billing_days", Test),
    table("billing_keys", Test),
    table("clicks", Test),
    table("cohort_devices", Test),
    table("cost_sources", Kept(SETTINGS)),
    table("costs", Kept("costs are live data")),
    table("deliveries", Kept(NEVER_SENT)),
    table("delivery_hours", Kept(NEVER_SENT)),
    table("devices", Test),
    table(
        "due_work",
        Kept("hints for workers, which look again before they act"),
    ),
    table("erase_tokens", Test),
    table("event_keys", Test),
    table("events", Test),
    table("identities", Test),
    table("integrations", Kept(SETTINGS)),
    table(
        "known_values",
        Kept("values that the settings mention, and ad costs"),
    ),
    table("link_domains", Kept(SETTINGS)),
    table("link_slugs", Kept(SETTINGS)),
    table("links", Kept(SETTINGS)),
    table("notice_messages", Kept("messages about live data")),
    table("notices", Kept(SETTINGS)),
    table("notifications", Test),
    table("outbox", Kept(NEVER_SENT)),
    table("payer_history", Kept(PROGRESS)),
    table("pivot_history", Kept(PROGRESS)),
    table("postback_counts", Kept(POSTBACKS)),
    table("postback_keys", Kept(POSTBACKS)),
    table("postbacks", Kept(POSTBACKS)),
    table("queue_parts", Kept(NEVER_SENT)),
    table("queues", Kept(NEVER_SENT)),
    // Only web events have refunds with a bound, and test keys cannot send web events.
    table(
        "refunded_payments",
        Kept("sums of refunds of web payments, which are live"),
    ),
    table("rollup_campaigns", Test),
    table("rollup_cohort_places", Test),
    table("rollup_cohorts", Test),
    table("rollup_credits", Test),
    table("rollup_increments", Merged),
    table("rollup_names", Test),
    table("rollup_networks", Test),
    table("rollup_pivots", Test),
    table("rollup_places", Test),
    table("rollup_values", Test),
    table(
        "saved_views",
        Kept("views that members saved, of either environment"),
    ),
    table("sdk_keys", Kept(SETTINGS)),
    table(
        "share_links",
        Kept("links that members shared; they show what is left"),
    ),
    table("skan_configurations", Kept(SETTINGS)),
    table("skan_versions", Kept(SETTINGS)),
    table("status_checks", Kept(NEVER_SENT)),
    table("traffic_anomalies", Kept(TRAFFIC)),
    table("traffic_checks", Kept(TRAFFIC)),
    table("traffic_peaks", Kept(TRAFFIC)),
    // Test trials are not held, because no network receives them. `hold_trial` is called for live
    // notifications only.
    table("trials", Kept("trials are held in live data only")),
    table("user_links", Test),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_listed_once() {
        let names = WIPE_TABLES.iter().map(|table| table.name);
        assert!(names.is_sorted_by(|one, next| one < next));
    }
}
