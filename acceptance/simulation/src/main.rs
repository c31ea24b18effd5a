//! Runs the simulation: `cargo run -p tributary-simulation -- --for 10m`.

use anyhow::{Context as _, bail};
use clap::Parser;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use tributary_simulation::{
    CampaignReport, End, EndKind, Extent, Scenario, Selection, Weakening, command_for, generate,
    run_campaign, run_caught, shrink,
};

/// Runs between two lines of progress.
const PROGRESS_RUNS: u64 = 50;
/// Violations shown per seed.
const VIOLATIONS_SHOWN: usize = 10;

/// Simulates the server with crashes, disk errors, network errors and clock jumps.
#[derive(Debug, Parser)]
struct Options {
    /// Run this seed and show what the checks found.
    #[arg(long)]
    seed: Option<u64>,
    /// With --seed: keep only these elements of the scenario.
    #[arg(long, value_delimiter = ',', requires = "seed")]
    only: Vec<u32>,
    /// With --seed: kill the first process at this point, and end no other one.
    #[arg(long, requires = "seed", conflicts_with_all = ["only", "shrink"])]
    kill_at: Option<u64>,
    /// With --seed: cut the power of the first process at this point, and end no other one.
    #[arg(long, requires = "seed", conflicts_with_all = ["only", "shrink", "kill_at"])]
    cut_power_at: Option<u64>,
    /// With --seed: find a smaller scenario that fails in the same way.
    #[arg(long, requires = "seed")]
    shrink: bool,
    /// With --seed: write everything that happens to standard error.
    #[arg(long, requires = "seed")]
    log: bool,
    /// Run this many seeds.
    #[arg(long, conflicts_with = "seed")]
    seeds: Option<u64>,
    /// Run for this long, such as 90s, 10m or 2h.
    #[arg(long = "for", conflicts_with_all = ["seed", "seeds"])]
    duration: Option<String>,
    /// For each seed, kill and cut the power of the first process at each point, and end no other one.
    #[arg(long, conflicts_with = "seed")]
    sweep: bool,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Make a deliberate error, which the checks must find.
    #[arg(long, value_enum, default_value_t = Weakening::None)]
    weaken: Weakening,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let weakening = options.weaken;
    let failed = match options.seed {
        Some(seed) => run_seed(seed, &options, weakening)?,
        None => run_seeds(&options, weakening)?,
    };
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Runs one seed. Returns whether it failed.
fn run_seed(seed: u64, options: &Options, weakening: Weakening) -> anyhow::Result<bool> {
    let mut scenario = generate(seed);
    if !options.only.is_empty() {
        let kept: BTreeSet<u32> = options.only.iter().copied().collect();
        scenario = scenario.only(&kept);
    }
    let crashes = [
        (EndKind::Kill, options.kill_at),
        (EndKind::PowerCut, options.cut_power_at),
    ];
    for (kind, point) in crashes {
        if let Some(point) = point {
            scenario = scenario.with_end(End { kind, point });
        }
    }
    if options.shrink {
        scenario = shrink(&scenario, weakening);
        print(&format!("{}\n", command_for(&scenario, weakening)))?;
    }
    if options.shrink || !options.only.is_empty() {
        print(&describe(&scenario))?;
    }
    let report = run_caught(&scenario, weakening, options.log);
    print(&format!("{}trace: {}\n", report.totals, report.trace_hash))?;
    for violation in &report.violations {
        print(&format!("{violation}\n"))?;
    }
    Ok(!report.violations.is_empty())
}

/// Runs many seeds. Returns whether one of them failed.
fn run_seeds(options: &Options, weakening: Weakening) -> anyhow::Result<bool> {
    let extent = match (&options.duration, options.seeds) {
        (Some(duration), _) => Extent::Duration(parse_duration(duration)?),
        (None, seeds) => Extent::Seeds(seeds.unwrap_or(100)),
    };
    let selection = if options.sweep {
        Selection::EveryCrash
    } else {
        Selection::Generated
    };
    let mut shown = 0;
    let report = run_campaign(options.from, extent, selection, weakening, |report| {
        // Without standard output, only the exit code tells the result.
        let _lost = show_progress(report, &mut shown);
    });
    print(&report.totals.to_string())?;
    Ok(!report.failures.is_empty())
}

fn show_progress(report: &CampaignReport, shown: &mut usize) -> anyhow::Result<()> {
    for failure in &report.failures[*shown..] {
        print(&format!("failed: {}\n", failure.command))?;
        for violation in failure.violations.iter().take(VIOLATIONS_SHOWN) {
            print(&format!("  {violation}\n"))?;
        }
    }
    *shown = report.failures.len();
    let totals = &report.totals;
    if totals.seeds.is_multiple_of(PROGRESS_RUNS) {
        print(&format!(
            "{} runs, {} crashes, {} disk errors, {} violations\n",
            totals.seeds,
            totals.crashes,
            totals.disk_errors,
            totals.violations()
        ))?;
    }
    Ok(())
}

/// Lists the elements of a scenario.
fn describe(scenario: &Scenario) -> String {
    let elements = scenario.elements.iter();
    let lines = elements.map(|(number, element)| format!("  {number}: {element:?}\n"));
    let head = format!(
        "{} clients, leak {} %, checkpoint at {} pages\n",
        scenario.clients, scenario.leak_percent, scenario.log_pages_max
    );
    std::iter::once(head).chain(lines).collect()
}

/// Reads a duration such as `10m`.
fn parse_duration(text: &str) -> anyhow::Result<Duration> {
    let unit = text.chars().last().unwrap_or_default();
    let number = text.trim_end_matches(unit);
    let number: u64 = number.parse().context("--for takes a number and a unit")?;
    Ok(match unit {
        's' => Duration::from_secs(number),
        'm' => Duration::from_mins(number),
        'h' => Duration::from_hours(number),
        _ => bail!("--for takes a number with s, m or h, such as 10m"),
    })
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("cannot write to standard output")
}
