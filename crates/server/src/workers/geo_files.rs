//! Notices new files of places: the country database and the ranges of relays.

use super::periodic::{Worker, WorkerActivity};
use crate::geo::GeoFiles;
use std::sync::Arc;
use std::time::Duration;

/// Looks at the files.
pub(super) struct GeoFilesWorker {
    geo: Arc<GeoFiles>,
}

impl GeoFilesWorker {
    pub(super) const fn new(places: Arc<GeoFiles>) -> Self {
        Self { geo: places }
    }
}

impl Worker for GeoFilesWorker {
    const NAME: &'static str = "places";
    const PERIOD: Duration = Duration::from_mins(1);

    /// What is wrong with a file is told once, by whoever reads it; that is no failure of the worker.
    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let places = self.geo.clone();
        let span = tracing::Span::current();
        let refresh = move || span.in_scope(|| places.refresh());
        let is_new = tokio::task::spawn_blocking(refresh).await?;
        Ok(if is_new {
            WorkerActivity::Done
        } else {
            WorkerActivity::Idle
        })
    }
}
