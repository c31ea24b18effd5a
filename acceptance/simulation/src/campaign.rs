//! Runs many seeds, and makes failing scenarios smaller.

use crate::generate::generate;
use crate::run::{RunReport, run};
use crate::scenario::{Scenario, Weakening};
use crate::totals::Totals;
use crate::vfs;
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

/// A seed that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What the checks found.
    pub violations: Vec<String>,
}

impl Failure {
    /// Returns the command that repeats the run.
    pub fn command(&self) -> String {
        command(self.seed)
    }
}

/// Returns the command that runs a seed.
fn command(seed: u64) -> String {
    format!("cargo run -p tributary-simulation -- --seed {seed}")
}

/// The result of a campaign.
#[derive(Debug, Clone, Default)]
pub struct CampaignReport {
    /// Counts over all runs.
    pub totals: Totals,
    /// The seeds that failed.
    pub failures: Vec<Failure>,
}

/// Runs seeds from `first` on. `progress` is called after each seed.
pub fn run_campaign(
    first: u64,
    extent: Extent,
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
        let one = run_caught(&generate(seed), weakening, false);
        report.totals.add(&one.totals);
        if !one.violations.is_empty() {
            report.failures.push(Failure {
                seed,
                violations: one.violations,
            });
        }
        progress(&report);
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
    let report = run_caught(scenario, weakening, false);
    let first = report.violations.first()?;
    first.split([' ', ':']).next().map(str::to_owned)
}

/// Returns the command that repeats a scenario that was made smaller.
pub fn command_for(scenario: &Scenario) -> String {
    let numbers: Vec<String> = scenario
        .elements
        .iter()
        .map(|(number, _)| number.to_string())
        .collect();
    format!("{} --only {}", command(scenario.seed), numbers.join(","))
}
