//! `tributary import`: stores the events of an NDJSON export in an app, in bulk.
//!
//! One thread reads and parses lines while other tasks store earlier batches. The server may be
//! running. The import can be repeated: events that are stored already are skipped. Files may be
//! compressed with gzip.

mod account;
mod lines;

use super::print_line;
use crate::cli::ImportOptions;
use crate::config::Config;
use crate::{system, wiring};
use account::ImportAccount;
use anyhow::Context as _;
use lines::{LineBatch, LineInput, LinePlace, LineReader, RejectedLine};
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tributary_domain::access::{Actor, AppsRead, Authorized};
use tributary_domain::audit::Action;
use tributary_domain::event::import::{ImportOutcome, ImportedEvent};
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::{ActionNote, ImportMode, Store, StoreError};

/// Batches of a lane that wait while one is stored. More would only use memory.
const BATCHES_WAITING_MAX: usize = 2;
/// Lanes store batches at the same time, so that the database also works while a batch is committed
/// and its figures are merged. The events of a device are in one lane, because a batch locks its
/// devices.
const LANES: usize = 2;
/// Attempts to store a batch. A busy server may hold the lock on an SQLite file for a while.
const ATTEMPTS_MAX: u32 = 5;
/// Delay before the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Runs the command. The exit code says whether every line is stored.
pub async fn run(config: &Config, options: ImportOptions) -> anyhow::Result<ExitCode> {
    wiring::require_database(config)?;
    let store = wiring::open_existing_store(config).await?;
    let done = import(store.clone(), &options).await;
    store.close().await;
    done
}

async fn import(store: Arc<dyn Store>, options: &ImportOptions) -> anyhow::Result<ExitCode> {
    let inputs = lines::open(&options.files)?;
    let organization = find_owner(&*store, options.app).await?;
    let mode = if options.dry_run {
        ImportMode::DryRun
    } else {
        ImportMode::Write
    };
    if mode == ImportMode::Write {
        let note = ActionNote {
            organization,
            action: Action::EventsImported,
            app: Some(options.app),
            target: options.app.to_string(),
        };
        let origin = system::runtime().origin(Actor::Operator, None, None);
        store.note_action(note, origin).await?;
    }
    let mut import = RunningImport::new(store, options.app, mode);
    let imported = import.run(inputs).await;
    import.progress.clear();
    for line in import.account.lines(mode) {
        print_line(line);
    }
    imported.context("the import stopped; repeat it, which skips the stored events")?;
    Ok(if import.account.has_rejections() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the organization of the app. Fails if the app does not exist.
pub(super) async fn find_owner(store: &dyn Store, app: AppId) -> anyhow::Result<OrganizationId> {
    for organization in store.organizations().await? {
        let reader: Authorized<AppsRead> = Authorized::operator(organization.id);
        match store.app(&reader, app).await {
            Ok(_) => return Ok(organization.id),
            Err(StoreError::Refused(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    anyhow::bail!("no app has this id; create the app first, and see its id in `GET /api/v1/apps`")
}

/// A stored batch, with one outcome per event.
struct StoredBatch {
    events: Arc<[ImportedEvent]>,
    places: Vec<LinePlace>,
    rejected: Vec<RejectedLine>,
    outcomes: Result<Vec<ImportOutcome>, StoreError>,
}

/// Stores a batch. Tries again if the database was unavailable; events that are stored by then are
/// skipped.
async fn store_batch(
    store: Arc<dyn Store>,
    app: AppId,
    mode: ImportMode,
    batch: LineBatch,
) -> StoredBatch {
    let events: Arc<[ImportedEvent]> = batch.events.into();
    let mut attempt = 1;
    let outcomes = loop {
        if events.is_empty() {
            break Ok(Vec::new());
        }
        let at = system::runtime().now();
        match store.import_events(app, events.clone(), mode, at).await {
            Err(StoreError::Unavailable { .. }) if attempt < ATTEMPTS_MAX => {
                attempt += 1;
                tokio::time::sleep(RETRY_DELAY).await;
            }
            outcome => break outcome,
        }
    };
    StoredBatch {
        events,
        places: batch.places,
        rejected: batch.rejected,
        outcomes,
    }
}

/// Stores the batches of a lane until one fails.
async fn store_lane(
    store: Arc<dyn Store>,
    (app, mode): (AppId, ImportMode),
    mut batches: mpsc::Receiver<LineBatch>,
    done: mpsc::Sender<StoredBatch>,
) {
    while let Some(batch) = batches.recv().await {
        let stored = store_batch(store.clone(), app, mode, batch).await;
        let has_failed = stored.outcomes.is_err();
        if done.send(stored).await.is_err() || has_failed {
            return;
        }
    }
}

/// An import in progress.
struct RunningImport {
    store: Arc<dyn Store>,
    app: AppId,
    mode: ImportMode,
    account: ImportAccount,
    progress: Progress,
    /// In a dry run, hashes of the ids of new events. Nothing is stored, so a repeated event would
    /// count as new again.
    seen: HashSet<u64>,
    hashes: RandomState,
}

impl RunningImport {
    fn new(store: Arc<dyn Store>, app: AppId, mode: ImportMode) -> Self {
        Self {
            store,
            app,
            mode,
            account: ImportAccount::default(),
            progress: Progress::start(),
            seen: HashSet::new(),
            hashes: RandomState::new(),
        }
    }

    async fn run(&mut self, inputs: Vec<LineInput>) -> anyhow::Result<()> {
        let app = self.app;
        let (mut senders, mut lanes) = (Vec::new(), JoinSet::new());
        let (done, mut stored) = mpsc::channel(LANES);
        for _ in 0..LANES {
            let (sender, batches) = mpsc::channel(BATCHES_WAITING_MAX);
            senders.push(sender);
            let store = self.store.clone();
            lanes.spawn(store_lane(store, (app, self.mode), batches, done.clone()));
        }
        drop(done);
        let reading = tokio::task::spawn_blocking(move || {
            let mut lines = LineReader::new(app, senders);
            inputs.into_iter().try_for_each(|input| lines.read(input))?;
            lines.finish();
            anyhow::Ok(())
        });
        // After an error, the account must include the batches that other lanes still store.
        let mut imported = Ok(());
        while let Some(batch) = stored.recv().await {
            let added = self.add_batch(batch);
            imported = imported.and(added);
        }
        while let Some(lane) = lanes.join_next().await {
            lane?;
        }
        imported?;
        reading.await?
    }

    /// Adds a batch to the account.
    fn add_batch(&mut self, batch: StoredBatch) -> anyhow::Result<()> {
        self.account.add_rejected(batch.rejected);
        let mut outcomes = batch.outcomes?;
        if self.mode == ImportMode::DryRun {
            self.mark_repeated(&batch.events, &mut outcomes);
        }
        let events = batch.events.iter().zip(&batch.places);
        for ((imported, place), outcome) in events.zip(outcomes) {
            self.account.add(&imported.event, place, outcome);
        }
        self.progress.show(&self.account);
        Ok(())
    }

    /// Counts events that an earlier batch of a dry run contained as stored.
    fn mark_repeated(&mut self, events: &[ImportedEvent], outcomes: &mut [ImportOutcome]) {
        for (imported, outcome) in events.iter().zip(outcomes) {
            let is_new = matches!(outcome, ImportOutcome::New(_));
            if is_new && !self.seen.insert(self.hashes.hash_one(imported.key())) {
                *outcome = ImportOutcome::AlreadyStored;
            }
        }
    }
}

/// Progress line, shown on a terminal.
struct Progress {
    begun: Instant,
    is_shown: bool,
}

impl Progress {
    fn start() -> Self {
        Self {
            begun: Instant::now(),
            is_shown: io::stderr().is_terminal(),
        }
    }

    fn show(&self, account: &ImportAccount) {
        if self.is_shown {
            let seconds = self.begun.elapsed().as_secs().max(1);
            let lines = account.read();
            let mut stderr = io::stderr().lock();
            let _gone = write!(stderr, "\r{lines} lines, {} a second", lines / seconds);
            let _gone = stderr.flush();
        }
    }

    /// Clears the line for the account.
    fn clear(&self) {
        if self.is_shown {
            let _gone = write!(io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}

#[cfg(test)]
mod tests;
