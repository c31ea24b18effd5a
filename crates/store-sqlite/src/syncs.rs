//! Syncing the log beside the writer.
//!
//! Were it part of the commit, nothing could be written while the disk is at it. So a commit leaves it out, a thread of
//! its own syncs, and the writer goes on with the next batch meanwhile. Nothing else changes: a batch is answered after
//! a sync that began when all of it was in the log, one sync serves whatever was committed before it began, and the
//! order of batches is the order of answers, so that nobody hears of what rests on something that may still be lost.
//!
//! A sync that failed is never tried again: the operating system may have dropped the data and forgotten the error.
//! Everybody whose batch it was to serve is told that the outcome is unknown, and so is everybody after them until
//! the writer has brought the log's pages home through a connection of its own; see `writer`.

use crate::job::Job;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use tokio::runtime::Handle;

/// Batches that may wait for the sync that is under way to end. With more the writer would be ahead of a slow disk by
/// many small batches, instead of gathering one large one.
const BATCHES_WAITING_MAX: usize = 1;

/// The log of one connection that writes. It is the same file for as long as the connection is open.
pub(crate) struct Log {
    path: PathBuf,
    /// There is none before the first commit.
    file: OnceLock<File>,
    failed: AtomicBool,
}

impl Log {
    /// The log of a database.
    pub(crate) fn of(database: &Path) -> Arc<Self> {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Arc::new(Self {
            path: path.into(),
            file: OnceLock::new(),
            failed: AtomicBool::new(false),
        })
    }

    /// Whether a sync failed: then nothing that is committed to it lasts for certain.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    fn file(&self) -> std::io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        // Some systems sync only what may be written.
        let opened = OpenOptions::new().read(true).write(true).open(&self.path)?;
        Ok(self.file.get_or_init(|| opened))
    }

    /// Whether everything that is in it lasts. What was there when it was opened may be of a process that was killed
    /// before it could sync: the first time counts as a change.
    fn lasts(&self, changed: bool) -> bool {
        if self.has_failed() {
            return false;
        }
        if !changed && self.file.get().is_some() {
            return true;
        }
        let synced = self.file().and_then(File::sync_data);
        if let Err(error) = &synced {
            tracing::error!(%error, "the database's log could not be synced");
            self.failed.store(true, Ordering::SeqCst);
        }
        synced.is_ok()
    }
}

/// A batch that is committed, and may be lost until its log is synced.
pub(crate) struct Committed {
    pub(crate) jobs: Vec<Box<dyn Job>>,
    pub(crate) log: Arc<Log>,
    /// Whether it changed anything. If not, what came before it is synced, and that will do.
    pub(crate) changed: bool,
}

/// A handle to the thread that syncs and answers.
pub(crate) struct Syncs {
    inbox: SyncSender<Committed>,
    thread: JoinHandle<()>,
}

impl Syncs {
    /// Starts the thread.
    pub(crate) fn start(runtime: Option<Handle>) -> std::io::Result<Self> {
        let (inbox, batches) = sync_channel(BATCHES_WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("sqlite-syncs".to_owned())
            .spawn(move || sync_batches(&batches, runtime.as_ref()))?;
        Ok(Self { inbox, thread })
    }

    /// Hands a batch over, which is answered once it lasts.
    pub(crate) fn hand_over(&self, committed: Committed) {
        if let Err(refused) = self.inbox.send(committed) {
            tracing::error!("the thread that syncs has ended");
            answer(None, refused.0.jobs, false);
        }
    }

    /// Answers whoever is waiting and ends the thread.
    pub(crate) fn close(self) {
        drop(self.inbox);
        if self.thread.join().is_err() {
            tracing::error!("the thread that syncs did not end as it should");
        }
    }
}

fn sync_batches(batches: &Receiver<Committed>, runtime: Option<&Handle>) {
    while let Ok(first) = batches.recv() {
        let mut together = vec![first];
        together.extend(batches.try_iter());
        let mut outcomes = Vec::with_capacity(together.len());
        // A connection that was opened anew has a log of its own.
        for same in together.chunk_by(|one, next| Arc::ptr_eq(&one.log, &next.log)) {
            let log = &same[0].log;
            let changed = same.iter().any(|batch| batch.changed);
            let lasts = log.lasts(changed);
            outcomes.resize(outcomes.len() + same.len(), lasts);
        }
        for (batch, lasts) in together.into_iter().zip(outcomes) {
            answer(runtime, batch.jobs, lasts);
        }
    }
}

/// Answers everybody: from a worker of the runtime, where there is one. To wake somebody up costs a worker next to
/// nothing, and this thread a call of the operating system for each.
pub(crate) fn answer(runtime: Option<&Handle>, jobs: Vec<Box<dyn Job>>, lasts: bool) {
    let answer_all = move || {
        for job in jobs {
            job.answer(lasts);
        }
    };
    match runtime {
        Some(runtime) => drop(runtime.spawn(async move { answer_all() })),
        None => answer_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::job::Undo;
    use std::sync::mpsc::Sender;

    /// Says by its number what it was answered.
    struct Told(u32, Sender<(u32, bool)>);

    impl Job for Told {
        fn undo(&self) -> Undo {
            Undo::Nothing
        }
        fn run(&mut self, _: &Batch<'_>) -> bool {
            true
        }
        fn answer(self: Box<Self>, lasts: bool) {
            self.1.send((self.0, lasts)).unwrap();
        }
    }

    /// Hands batches over, each of one job, and gives what they were answered.
    fn answers(batches: &[(&Arc<Log>, bool)]) -> Vec<(u32, bool)> {
        let (told, heard) = std::sync::mpsc::channel();
        let syncs = Syncs::start(None).unwrap();
        for (number, (log, changed)) in (1..).zip(batches) {
            syncs.hand_over(Committed {
                jobs: vec![Box::new(Told(number, told.clone()))],
                log: (*log).clone(),
                changed: *changed,
            });
        }
        syncs.close();
        drop(told);
        heard.iter().collect()
    }

    #[test]
    fn everybody_is_answered_in_order_once_the_log_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.db-wal"), "frames").unwrap();
        let log = Log::of(&folder.path().join("x.db"));
        let batches = [(&log, true), (&log, false), (&log, true)];
        assert_eq!(answers(&batches), [(1, true), (2, true), (3, true)]);
        assert!(!log.has_failed());
    }

    #[test]
    fn after_a_sync_that_failed_nothing_of_that_log_lasts_and_another_one_is_another_matter() {
        let folder = tempfile::tempdir().unwrap();
        let lost = Log::of(&folder.path().join("lost.db"));
        std::fs::write(folder.path().join("new.db-wal"), "frames").unwrap();
        let new = Log::of(&folder.path().join("new.db"));
        let batches = [(&lost, true), (&lost, false), (&lost, true), (&new, true)];
        let expected = [(1, false), (2, false), (3, false), (4, true)];
        assert_eq!(answers(&batches), expected);
        assert!(lost.has_failed());
    }

    #[test]
    fn what_another_process_left_in_the_log_is_synced_before_anybody_hears_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::of(&folder.path().join("x.db"));
        // There is none to be synced, which shows that it was tried.
        assert_eq!(answers(&[(&log, false)]), [(1, false)]);
    }
}
