//! The long run: repeats all experiments until the time is over, both engines at the same time.

use crate::account::{Account, Totals, engine_name};
use crate::experiments::{ALL, Episode, Experiment};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tributary_testkit::Engine;

/// Command-line options.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// Duration per engine, such as `60m`, `90s` or `2h`. An episode that has begun is finished.
    #[arg(long = "for", value_parser = parse_duration, default_value = "60m")]
    pub time: Duration,
    /// Engine. Both run at the same time by default.
    #[arg(long, value_enum)]
    pub engine: Option<EngineArgument>,
    /// Runs only faults whose name contains this text.
    #[arg(long)]
    pub only: Option<String>,
    /// First seed. The seed of an episode is printed; with `--only`, it repeats the episode as far as a
    /// race can be repeated.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// File for the account, in Markdown. It is written after each episode.
    #[arg(long)]
    pub account: Option<PathBuf>,
}

/// An engine on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineArgument {
    /// Embedded SQLite.
    Sqlite,
    /// The server at `TEST_DATABASE_URL`.
    Postgres,
}

/// Parses a number with the unit s, m or h.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(number.checked_mul(*seconds)?))
    });
    parsed.ok_or_else(|| "write a number with a unit, such as 60m".to_owned())
}

/// Runs the experiments and prints the account. The exit code is 1 if anything was wrong.
pub async fn run(options: RunOptions) -> ExitCode {
    let account = Arc::new(Mutex::new(Account::default()));
    let engines = [
        (EngineArgument::Sqlite, Engine::Sqlite),
        (EngineArgument::Postgres, Engine::Postgres),
    ];
    let selected = engines
        .into_iter()
        .filter(|(argument, _)| options.engine.is_none_or(|only| only == *argument));
    let runs: Vec<_> = selected
        .map(|(_, engine)| tokio::spawn(run_engine(engine, options.clone(), account.clone())))
        .collect();
    for run in runs {
        run.await.expect("an experiment panicked");
    }
    let account = account.lock().unwrap();
    println!("{}", account.to_markdown());
    ExitCode::from(u8::from(!account.is_clean()))
}

async fn run_engine(engine: Engine, options: RunOptions, account: Arc<Mutex<Account>>) {
    let begun = Instant::now();
    let selected: Vec<Experiment> = schedule(engine, options.only.as_deref());
    for (number, experiment) in selected.iter().cycle().enumerate() {
        if begun.elapsed() >= options.time {
            return;
        }
        let seed = options.seed.wrapping_add(number as u64);
        let started = Instant::now();
        let running = tokio::spawn((experiment.run)(Episode::long(seed)));
        let totals = running.await.unwrap_or_else(|error| {
            let mut totals = Totals::default();
            totals.violated(format!("the experiment ended: {error}"));
            totals
        });
        println!(
            "{:>5} s, {}, {}, seed {seed}, {:.0?}: {} rounds, {} acknowledged, {} unknown, {} refused, {}",
            begun.elapsed().as_secs(),
            engine_name(engine),
            experiment.fault,
            started.elapsed(),
            totals.rounds,
            totals.acknowledged,
            totals.unknown,
            totals.refused,
            if totals.is_clean() {
                "clean".to_owned()
            } else {
                format!("WRONG: {totals:#?}")
            },
        );
        let mut account = account.lock().unwrap();
        account.add(experiment.fault, engine, totals);
        if let Some(path) = &options.account {
            std::fs::write(path, account.to_markdown()).expect("the account can be written");
        }
    }
}

/// Returns the experiments of an engine in turn, each as often as its weight says.
fn schedule(engine: Engine, only: Option<&str>) -> Vec<Experiment> {
    let selected = ALL
        .iter()
        .filter(|one| one.engine == engine && only.is_none_or(|text| one.fault.contains(text)));
    let selected: Vec<&Experiment> = selected.collect();
    let turns = selected.iter().map(|one| one.weight).max().unwrap_or(0);
    let in_turn = |turn: u32| {
        selected
            .iter()
            .filter(move |one| one.weight > turn)
            .map(|one| **one)
    };
    (0..turns).flat_map(in_turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(parse_duration("60m"), Ok(Duration::from_hours(1)));
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert!(parse_duration("60").is_err());
        assert!(parse_duration("m").is_err());
    }

    #[test]
    fn an_experiment_runs_as_often_as_its_weight_says() {
        let scheduled = schedule(Engine::Sqlite, None);
        for one in ALL.iter().filter(|one| one.engine == Engine::Sqlite) {
            let times = scheduled.iter().filter(|other| other.fault == one.fault);
            assert_eq!(times.count(), one.weight as usize, "{}", one.fault);
        }
    }
}
