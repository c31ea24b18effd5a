//! Removes data past its retention period: clicks' addresses and user agents, clicks without
//! installs, finished deliveries, postbacks, bodies of billing notifications, inactive devices'
//! attribution data, and old audit entries. Before that, it assigns unclaimed postbacks to apps
//! that were added since. Large tables lose whole partitions (`maintain_partitions`).
//!
//! The worker uses small transactions, so that recording a click does not wait for the removal of a
//! whole month of data.

use super::periodic::{Worker, WorkerActivity};
use crate::config::RetentionConfig;
use crate::metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tributary_domain::partitioning::{addresses_cutoff, single_rows_cutoff};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{LargeTable, PartitionReport, Store, StoreResult};

/// Rows per transaction.
const BATCH: u32 = 500;
/// Devices examined per transaction; each takes several statements.
const DEVICE_BATCH: u32 = 50;
/// Pause between batches, for other writers.
const BATCH_PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of batches per table and run: five million rows. The next run continues.
const BATCHES_MAX: u32 = 10_000;

/// Removes data past its retention period.
pub(super) struct RetentionWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
    settings: RetentionConfig,
}

impl RetentionWorker {
    pub(super) fn new(store: Arc<dyn Store>, runtime: Runtime, settings: RetentionConfig) -> Self {
        Self {
            store,
            runtime,
            settings,
        }
    }

    fn cutoff(&self, age: Duration) -> Timestamp {
        let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.runtime.now().as_millis().saturating_sub(millis))
    }

    /// Removes old clicks, and addresses of clicks, devices and claims. Returns the numbers of
    /// clicks and addresses.
    async fn forget_clicks(&self, partitions: PartitionReport) -> StoreResult<(u64, u64)> {
        let (store, now) = (&self.store, self.runtime.now());
        let (kept, addresses) = (self.settings.clicks, self.settings.click_addresses);
        let is_partitioned = partitions.is_partitioned;
        // Remove clicks first: removed clicks need no anonymisation.
        let before = single_rows_cutoff(now, kept, is_partitioned);
        let removed = run_batches(BATCH, || store.remove_clicks(before, BATCH)).await?;
        let compacted_until = partitions.compacted_until;
        let before = addresses_cutoff(now, addresses, kept, is_partitioned, compacted_until);
        // Devices and claims are not partitioned, so they do not wait.
        let devices_before = self.cutoff(addresses);
        let forget = || store.forget_addresses(before, devices_before, BATCH);
        let emptied = run_batches(BATCH, forget).await?;
        Ok((removed + partitions.removed_rows, emptied))
    }
}

impl Worker for RetentionWorker {
    const NAME: &'static str = "retention";
    const PERIOD: Duration = Duration::from_hours(1);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let store = &self.store;
        let now = self.runtime.now();
        let kept = self.settings.clicks;
        // An error is reported at the end.
        let maintained_clicks = store
            .maintain_partitions(LargeTable::Clicks, now, kept)
            .await;
        let of_clicks = known_partitions(&maintained_clicks);
        let (removed, emptied) = self.forget_clicks(of_clicks).await?;
        let kept = self.settings.deliveries;
        let maintained_deliveries = store
            .maintain_partitions(LargeTable::Deliveries, now, kept)
            .await;
        let of_deliveries = known_partitions(&maintained_deliveries);
        let before = single_rows_cutoff(now, kept, of_deliveries.is_partitioned);
        let deliveries = run_batches(BATCH, || store.remove_deliveries(before, BATCH)).await?
            + of_deliveries.removed_rows;
        let claimed = run_batches(BATCH, || store.claim_postbacks(BATCH)).await?;
        let before = self.cutoff(self.settings.postbacks);
        let mut postbacks = run_batches(BATCH, || store.remove_postbacks(before, BATCH)).await?;
        let before = self.cutoff(self.settings.unclaimed_postbacks);
        postbacks += run_batches(BATCH, || store.remove_unclaimed_postbacks(before, BATCH)).await?;
        let before = self.cutoff(self.settings.notifications);
        let notifications =
            run_batches(BATCH, || store.forget_notifications(before, BATCH)).await?;
        let before = self.cutoff(self.settings.audit);
        let audit_entries =
            run_batches(BATCH, || store.remove_audit_entries(before, now, BATCH)).await?;
        let before = self.cutoff(self.settings.attributions);
        let attributions = AtomicU64::new(0);
        run_batches(DEVICE_BATCH, || async {
            let sweep = store.forget_attributions(before, DEVICE_BATCH).await?;
            attributions.fetch_add(sweep.forgotten, Ordering::Relaxed);
            Ok(sweep.examined)
        })
        .await?;
        let attributions = attributions.into_inner();
        metrics::count_removed_rows("attributions", attributions);
        metrics::count_removed_rows("audit_entries", audit_entries);
        metrics::count_removed_rows("notifications", notifications);
        metrics::count_removed_rows("postbacks", postbacks);
        metrics::count_removed_rows("clicks", removed);
        metrics::count_removed_rows("click_addresses", emptied);
        metrics::count_removed_rows("deliveries", deliveries);
        let forgotten = removed
            + emptied
            + deliveries
            + postbacks
            + notifications
            + audit_entries
            + attributions;
        let created = maintained_clicks?.created + maintained_deliveries?.created;
        let dropped = of_clicks.dropped + of_deliveries.dropped;
        if forgotten + claimed + created + dropped == 0 {
            return Ok(WorkerActivity::Idle);
        }
        tracing::info!(
            clicks = removed,
            click_addresses = emptied,
            deliveries,
            postbacks,
            postbacks_claimed = claimed,
            notifications,
            audit_entries,
            attributions,
            partitions_created = created,
            partitions_dropped = dropped,
            "applied retention periods"
        );
        Ok(WorkerActivity::Done)
    }
}

/// Returns the state of a table's partitions. If it is unknown, rows wait as if the table had some:
/// removing a large table's rows one by one would cost more than waiting for the next run.
fn known_partitions(maintained: &StoreResult<PartitionReport>) -> PartitionReport {
    maintained.as_ref().copied().unwrap_or(PartitionReport {
        is_partitioned: true,
        ..PartitionReport::default()
    })
}

/// Runs batches until one has fewer than `limit` rows, but at most [`BATCHES_MAX`]. Returns the
/// total.
async fn run_batches<F>(limit: u32, mut batch: impl FnMut() -> F) -> StoreResult<u64>
where
    F: Future<Output = StoreResult<u64>>,
{
    let mut sum = 0;
    for _ in 0..BATCHES_MAX {
        let count = batch().await?;
        sum += count;
        if count < u64::from(limit) {
            break;
        }
        tokio::time::sleep(BATCH_PAUSE).await;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, ManualClock};
    use metrics_exporter_prometheus::PrometheusBuilder;
    use rstest::rstest;
    use tributary_store::StoreError;
    use tributary_store::contract::fixtures::{at, join_all};
    use tributary_store::contract::sdk_fixtures::{Tenant, tenant};

    /// In seconds.
    const DAY: i64 = 24 * 60 * 60;
    /// Time of the worker's run, in seconds.
    const NOW: i64 = 31 * DAY;
    /// A limit above the number of rows.
    const ALL: u32 = 10_000;

    /// Records clicks with this age, in seconds.
    async fn clicks(tenant: &Tenant, count: usize, age: i64) {
        let click = |_| tenant.store.record_click(tenant.click(NOW - age));
        for recorded in join_all((0..count).map(click).collect()).await {
            recorded.unwrap();
        }
    }

    #[rstest]
    #[case::nothing(0, 0, WorkerActivity::Idle, 1, 1)]
    #[case::one(1, 1, WorkerActivity::Done, 1, 1)]
    #[case::a_full_batch_is_followed_by_another(500, 500, WorkerActivity::Done, 2, 2)]
    #[case::several(1_201, 0, WorkerActivity::Done, 3, 1)]
    #[tokio::test]
    async fn runs_batches_until_nothing_is_left(
        #[case] too_old: usize,
        #[case] with_old_addresses: usize,
        #[case] expected: WorkerActivity,
        #[case] removals: u32,
        #[case] emptyings: u32,
    ) {
        let (store, _folder) = testing::store().await;
        let tenant = tenant(&store).await;
        clicks(&tenant, too_old, 30 * DAY + 1).await;
        clicks(&tenant, with_old_addresses, 30 * DAY).await;
        clicks(&tenant, 1, 7 * DAY).await;
        let settings = RetentionConfig {
            click_addresses: Duration::from_hours(7 * 24),
            clicks: Duration::from_hours(30 * 24),
            deliveries: Duration::from_hours(30 * 24),
            postbacks: Duration::from_hours(90 * 24),
            unclaimed_postbacks: Duration::from_hours(30 * 24),
            notifications: Duration::from_hours(30 * 24),
            audit: Duration::from_hours(365 * 24),
            attributions: Duration::from_hours(400 * 24),
        };
        let runtime = ManualClock::at(at(NOW)).runtime();
        let mut worker = RetentionWorker::new(store.clone(), runtime, settings);
        let recorder = PrometheusBuilder::new().build_recorder();
        let recording = ::metrics::set_default_local_recorder(&recorder);
        assert_eq!(worker.run_once().await.unwrap(), expected);
        drop(recording);

        let metrics = recorder.handle().render();
        let transactions = |name: &str, count: u32| {
            let series = format!("tributary_store_transactions_total{{name=\"{name}\"");
            format!("{series},outcome=\"ok\"}} {count}\n")
        };
        let forgotten = |what: &str, count: usize| {
            format!("tributary_retention_total{{what=\"{what}\"}} {count}\n")
        };
        for line in [
            transactions("remove_clicks", removals),
            transactions("forget_addresses", emptyings),
            forgotten("clicks", too_old),
            forgotten("click_addresses", with_old_addresses),
        ] {
            assert!(metrics.contains(&line), "{line} is missing in {metrics}");
        }
        let end = at(NOW + 1);
        let left = store.forget_addresses(end, end, ALL).await.unwrap();
        assert_eq!(left, 1, "the recent click keeps its address");
        let left = store.remove_clicks(end, ALL).await.unwrap();
        assert_eq!(
            left,
            with_old_addresses as u64 + 1,
            "only old clicks are removed"
        );
    }

    #[test]
    fn rows_wait_for_partitions_that_cannot_be_maintained() {
        let error = StoreError::unavailable("maintain_partitions", "no connection");
        assert!(known_partitions(&Err(error)).is_partitioned);
        let report = PartitionReport::default();
        assert!(!known_partitions(&Ok(report)).is_partitioned);
    }

    #[tokio::test(start_paused = true)]
    async fn stops_after_the_maximum_number_of_batches() {
        let endless = || async { Ok(u64::from(BATCH)) };
        assert_eq!(run_batches(BATCH, endless).await.unwrap(), 5_000_000);
    }
}
