//! Notices new files of places: the country database and the ranges of relays.

use super::periodic::{Activity, Worker};
use crate::place::Places;
use std::sync::Arc;
use std::time::Duration;

/// Looks at the files.
pub(super) struct PlacesWorker {
    places: Arc<Places>,
}

impl PlacesWorker {
    pub(super) const fn new(places: Arc<Places>) -> Self {
        Self { places }
    }
}

impl Worker for PlacesWorker {
    const NAME: &'static str = "places";
    const PERIOD: Duration = Duration::from_mins(1);

    /// What is wrong with a file is told once, by whoever reads it; that is no failure of the worker.
    async fn activate(&mut self) -> anyhow::Result<Activity> {
        let places = self.places.clone();
        let span = tracing::Span::current();
        let refresh = move || span.in_scope(|| places.refresh());
        let is_new = tokio::task::spawn_blocking(refresh).await?;
        Ok(if is_new {
            Activity::Done
        } else {
            Activity::Idle
        })
    }
}
