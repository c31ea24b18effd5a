//! Divides the database connections into shares.
//!
//! A report may take seconds, and many may run at once. Each kind of caller has its own share of
//! the connections, so that slow reports delay neither the public endpoints nor the forwarder. This
//! module decides which transaction belongs to which share.

/// A kind of caller with its own share of the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionShare {
    /// Public endpoints (redirects, SDK, web events, webhooks, postbacks), sign-in, and changes to
    /// settings.
    Public,
    /// The forwarder and the other workers.
    Worker,
    /// Reports, logs, exports and dashboard figures.
    Report,
}

/// Transactions run by the forwarder, the other workers and commands.
const WORKER: &[&str] = &[
    "apps_to_fill",
    "apps_without_payers",
    "begin_sending",
    "busiest_addresses",
    "check_workers",
    "claim_postbacks",
    "collect_statistics",
    "due_deliveries",
    "due_kinds",
    "due_queues",
    "due_status_checks",
    "expire_deliveries",
    "fill_payers",
    "fill_pivots",
    "find_down_apps",
    "find_due_work",
    "find_increments",
    "find_new_tables",
    "forget_addresses",
    "forget_attributions",
    "forget_notifications",
    "gather_conversions",
    "import_events",
    "import_rates",
    "latest_rates",
    "lease_ad_services_tokens",
    "lease_alerts",
    "lease_cost_source",
    "lease_messages",
    "lease_notices",
    "lease_queue",
    "merge_increments",
    "prepare_pivots",
    "queue_alert_messages",
    "raise_alert_everywhere",
    "rebuild_rollups",
    "record_checked_hour",
    "release_queue",
    "remove_audit_entries",
    "remove_clicks",
    "remove_deliveries",
    "remove_postbacks",
    "remove_unclaimed_postbacks",
    "renew_lease",
    "reserve_turns",
    "rollup_days",
    "search_due_work",
    "settle_ad_services_token",
    "settle_alert",
    "settle_cost_source",
    "settle_deliveries",
    "settle_message",
    "settle_notice",
    "settle_status_check",
    "settle_trials",
    "store_due_work",
    "store_imported_costs",
    "take_increments",
    "traffic_history",
    "unchecked_apps",
    "update_due_work",
    "wipe_test_data",
    "wipe_test_figures",
];

/// Transactions of commands that work on all rows of a day, which may be millions. Their statements
/// have the usual time limit, the transaction a longer one.
pub const LONG: &[&str] = &["rebuild_rollups", "wipe_test_figures"];

/// Transactions that read many rows for a caller. They have a time limit.
pub const REPORT: &[&str] = &[
    "audit_log",
    "audited_changes",
    "billing_figures",
    "campaign_names",
    "click_breakdown",
    "cohorts",
    "cost_sums",
    "costs",
    "deliveries",
    "deliveries_of",
    "delivery_health",
    "device",
    "events",
    "held_installs",
    "integration_health",
    "log_clicks",
    "log_events",
    "payers_complete_from",
    "person_chains",
    "person_events",
    "person_records",
    "person_subscription",
    "pivots_complete_from",
    "postback_stats",
    "postbacks",
    "replay_part",
    "replay_span",
    "skan_meanings",
    "stats",
    "totals",
    "traffic_anomalies",
    "undelivered",
];

/// Reads that a standby may answer while the primary is unreachable: authentication, and what the
/// pages of reports need besides their figures. Nothing can be changed meanwhile.
pub const DURING_OUTAGE: &[&str] = &[
    "app",
    "app_names",
    "app_timezone",
    "apps",
    "cost_sources",
    "delivery",
    "integrations",
    "key_by_digest",
    "link",
    "link_labels",
    "link_names",
    "links",
    "session",
    "share",
    "skan",
    "skan_versions",
    "views",
];

impl ConnectionShare {
    /// Returns the share of a transaction by its name. Unlisted transactions belong to the public
    /// share, so that a new transaction never waits behind reports by mistake.
    pub fn of(transaction: &str) -> Self {
        if WORKER.contains(&transaction) {
            Self::Worker
        } else if REPORT.contains(&transaction) {
            Self::Report
        } else {
            Self::Public
        }
    }
}

/// Number of connections per share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionShares {
    /// Connections for [`ConnectionShare::Public`].
    pub public: usize,
    /// Connections for [`ConnectionShare::Worker`].
    pub worker: usize,
    /// Connections for [`ConnectionShare::Report`].
    pub report: usize,
}

/// Minimum number of connections that are divided. If there are fewer, every share may use all of
/// them.
const DIVIDED_MIN: usize = 3;

impl ConnectionShares {
    /// Divides the connections. Workers and reports get the requested numbers, at most a third
    /// each; the public endpoints get the rest. Fewer than three connections are not divided.
    pub fn divide(connections: usize, worker: usize, report: usize) -> Self {
        if connections < DIVIDED_MIN {
            return Self {
                public: connections,
                worker: connections,
                report: connections,
            };
        }
        let third = connections / DIVIDED_MIN;
        let (worker, report) = (worker.clamp(1, third), report.clamp(1, third));
        Self {
            public: connections - worker - report,
            worker,
            report,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigns_transactions_to_shares() {
        for (transaction, expected) in [
            ("accept_sdk_events", ConnectionShare::Public),
            ("tracking_link", ConnectionShare::Public),
            ("key_by_digest", ConnectionShare::Public),
            ("commit_probe", ConnectionShare::Public),
            ("gather_conversions", ConnectionShare::Worker),
            ("remove_clicks", ConnectionShare::Worker),
            ("stats", ConnectionShare::Report),
            ("log_events", ConnectionShare::Report),
        ] {
            assert_eq!(ConnectionShare::of(transaction), expected, "{transaction}");
        }
    }

    #[test]
    fn no_transaction_has_two_shares() {
        assert!(WORKER.is_sorted() && REPORT.is_sorted());
        assert!(WORKER.iter().all(|name| !REPORT.contains(name)));
        assert!(LONG.iter().all(|name| WORKER.contains(name)));
        let is_public = |name: &&str| ConnectionShare::of(name) == ConnectionShare::Public;
        assert!(DURING_OUTAGE.is_sorted() && DURING_OUTAGE.iter().all(is_public));
    }

    #[test]
    fn divides_connections_between_shares() {
        for (connections, worker, report, expected) in [
            (10, 2, 3, (5, 2, 3)),
            (10, 9, 9, (4, 3, 3)),
            (10, 0, 0, (8, 1, 1)),
            (3, 2, 3, (1, 1, 1)),
            (2, 2, 3, (2, 2, 2)),
            (1, 2, 3, (1, 1, 1)),
        ] {
            let shares = ConnectionShares::divide(connections, worker, report);
            let found = (shares.public, shares.worker, shares.report);
            assert_eq!(found, expected, "{connections} {worker} {report}");
        }
    }
}
