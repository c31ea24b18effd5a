//! From SQLite to PostgreSQL, while a server uses the SQLite database.
//!
//! Rows are copied in bulk first. Meanwhile triggers log the keys of changed rows, and these rows
//! are copied again until few are left. Then everything is compared in one snapshot. The cut-over
//! rejects further changes, copies the last ones, and ends the move (`docs/adr/0040`).

use super::report::{CopyReport, seconds};
use super::{CompareScope, check_pause, is_caught_up, print_line};
use crate::config::Config;
use crate::{system, wiring};
use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tributary_store::transfer::{
    ChangeChunk, MoveId, MovePhase, RowChunk, RowSum, TransferTable, match_schemas,
};
use tributary_store_postgres::transfer::PostgresMoveTarget;
use tributary_store_sqlite::transfer::{SqliteMoveError, SqliteMoveSource, SqliteRowReader};

/// Chunks that are read ahead while one is being written.
const CHUNKS_AHEAD: usize = 2;

/// Copies, follows and verifies; with `cut_over`, also ends the move.
pub(super) async fn run(
    config: &Config,
    path: PathBuf,
    url: SecretString,
    cut_over: bool,
) -> anyhow::Result<()> {
    let source = SqliteMoveSource::open(&path)?;
    let options = wiring::postgres_options(config);
    let target = PostgresMoveTarget::connect(url.expose_secret(), options).await?;
    let tables = match_schemas(&source.catalog()?, &target.catalog().await?)?;
    let mut mover = Mover {
        source,
        target,
        tables: tables.into(),
    };
    let Some(id) = mover.begin_or_resume().await? else {
        print_line("The move is already finished.");
        return Ok(());
    };
    mover.copy_tables().await?;
    mover.catch_up(CompareScope::ChangedRows).await?;
    mover.restore_definitions().await?;
    mover.verify().await?;
    let is_fenced = matches!(mover.source.state()?, Some((_, MovePhase::Fenced)));
    if !cut_over && !is_fenced {
        print_line(
            "Changes in the SQLite database are logged until the cut-over. Run the same command with \
             --cut-over to finish the move, or with --cancel to give it up.",
        );
        return Ok(());
    }
    mover.cut_over(id).await?;
    print_line(
        "The data is in PostgreSQL. Restart the server with this database_url and the same \
         secret_key. The SQLite file has all rows up to the cut-over and accepts no changes.",
    );
    Ok(())
}

/// What a reader found in one snapshot: the last log entry and the sum of each table.
type SnapshotResult = Result<(Vec<i64>, Vec<RowSum>), SqliteMoveError>;

/// A move in progress.
struct Mover {
    source: SqliteMoveSource,
    target: PostgresMoveTarget,
    tables: Arc<[TransferTable]>,
}

impl Mover {
    /// Begins a move, or finds the one to resume. Returns `None` if it is finished.
    async fn begin_or_resume(&mut self) -> anyhow::Result<Option<MoveId>> {
        let unfinished = self.target.unfinished().await?;
        let id = match (self.source.state()?, unfinished) {
            (Some((id, _)), Some(other)) if id == other => {
                self.source.check_log(&self.tables)?;
                print_line("Resuming the move.");
                return Ok(Some(id));
            }
            (Some((id, phase)), None) if self.target.finished().await? == Some(id) => {
                if phase == MovePhase::Fenced {
                    self.source.finish(&self.tables)?;
                }
                return Ok(None);
            }
            // The move stopped before it reached the target.
            (Some((id, MovePhase::Following)), None) => id,
            (Some((id, _)), _) => return Err(SqliteMoveError::AnotherMove(id).into()),
            (None, Some(_)) => anyhow::bail!(
                "the PostgreSQL schema is the target of another unfinished move; use an empty schema"
            ),
            (None, None) => MoveId(system::runtime().random_bytes()),
        };
        if let Some(table) = self.target.table_with_rows(&self.tables).await? {
            anyhow::bail!(
                "the PostgreSQL schema already contains data (table {table}); use an empty database \
                 or schema"
            );
        }
        if self.source.state()?.is_none() {
            self.source.start_log(id, &self.tables)?;
        }
        self.source.check_log(&self.tables)?;
        self.target.begin(id, &self.tables).await?;
        Ok(Some(id))
    }

    /// Copies the rows that are not copied yet.
    async fn copy_tables(&mut self) -> anyhow::Result<()> {
        let mut report = CopyReport::new();
        for (position, table) in self.tables.clone().iter().enumerate() {
            let done = self.target.progress(table).await?;
            if done.is_copied {
                continue;
            }
            report.begin_table();
            let mut chunks = self.read_table(position, done.last_key);
            while let Some(chunk) = chunks.recv().await {
                let chunk = chunk?;
                let rows = chunk.rows;
                self.target.copy_chunk(table, chunk).await?;
                report.add(&table.name, rows);
            }
            report.end_table(&table.name);
        }
        report.end();
        Ok(())
    }

    /// Reads a table on another thread.
    fn read_table(
        &self,
        position: usize,
        mut after: Option<Vec<u8>>,
    ) -> mpsc::Receiver<Result<RowChunk, SqliteMoveError>> {
        let (send, receive) = mpsc::channel(CHUNKS_AHEAD);
        let (tables, path) = (self.tables.clone(), self.source.path().to_owned());
        let mut read_all = move |send: &mpsc::Sender<_>| {
            let reader = SqliteRowReader::open(&path)?;
            let Some(table) = tables.get(position) else {
                return Ok(());
            };
            loop {
                let chunk = reader.read_chunk(table, after.as_deref())?;
                let is_last = chunk.is_last;
                after.clone_from(&chunk.last_key);
                if send.blocking_send(Ok(chunk)).is_err() || is_last {
                    return Ok(());
                }
            }
        };
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read_all(&send) {
                let _gone = send.blocking_send(Err(error));
            }
        });
        receive
    }

    /// Copies the rows that have changed and deletes their log entries. Returns the number of rows.
    async fn catch_up(&mut self, scope: CompareScope) -> anyhow::Result<u64> {
        let (changed, last) = self.copy_changes(scope).await?;
        self.source.forget(&self.tables, &last)?;
        Ok(changed)
    }

    /// Copies the rows that have changed. Returns their number and the last log entry of each table.
    async fn copy_changes(&mut self, scope: CompareScope) -> anyhow::Result<(u64, Vec<i64>)> {
        let (send, receive) = mpsc::channel(CHUNKS_AHEAD);
        let reading = self.read_changes(send, scope);
        let tables = self.tables.clone();
        let changed = self.target.apply(&tables, receive).await?;
        let mut copied = Vec::new();
        if scope == CompareScope::AllRows {
            for table in tables.iter() {
                copied.push(self.target.sum(table).await?);
            }
        }
        let (last, sums) = reading.await??;
        for ((table, ours), theirs) in tables.iter().zip(&sums).zip(&copied) {
            if ours != theirs {
                anyhow::bail!(
                    "the copy of table {} differs: {} rows in SQLite, {} in PostgreSQL",
                    table.name,
                    ours.rows,
                    theirs.rows
                );
            }
        }
        if scope == CompareScope::AllRows {
            let rows: u64 = sums.iter().map(|sum| sum.rows).sum();
            print_line(format!("Verified {rows} rows in {} tables.", sums.len()));
        }
        Ok((changed, last))
    }

    /// Reads the changed rows on another thread and, for a full comparison, sums all tables in the
    /// same snapshot.
    fn read_changes(
        &self,
        send: mpsc::Sender<ChangeChunk>,
        scope: CompareScope,
    ) -> JoinHandle<SnapshotResult> {
        let (tables, path) = (self.tables.clone(), self.source.path().to_owned());
        tokio::task::spawn_blocking(move || {
            let reader = SqliteRowReader::open(&path)?;
            reader.begin_snapshot()?;
            let send_chunk = |chunk| send.blocking_send(chunk).is_ok();
            let last = reader.read_changes(&tables, send_chunk)?;
            // Lets the target commit while the tables are summed.
            drop(send);
            let mut sums = Vec::new();
            if scope == CompareScope::AllRows {
                for table in tables.iter() {
                    sums.push(reader.sum(table)?);
                }
            }
            reader.end_snapshot()?;
            Ok((last, sums))
        })
    }

    /// Creates the indexes and constraints that were dropped for the bulk copy.
    async fn restore_definitions(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut count = 0;
        while self.target.restore_definition().await? {
            count += 1;
        }
        if count > 0 {
            self.target.analyze(&self.tables).await?;
            let within = seconds(begun.elapsed());
            print_line(format!(
                "Created {count} indexes and constraints in {within}."
            ));
        }
        Ok(())
    }

    /// Copies changes until few are left, or until their number depends on the load only. Returns the
    /// number of the last round.
    async fn catch_up_until_few(&mut self) -> anyhow::Result<u64> {
        let mut before = None;
        loop {
            let changed = self.catch_up(CompareScope::ChangedRows).await?;
            if is_caught_up(before, changed) {
                return Ok(changed);
            }
            before = Some(changed);
        }
    }

    /// Compares all rows in one snapshot, after most changes were copied.
    async fn verify(&mut self) -> anyhow::Result<()> {
        self.catch_up_until_few().await?;
        self.catch_up(CompareScope::AllRows).await?;
        Ok(())
    }

    /// Stops the changes, copies the last ones, and ends the move.
    async fn cut_over(&mut self, id: MoveId) -> anyhow::Result<()> {
        check_pause(self.catch_up_until_few().await?)?;
        let begun = Instant::now();
        self.source.fence(&self.tables)?;
        // The log is dropped as a whole, after the pause.
        let (changed, _) = self.copy_changes(CompareScope::ChangedRows).await?;
        self.target.finish(id).await?;
        let within = seconds(begun.elapsed());
        self.source.finish(&self.tables)?;
        print_line(format!(
            "Cut over: copied the last {changed} changes; changes were rejected for {within} so far."
        ));
        Ok(())
    }
}
