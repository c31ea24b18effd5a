//! The jobs that wait for the writer: how many there are, and how long the first one has waited.

use crate::job::Job;
use crate::writer_thread::BATCH_JOBS_MAX;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tributary_store::waiting_line::is_overloaded;

/// Counts the waiting jobs.
#[derive(Default)]
pub(crate) struct WaitingLine(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    jobs: usize,
    /// No waiting job has waited longer than since then. `None` until a job has waited.
    since: Option<Instant>,
}

/// A job in the line.
pub(crate) struct QueuedJob {
    job: Box<dyn Job>,
    joined: Instant,
    line: Arc<WaitingLine>,
}

impl WaitingLine {
    /// Adds a job. Returns `None` if the line is too long or too slow.
    pub(crate) fn join(self: &Arc<Self>, job: Box<dyn Job>, joined: Instant) -> Option<QueuedJob> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first_waits = waiting
            .since
            .map(|since| joined.saturating_duration_since(since));
        if is_overloaded(
            waiting.jobs,
            BATCH_JOBS_MAX,
            first_waits.unwrap_or_default(),
        ) {
            return None;
        }
        if waiting.jobs == 0 {
            waiting.since = Some(joined);
        }
        waiting.jobs += 1;
        let line = Arc::clone(self);
        Some(QueuedJob { job, joined, line })
    }

    fn leave(&self, joined: Instant) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.jobs = waiting.jobs.saturating_sub(1);
        // Jobs leave in the order in which they joined, so the others joined later.
        waiting.since = waiting.since.max(Some(joined));
    }
}

impl QueuedJob {
    /// Takes the job out of the line.
    pub(crate) fn leave_line(self) -> Box<dyn Job> {
        self.line.leave(self.joined);
        self.job
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{CacheEffect, JobIsolation, new_job};
    use std::time::Duration;
    use tributary_store::waiting_line::QUEUE_WAIT_MAX;

    fn job() -> Box<dyn Job> {
        let kind = (JobIsolation::NoSavepoint, CacheEffect::Keeps);
        new_job("test", kind, |_| Ok(())).0
    }

    #[test]
    fn a_slow_line_rejects_newcomers_until_its_first_jobs_leave() {
        let line = Arc::new(WaitingLine::default());
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let mut waiting = Vec::new();
        for number in 0..BATCH_JOBS_MAX {
            let joined = at(u64::try_from(number).unwrap());
            waiting.push(line.join(job(), joined).unwrap());
        }
        let late = begin + QUEUE_WAIT_MAX + Duration::from_millis(100);
        assert!(line.join(job(), late).is_none());
        // The jobs of the first 200 ms leave, so the first one has waited for less than the limit.
        for queued in waiting.drain(..200) {
            queued.leave_line();
        }
        for _ in 0..200 {
            waiting.push(line.join(job(), late).unwrap());
        }
        assert_eq!(waiting.len(), BATCH_JOBS_MAX);
        assert!(line.join(job(), late).is_some());
    }

    #[test]
    fn a_line_that_was_empty_begins_anew() {
        let line = Arc::new(WaitingLine::default());
        let begin = Instant::now();
        line.join(job(), begin).unwrap().leave_line();
        let hours_later = begin + Duration::from_secs(10_000);
        for _ in 0..2 * BATCH_JOBS_MAX {
            assert!(line.join(job(), hours_later).is_some());
        }
    }
}
