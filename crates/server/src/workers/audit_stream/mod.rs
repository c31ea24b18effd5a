//! Streams audit entries to a file or a syslog server, each as one line of JSON.
//!
//! One node at a time leases a stream. Positions are stored after the lines are written, so nothing
//! is lost over a restart, and lines may come twice: their sequence numbers tell.

mod file;
mod syslog;

pub(super) use file::FileSink;
pub(super) use syslog::SyslogSink;

use super::periodic::{Worker, WorkerActivity};
use anyhow::Context as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::audit::stream::AuditStream;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_store::{ChainLines, Store, StoreResult};

/// How long a node has a stream. A part takes far less; if a node stops meanwhile, another one
/// continues after this time.
const LEASE: Duration = Duration::from_mins(1);
/// Entries per part: little memory, and a restart repeats at most this many.
const PART_ENTRIES: u32 = 200;
/// Organizations per run; the next run continues at once.
const ORGANIZATIONS_MAX: u32 = 50;

/// A place that entries are streamed to.
pub(super) trait AuditSink: Send + Sync + Clone + 'static {
    /// The stream whose positions belong to it.
    const STREAM: AuditStream;
    /// Name of the worker.
    const NAME: &'static str;

    /// Writes lines. Blocks. After an error, all of them are written again later.
    fn write(&self, lines: &[String]) -> io::Result<()>;
}

/// Streams to one sink.
pub(super) struct AuditStreamWorker<S> {
    store: Arc<dyn Store>,
    runtime: Runtime,
    sink: S,
}

impl<S: AuditSink> AuditStreamWorker<S> {
    pub(super) fn new(store: Arc<dyn Store>, runtime: Runtime, sink: S) -> Self {
        Self {
            store,
            runtime,
            sink,
        }
    }

    /// Streams one part of each organization that is behind. Returns whether more is due.
    async fn stream(&self) -> anyhow::Result<WorkerActivity> {
        let mut activity = WorkerActivity::Done;
        for (organization, sent) in self.backlog().await? {
            if self.stream_part(organization, sent).await? {
                activity = WorkerActivity::More;
            }
        }
        Ok(activity)
    }

    async fn backlog(&self) -> StoreResult<Vec<(OrganizationId, u64)>> {
        let limit = ORGANIZATIONS_MAX;
        self.store.audit_stream_backlog(S::STREAM, limit).await
    }

    /// Streams the next part of an organization. Returns false if there was none: someone removed
    /// the last entries of the chain.
    async fn stream_part(&self, organization: OrganizationId, sent: u64) -> anyhow::Result<bool> {
        let mut lines = ChainLines::after(organization, sent);
        let part = lines.next(&*self.store, PART_ENTRIES).await?;
        let part = part.context("the chain of an organization is missing")?;
        if part.last <= sent {
            return Ok(false);
        }
        let (sink, lines) = (self.sink.clone(), part.lines);
        let written = tokio::task::spawn_blocking(move || sink.write(&lines)).await;
        written?.context("cannot write audit entries")?;
        let noted = self.store.note_streamed(S::STREAM, organization, part.last);
        noted.await?;
        Ok(true)
    }
}

impl<S: AuditSink> Worker for AuditStreamWorker<S> {
    const NAME: &'static str = S::NAME;
    const PERIOD: Duration = Duration::from_secs(5);
    const DRAIN: Duration = Duration::from_secs(5);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        if self.backlog().await?.is_empty() {
            return Ok(WorkerActivity::Idle);
        }
        let now = self.runtime.now();
        let until = now.plus(LEASE);
        if !self.store.lease_audit_stream(S::STREAM, now, until).await? {
            return Ok(WorkerActivity::Idle);
        }
        let streamed = self.stream().await;
        self.store.release_audit_stream(S::STREAM).await?;
        streamed
    }
}

#[cfg(test)]
mod tests;
