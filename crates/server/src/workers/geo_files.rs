//! Reloads changed GeoIP files: the country database and the relay ranges.

use super::periodic::{Worker, WorkerActivity};
use crate::geo::GeoFiles;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::node_role::NodeRole;

/// Reloads changed files.
pub(super) struct GeoFilesWorker {
    geo: Arc<GeoFiles>,
}

impl GeoFilesWorker {
    pub(super) const fn new(geo: Arc<GeoFiles>) -> Self {
        Self { geo }
    }
}

impl Worker for GeoFilesWorker {
    const NAME: &'static str = "places";
    const PERIOD: Duration = Duration::from_mins(1);
    /// Only taps and the SDK's requests need a location.
    const ROLE: NodeRole = NodeRole::Accept;

    /// File errors are logged once when the file is read, and do not count as worker failures.
    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let geo = self.geo.clone();
        let span = tracing::Span::current();
        let refresh = move || span.in_scope(|| geo.refresh());
        let is_new = tokio::task::spawn_blocking(refresh).await?;
        Ok(if is_new {
            WorkerActivity::Done
        } else {
            WorkerActivity::Idle
        })
    }
}
