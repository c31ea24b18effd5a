//! Steps the adapter's loops on the caller's thread, for tests that repeat every step.
//!
//! A job waits in the queue until the test steps the writer. Commits, answers and checkpoints run
//! through the same code as on the threads; reads run inside the call that submits them.

use crate::checkpoints::Checkpointer;
use crate::waiting_line::QueuedJob;
use crate::writer_thread::{WriterConnection, WriterThread, run_jobs, take_batch};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// When the writer answers a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerTime {
    /// After the commit.
    AfterCommit,
    /// Before the commit, which follows at the next step. Counter-tests must find this error.
    BeforeCommit,
}

/// The loops of a store that a test steps.
#[derive(Clone)]
pub struct SqliteSteps(pub(crate) Arc<Mutex<Option<SteppedLoops>>>);

/// The writer's and the checkpointer's state, and the queue.
pub(crate) struct SteppedLoops {
    pub(crate) writer: WriterThread,
    pub(crate) jobs: mpsc::UnboundedReceiver<QueuedJob>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) answer_time: AnswerTime,
}

impl SqliteSteps {
    /// Returns how many jobs are queued.
    pub fn queued_jobs(&self) -> usize {
        self.with_loops(|loops| loops.jobs.len())
    }

    /// Commits and answers the queued jobs in one batch. Returns how many jobs were queued.
    pub fn step_writer(&self) -> usize {
        self.with_loops(SteppedLoops::step_writer)
    }

    /// Runs the checkpoint that the writer requested, and the truncation that an erasure requested.
    pub fn step_checkpointer(&self) {
        self.with_loops(|loops| loops.checkpointer.serve_queued());
    }

    /// Sets when the writer answers.
    pub fn set_answer_time(&self, answer_time: AnswerTime) {
        self.with_loops(|loops| loops.answer_time = answer_time);
    }

    /// Runs `work` unless the store is closed.
    fn with_loops<T: Default>(&self, work: impl FnOnce(&mut SteppedLoops) -> T) -> T {
        let mut loops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loops.as_mut().map(work).unwrap_or_default()
    }

    /// Commits the queued jobs and closes the write connection.
    pub(crate) fn close(&self) {
        let loops = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut loops) = loops else { return };
        while loops.step_writer() > 0 {}
        loops.writer.close();
    }
}

impl SteppedLoops {
    fn step_writer(&mut self) -> usize {
        let queued = self.jobs.len();
        match self.answer_time {
            AnswerTime::AfterCommit => {
                if let Ok(first) = self.jobs.try_recv() {
                    self.writer.commit_queued(first, &mut self.jobs);
                }
            }
            AnswerTime::BeforeCommit => self.answer_before_commit(),
        }
        queued
    }

    /// Commits the transaction of the previous step, then runs and answers the queued jobs.
    fn answer_before_commit(&mut self) {
        let Some(open) = self.writer.take_connection() else {
            return;
        };
        let WriterConnection {
            connection, cache, ..
        } = &open;
        let commit = || connection.is_autocommit() || connection.execute_batch("commit").is_ok();
        if !commit() {
            return;
        }
        if let Ok(first) = self.jobs.try_recv() {
            let mut batch = take_batch(first, &mut self.jobs);
            let done = run_jobs(connection, cache, &mut batch).is_ok();
            self.writer.answer(batch, done);
            if !done {
                return;
            }
        }
        self.writer.open = Some(open);
    }
}
