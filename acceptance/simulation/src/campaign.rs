//! Runs many seeds, and makes failing scenarios smaller.

use crate::generate::generate;
use crate::run::{RunReport, run};
use crate::scenario::{End, EndKind, Scenario, Weakening};
use crate::totals::Totals;
use crate::vfs;
use clap::ValueEnum as _;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How long a campaign runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This many seeds.
    Seeds(u64),
    /// This long. The seed that is running then is finished.
    Duration(Duration),
}

/// The scenarios of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// The generated one.
    Generated,
    /// The generated one without ends of processes, and with a kill and a power cut at each point of
    /// its first process.
    EveryCrash,
}

impl Selection {
    /// Returns the scenarios of a seed, with the options that repeat each of them.
    fn scenarios(self, seed: u64, weakening: Weakening) -> Vec<(Scenario, String)> {
        let scenario = generate(seed);
        if self == Self::Generated {
            return vec![(scenario, String::new())];
        }
        // Clients finish their work in the last process only, so the process whose points are counted
        // must not be the last one.
        let never = End {
            kind: EndKind::Kill,
            point: u64::MAX,
        };
        let points = run_caught(&scenario.with_end(never), weakening, false).points;
        let crashes = [(EndKind::Kill, "kill"), (EndKind::PowerCut, "cut-power")];
        let crashes = crashes.into_iter().flat_map(|(kind, name)| {
            (1..=points).map(move |point| (End { kind, point }, format!(" --{name}-at {point}")))
        });
        crashes
            .map(|(end, options)| (scenario.with_end(end), options))
            .collect()
    }
}

/// A run that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The command that repeats the run.
    pub command: String,
    /// What the checks found.
    pub violations: Vec<String>,
}

/// Returns the command that runs a seed.
fn command(seed: u64, weakening: Weakening) -> String {
    let command = format!("cargo run -p tributary-simulation -- --seed {seed}");
    match weakening.to_possible_value() {
        Some(value) if weakening != Weakening::None => {
            format!("{command} --weaken {}", value.get_name())
        }
        _ => command,
    }
}

/// The result of a campaign.
#[derive(Debug, Clone, Default)]
pub struct CampaignReport {
    /// Counts over all runs.
    pub totals: Totals,
    /// The seeds that failed.
    pub failures: Vec<Failure>,
}

/// Runs seeds from `first` on. `progress` is called after each run.
pub fn run_campaign(
    first: u64,
    extent: Extent,
    selection: Selection,
    weakening: Weakening,
    mut progress: impl FnMut(&CampaignReport),
) -> CampaignReport {
    let begun = Instant::now();
    let mut report = CampaignReport::default();
    for seed in first.. {
        let is_over = match extent {
            Extent::Seeds(count) => seed - first >= count,
            Extent::Duration(duration) => begun.elapsed() >= duration,
        };
        if is_over {
            break;
        }
        for (scenario, options) in selection.scenarios(seed, weakening) {
            let one = run_caught(&scenario, weakening, false);
            report.totals.add(&one.totals);
            if !one.violations.is_empty() {
                report.failures.push(Failure {
                    command: command(seed, weakening) + &options,
                    violations: one.violations,
                });
            }
            progress(&report);
        }
    }
    report
}

/// Runs a scenario. A panic is a violation.
pub fn run_caught(scenario: &Scenario, weakening: Weakening, logs: bool) -> RunReport {
    let attempt = || run(scenario, weakening, logs);
    catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
        vfs::set_disk(None);
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let violation = format!("panic: {}", text.unwrap_or_default());
        RunReport {
            totals: Totals {
                seeds: 1,
                other_violations: 1,
                ..Totals::default()
            },
            violations: vec![violation],
            trace_hash: String::new(),
            points: 0,
        }
    })
}

/// Removes elements from a failing scenario until each of those that remain is needed for a failure
/// of the same kind.
pub fn shrink(scenario: &Scenario, weakening: Weakening) -> Scenario {
    let Some(kind) = failure_kind(scenario, weakening) else {
        return scenario.clone();
    };
    let fails = |numbers: &[u32]| {
        let smaller = scenario.only(&numbers.iter().copied().collect());
        failure_kind(&smaller, weakening).as_ref() == Some(&kind)
    };
    let mut kept: Vec<u32> = scenario
        .elements
        .iter()
        .map(|(number, _)| *number)
        .collect();
    let mut chunk = kept.len().div_ceil(2);
    while chunk > 0 {
        let before = kept.len();
        let mut at = 0;
        while at < kept.len() {
            let end = (at + chunk).min(kept.len());
            let mut fewer = kept.clone();
            fewer.drain(at..end);
            if fails(&fewer) {
                kept = fewer;
            } else {
                at = end;
            }
        }
        if chunk > 1 {
            chunk = chunk.div_ceil(2);
        } else if kept.len() == before {
            chunk = 0;
        }
    }
    scenario.only(&kept.into_iter().collect::<BTreeSet<_>>())
}

/// Returns the first word of the first violation.
fn failure_kind(scenario: &Scenario, weakening: Weakening) -> Option<String> {
    run_caught(scenario, weakening, false).kind()
}

/// Returns the command that repeats a scenario that was made smaller.
pub fn command_for(scenario: &Scenario, weakening: Weakening) -> String {
    let numbers: Vec<String> = scenario
        .elements
        .iter()
        .map(|(number, _)| number.to_string())
        .collect();
    format!(
        "{} --only {}",
        command(scenario.seed, weakening),
        numbers.join(",")
    )
}
