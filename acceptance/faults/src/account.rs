//! The account of a run: what was acknowledged and what became of it, by fault and engine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use tributary_testkit::Engine;

/// Descriptions of violations that are kept. One is enough to begin with, and a broken build may
/// cause thousands.
const VIOLATIONS_KEPT: usize = 20;

/// Results of one or more rounds of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Faults that were injected and took effect.
    pub rounds: u64,
    /// Requests whose success the client saw.
    pub acknowledged: u64,
    /// Requests without a response, or with 503 or 429. They were repeated afterwards.
    pub unknown: u64,
    /// Requests that a rule rejected, as it should.
    pub refused: u64,
    /// Acknowledged events and clicks that are not stored.
    pub lost: u64,
    /// Events that are stored twice, or that a network counted twice.
    pub doubled: u64,
    /// Stored events that were never sent, and deliveries without a final state.
    pub unaccounted: u64,
    /// Figures that differ from a count over the stored events, and payments that were refunded
    /// beyond their amount.
    pub wrong_sums: u64,
    /// Responses with a status that the request does not allow, such as 500, or 503 without
    /// `Retry-After`.
    pub wrong_answers: u64,
    /// Damaged databases.
    pub corrupt: u64,
    /// Conversions that a network received more than once under one id, which it ignores.
    pub repeated_sends: u64,
    /// Fewest idle connections that were open during an overload, on all nodes.
    pub idle_connections: Option<u64>,
    /// 99th percentile of the latency of what was admitted during an overload, in the slowest burst.
    pub admitted_p99: Option<Duration>,
    /// Power cuts.
    pub power_cuts: u64,
    /// Power cuts before which an I/O error was injected.
    pub power_cuts_after_error: u64,
    /// Time from the end of the fault until the server accepts an event.
    pub recovery: Vec<Duration>,
    /// Descriptions of what was wrong.
    pub violations: Vec<String>,
}

impl Totals {
    /// Adds the results of other rounds.
    pub fn add(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.refused += other.refused;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.unaccounted += other.unaccounted;
        self.wrong_sums += other.wrong_sums;
        self.wrong_answers += other.wrong_answers;
        self.corrupt += other.corrupt;
        self.repeated_sends += other.repeated_sends;
        self.idle_connections = [self.idle_connections, other.idle_connections]
            .into_iter()
            .flatten()
            .min();
        self.admitted_p99 = self.admitted_p99.max(other.admitted_p99);
        self.power_cuts += other.power_cuts;
        self.power_cuts_after_error += other.power_cuts_after_error;
        self.recovery.extend(other.recovery);
        for violation in other.violations {
            self.violated(violation);
        }
    }

    /// Keeps the description of something that is wrong.
    pub fn violated(&mut self, description: impl Into<String>) {
        if self.violations.len() < VIOLATIONS_KEPT {
            self.violations.push(description.into());
        }
    }

    /// Returns whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        let wrong = [
            self.lost,
            self.doubled,
            self.unaccounted,
            self.wrong_sums,
            self.wrong_answers,
            self.corrupt,
        ];
        wrong.iter().all(|count| *count == 0) && self.violations.is_empty()
    }

    /// Fails a test unless everything is in order and the fault took effect.
    pub fn assert_clean(&self, name: &str) {
        println!("{name}: {self:?}");
        assert!(self.is_clean(), "{name}: {self:#?}");
        assert!(
            self.rounds > 0 && self.acknowledged > 0,
            "{name}: the fault or the load had no effect: {self:#?}"
        );
    }
}

/// The results of a run by fault and engine.
#[derive(Debug, Default)]
pub struct Account {
    rows: BTreeMap<(&'static str, &'static str), Totals>,
}

/// Returns the name of an engine in the account.
pub const fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => "SQLite",
        Engine::Postgres => "PostgreSQL",
    }
}

impl Account {
    /// Adds the results of an experiment.
    pub fn add(&mut self, fault: &'static str, engine: Engine, totals: Totals) {
        let row = self.rows.entry((engine_name(engine), fault)).or_default();
        row.add(totals);
    }

    /// Returns the sum of all rows of an engine.
    pub fn of_engine(&self, engine: Engine) -> Totals {
        let mut sum = Totals::default();
        for ((name, _), totals) in &self.rows {
            if *name == engine_name(engine) {
                sum.add(totals.clone());
            }
        }
        sum
    }

    /// Returns whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.rows.values().all(Totals::is_clean)
    }

    /// Formats the account as a Markdown table, with further counts and what was wrong below it.
    pub fn to_markdown(&self) -> String {
        let mut text = String::from(
            "| Engine | Fault | Rounds | Acknowledged | Unknown | Lost | Doubled | Refused | Sums that differ | \
             Time to recover, median and maximum |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        let engines = [Engine::Sqlite, Engine::Postgres];
        let sums = engines.map(|engine| (engine, self.of_engine(engine)));
        for ((engine, fault), totals) in &self.rows {
            write_row(&mut text, engine, fault, totals);
        }
        let sums = || sums.iter().filter(|(_, sum)| sum.rounds > 0);
        for (engine, sum) in sums() {
            write_row(&mut text, engine_name(*engine), "**all**", sum);
        }
        text.push('\n');
        for (engine, sum) in sums() {
            write_counts(&mut text, engine_name(*engine), sum);
        }
        for ((engine, fault), totals) in &self.rows {
            for violation in &totals.violations {
                let _infallible = writeln!(text, "- {engine}, {fault}: {violation}");
            }
        }
        text
    }
}

fn write_row(text: &mut String, engine: &str, fault: &str, totals: &Totals) {
    let recovery = recovery(&totals.recovery);
    let _infallible = writeln!(
        text,
        "| {engine} | {fault} | {} | {} | {} | {} | {} | {} | {} | {recovery} |",
        totals.rounds,
        totals.acknowledged,
        totals.unknown,
        totals.lost,
        totals.doubled,
        totals.refused,
        totals.wrong_sums,
    );
}

/// Writes what has no column, because it belongs to few faults or must be 0.
fn write_counts(text: &mut String, engine: &str, sum: &Totals) {
    let _infallible = writeln!(
        text,
        "- {engine}: {} damaged databases, {} responses with a wrong status, {} events or deliveries that were not \
         accounted for; networks ignored {} repeated conversions",
        sum.corrupt, sum.wrong_answers, sum.unaccounted, sum.repeated_sends,
    );
    if let Some(idle) = sum.idle_connections {
        let _infallible = writeln!(
            text,
            "- {engine}: at least {idle} idle connections were open during overload"
        );
    }
    if let Some(latency) = sum.admitted_p99 {
        let _infallible = writeln!(
            text,
            "- {engine}: 99 % of the requests that were admitted during overload had an answer after {latency:.1?} at \
             most"
        );
    }
    if sum.power_cuts > 0 {
        let _infallible = writeln!(
            text,
            "- {engine}: {} power cuts, {} of them after an injected I/O error",
            sum.power_cuts, sum.power_cuts_after_error,
        );
    }
}

/// Formats the median and the maximum.
fn recovery(times: &[Duration]) -> String {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    match (sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(median), Some(longest)) => {
            format!("{} and {} ms", median.as_millis(), longest.as_millis())
        }
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(lost: u64) -> Totals {
        Totals {
            rounds: 1,
            acknowledged: 10,
            lost,
            recovery: vec![Duration::from_millis(30)],
            ..Totals::default()
        }
    }

    #[test]
    fn rows_of_one_fault_are_added_up_by_engine() {
        let mut account = Account::default();
        account.add("kill", Engine::Sqlite, totals(0));
        account.add("kill", Engine::Sqlite, totals(0));
        account.add("kill", Engine::Postgres, totals(0));
        assert!(account.is_clean());
        assert_eq!(account.of_engine(Engine::Sqlite).acknowledged, 20);
        let table = account.to_markdown();
        let row = "| SQLite | kill | 2 | 20 | 0 | 0 | 0 | 0 | 0 | 30 and 30 ms |";
        assert!(table.contains(row), "{table}");
    }

    #[test]
    fn every_count_is_in_the_account() {
        let mut account = Account::default();
        let totals = Totals {
            rounds: 1,
            acknowledged: 2,
            unknown: 3,
            lost: 4,
            doubled: 5,
            refused: 6,
            wrong_sums: 7,
            corrupt: 8,
            wrong_answers: 9,
            unaccounted: 10,
            repeated_sends: 11,
            idle_connections: Some(14),
            admitted_p99: Some(Duration::from_millis(1_500)),
            power_cuts: 12,
            power_cuts_after_error: 13,
            recovery: Vec::new(),
            violations: vec!["broken".to_owned()],
        };
        account.add("power cut", Engine::Sqlite, totals);
        let text = account.to_markdown();
        for line in [
            "| SQLite | power cut | 1 | 2 | 3 | 4 | 5 | 6 | 7 | – |",
            "| SQLite | **all** | 1 | 2 | 3 | 4 | 5 | 6 | 7 | – |",
            "- SQLite: 8 damaged databases, 9 responses with a wrong status, 10 events or deliveries that were not \
             accounted for; networks ignored 11 repeated conversions",
            "- SQLite: at least 14 idle connections were open during overload",
            "- SQLite: 99 % of the requests that were admitted during overload had an answer after 1.5s at most",
            "- SQLite: 12 power cuts, 13 of them after an injected I/O error",
            "- SQLite, power cut: broken",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn one_lost_event_makes_an_account_unclean() {
        let mut account = Account::default();
        account.add("kill", Engine::Sqlite, totals(0));
        account.add("power cut", Engine::Sqlite, totals(1));
        assert!(!account.is_clean());
    }
}
