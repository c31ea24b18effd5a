//! Looks at due notices and sends their messages.

use super::periodic::{Worker, WorkerActivity};
use crate::mail::SEND_MAX;
use crate::notices::NoticeService;
use std::time::Duration;

/// Looks at due notices and sends their messages.
pub(super) struct NoticesWorker {
    service: NoticeService,
}

impl NoticesWorker {
    pub(super) const fn new(service: NoticeService) -> Self {
        Self { service }
    }
}

impl Worker for NoticesWorker {
    const NAME: &'static str = "notices";
    const PERIOD: Duration = Duration::from_secs(10);
    const DRAIN: Duration = SEND_MAX;

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        // Messages are sent even if no notice can be looked at.
        let has_checked = self.service.check_due().await;
        let has_sent = self.service.send_due().await;
        let (has_checked, has_sent) = (has_checked?, has_sent?);
        Ok(if has_checked || has_sent {
            WorkerActivity::More
        } else {
            WorkerActivity::Idle
        })
    }
}
