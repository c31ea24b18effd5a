//! From PostgreSQL to a new SQLite file, while nodes use the PostgreSQL database. The steps are those
//! of the other direction.

use super::report::{CopyReport, seconds};
use super::{CompareScope, check_pause, is_caught_up, print_line};
use crate::config::Config;
use crate::{system, wiring};
use anyhow::Context as _;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;
use std::time::Instant;
use tributary_store::transfer::{MoveId, MovePhase, TransferTable, match_schemas};
use tributary_store_postgres::transfer::{
    PostgresMoveError, PostgresMoveRound, PostgresMoveSource,
};
use tributary_store_sqlite::transfer::{
    SqliteMoveTarget, complete_move, finished_move, remove_unfinished, rename_complete,
};

/// Copies, follows and verifies; with `cut_over`, also ends the move.
pub(super) async fn run(
    config: &Config,
    url: SecretString,
    path: &Path,
    cut_over: bool,
) -> anyhow::Result<()> {
    let options = wiring::postgres_options(config);
    let mut source = PostgresMoveSource::connect(url.expose_secret(), options).await?;
    if path.exists() {
        return finish_or_refuse(&mut source, path).await;
    }
    // The move was interrupted between completing the file and naming it.
    if let (Some((id, MovePhase::Fenced)), complete) = (source.state().await?, complete_move(path)?)
        && complete == Some(id)
    {
        rename_complete(path)?;
        return finish_or_refuse(&mut source, path).await;
    }
    let target = SqliteMoveTarget::open(path)
        .with_context(|| format!("cannot create a database beside {}", path.display()))?;
    let tables = match_schemas(&target.catalog()?, &source.catalog().await?)?;
    let mut mover = Mover {
        source,
        target,
        tables,
    };
    let id = mover.begin_or_resume().await?;
    mover.copy_tables().await?;
    mover.catch_up(CompareScope::ChangedRows).await?;
    mover.restore_definitions()?;
    mover.verify().await?;
    let is_fenced = matches!(mover.source.state().await?, Some((_, MovePhase::Fenced)));
    if !cut_over && !is_fenced {
        print_line(
            "Changes in the PostgreSQL database are logged until the cut-over. Run the same command \
             with --cut-over to finish the move, or with --cancel to give it up.",
        );
        return Ok(());
    }
    if path.exists() {
        anyhow::bail!(
            "a database was created at {} during the move; stop the server that uses it, and move \
             the file away",
            path.display()
        );
    }
    mover.cut_over(id).await?;
    print_line(format!(
        "The data is in {}. Restart one server with this database_url and the same secret_key. The \
         PostgreSQL database has all rows up to the cut-over and accepts no changes.",
        path.display()
    ));
    Ok(())
}

/// Ends a move that was interrupted after the file got its name.
async fn finish_or_refuse(source: &mut PostgresMoveSource, path: &Path) -> anyhow::Result<()> {
    let finished = finished_move(path)?;
    match source.state().await? {
        Some((id, phase)) if finished == Some(id) => {
            remove_unfinished(path)?;
            if phase == MovePhase::Fenced {
                source.finish().await?;
            }
            print_line("The move is already finished.");
            Ok(())
        }
        _ => anyhow::bail!(
            "a database already exists at {}; move the file away, or name another one with --to",
            path.display()
        ),
    }
}

/// A move in progress.
struct Mover {
    source: PostgresMoveSource,
    target: SqliteMoveTarget,
    tables: Vec<TransferTable>,
}

impl Mover {
    /// Begins a move, or finds the one to resume.
    async fn begin_or_resume(&mut self) -> anyhow::Result<MoveId> {
        let id = match (self.source.state().await?, self.target.unfinished()?) {
            (Some((id, _)), Some(other)) if id == other => {
                self.source.check_log(&self.tables).await?;
                print_line("Resuming the move.");
                return Ok(id);
            }
            // The move stopped before it reached the target, or its unfinished file was deleted.
            (Some((id, MovePhase::Following)), None) => id,
            (Some(_), _) => return Err(PostgresMoveError::AnotherMove.into()),
            (None, Some(_)) => {
                anyhow::bail!("the unfinished file (.moving) belongs to another move; move it away")
            }
            (None, None) => MoveId(system::runtime().random_bytes()),
        };
        if self.source.state().await?.is_none() {
            self.source.start_log(id, &self.tables).await?;
        }
        self.source.check_log(&self.tables).await?;
        self.target.begin(id, &self.tables)?;
        Ok(id)
    }

    /// Copies the tables that are not copied yet.
    async fn copy_tables(&mut self) -> anyhow::Result<()> {
        let mut report = CopyReport::new();
        let target = &mut self.target;
        for table in &self.tables {
            if !target.begin_table(table)? {
                continue;
            }
            report.begin_table();
            let copy = |tuple: &[u8]| {
                target.insert_in_bulk(table, tuple)?;
                report.add(&table.name, 1);
                Ok::<_, anyhow::Error>(())
            };
            self.source.read_table(table, copy).await?;
            target.end_table(table)?;
            report.end_table(&table.name);
        }
        report.end();
        Ok(())
    }

    /// Copies the rows that have changed. Returns their number.
    async fn catch_up(&mut self, scope: CompareScope) -> anyhow::Result<u64> {
        let (target, tables) = (&mut self.target, &self.tables);
        let round = self.source.begin_round().await?;
        target.begin_changes()?;
        let mut changed = 0;
        for table in tables {
            if !round.has_changes(table).await? {
                continue;
            }
            let delete = |key: &[u8]| {
                changed += 1;
                Ok::<_, anyhow::Error>(target.delete(table, key)?)
            };
            round.read_keys(table, delete).await?;
            let insert = |tuple: &[u8]| Ok::<_, anyhow::Error>(target.insert(table, tuple)?);
            round.read_rows(table, insert).await?;
        }
        target.commit()?;
        if scope == CompareScope::AllRows {
            compare(&round, target, tables).await?;
        }
        // An interruption before this copies the same rows again.
        round.forget(tables).await?;
        Ok(changed)
    }

    /// Creates the indexes that were dropped for the bulk copy.
    fn restore_definitions(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let count = self.target.restore_definitions()?;
        if count > 0 {
            let within = seconds(begun.elapsed());
            print_line(format!("Created {count} indexes in {within}."));
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
        match self.target.broken_reference()? {
            Some(table) => anyhow::bail!("a row of {table} refers to a row that is missing"),
            None => Ok(()),
        }
    }

    /// Stops the changes, copies the last ones, and ends the move.
    async fn cut_over(mut self, id: MoveId) -> anyhow::Result<()> {
        check_pause(self.catch_up_until_few().await?)?;
        let begun = Instant::now();
        self.source.fence(&self.tables).await?;
        let changed = self.catch_up(CompareScope::ChangedRows).await?;
        self.target.finish(id)?;
        let within = seconds(begun.elapsed());
        self.source.finish().await?;
        print_line(format!(
            "Cut over: copied the last {changed} changes; changes were rejected for {within} so far."
        ));
        Ok(())
    }
}

/// Compares all rows with those of the snapshot.
async fn compare(
    round: &PostgresMoveRound<'_>,
    target: &SqliteMoveTarget,
    tables: &[TransferTable],
) -> anyhow::Result<()> {
    let mut rows = 0;
    for table in tables {
        let (theirs, ours) = (round.sum(table).await?, target.sum(table)?);
        if ours != theirs {
            anyhow::bail!(
                "the copy of table {} differs: {} rows in PostgreSQL, {} in SQLite",
                table.name,
                theirs.rows,
                ours.rows
            );
        }
        rows += ours.rows;
    }
    print_line(format!("Verified {rows} rows in {} tables.", tables.len()));
    Ok(())
}
