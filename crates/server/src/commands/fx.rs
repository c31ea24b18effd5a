//! `tributary fx …`: imports exchange rates by hand, for servers without internet access or for
//! currencies that no source publishes. The server may be running: imported rates apply from the
//! next event on.

use super::print_line;
use crate::cli::FxCommand;
use crate::config::Config;
use crate::rates::{self, RATES_FILE_BYTES_MAX, RATES_PER_IMPORT};
use crate::{system, wiring};
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};
use tributary_domain::exchange::{Rate, SNAPSHOT_DAY, Staleness, latest_day, staleness};
use tributary_domain::vocabulary::day::Day;
use tributary_store::Rates;

/// Path argument for standard input.
const STANDARD_INPUT: &str = "-";

/// A rate file that was read and parsed successfully.
#[derive(Debug)]
struct RateFile {
    name: String,
    rates: Vec<Rate>,
}

/// Runs an `fx` command.
pub async fn run(config: &Config, command: FxCommand) -> anyhow::Result<()> {
    match command {
        FxCommand::Import { files } => {
            // Read all files first, so that an error in the last file is found before anything is
            // stored.
            let today = Day::of(system::runtime().now());
            wiring::require_database(config)?;
            let parsed = tokio::task::spawn_blocking(move || read_all(&files, today)).await??;
            let store = wiring::open_existing(config).await?.0;
            let done = import(&*store, parsed).await;
            store.close().await;
            done
        }
        FxCommand::Status => {
            let store = wiring::open_existing(config).await?.0;
            let result = status(config, &*store).await;
            store.close().await;
            result
        }
    }
}

fn read_all(files: &[PathBuf], today: Day) -> anyhow::Result<Vec<RateFile>> {
    files.iter().map(|file| read(file, today)).collect()
}

fn read(file: &Path, today: Day) -> anyhow::Result<RateFile> {
    let (name, content) = if file == Path::new(STANDARD_INPUT) {
        (
            "standard input".to_owned(),
            read_limited(io::stdin().lock()),
        )
    } else {
        let content = File::open(file).and_then(read_limited);
        (file.display().to_string(), content)
    };
    let content = content.with_context(|| format!("cannot read {name}"))?;
    let rates = rates::parse(&content, today)
        .with_context(|| format!("cannot import {name}; nothing was stored"))?;
    Ok(RateFile { name, rates })
}

/// Reads up to one byte over the limit, which is enough to detect an oversized file.
fn read_limited(input: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let bytes_max = RATES_FILE_BYTES_MAX as u64 + 1;
    input.take(bytes_max).read_to_end(&mut content)?;
    Ok(content)
}

async fn import(store: &dyn Rates, files: Vec<RateFile>) -> anyhow::Result<()> {
    for RateFile { name, rates } in files {
        let summary = summary(&rates);
        let mut progress = Progress::of(&name, rates.len());
        let at = system::runtime().now();
        let changed = rates::import(store, rates, at, |stored| progress.show(stored)).await;
        progress.clear();
        let changed = changed.with_context(|| {
            format!("{name} was only partly stored; import it again, which is safe to repeat")
        })?;
        print_line(format!("{name}: {summary}; {changed} new or different"));
    }
    Ok(())
}

/// Describes the number of rates, their currencies and days.
fn summary(rates: &[Rate]) -> String {
    let codes: BTreeSet<&str> = rates.iter().map(|rate| rate.currency.as_str()).collect();
    let days: BTreeSet<Day> = rates.iter().map(|rate| rate.day).collect();
    let counted = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {more}"),
    };
    let days = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => {
            format!("{} days from {first} to {last}", days.len())
        }
        (Some(only), _) => only.to_string(),
        (None, _) => "no day".to_owned(),
    };
    format!(
        "{} for {} ({}), {days}",
        counted(rates.len(), "rate", "rates"),
        counted(codes.len(), "currency", "currencies"),
        codes.into_iter().collect::<Vec<_>>().join(" "),
    )
}

/// Progress line for a long import, shown on a terminal.
struct Progress<'a> {
    name: &'a str,
    total: usize,
    is_shown: bool,
}

impl<'a> Progress<'a> {
    fn of(name: &'a str, all: usize) -> Self {
        let is_shown = all > RATES_PER_IMPORT && io::stderr().is_terminal();
        Self {
            name,
            total: all,
            is_shown,
        }
    }

    fn show(&mut self, stored: usize) {
        if self.is_shown {
            let mut stderr = io::stderr().lock();
            let _gone = write!(stderr, "\r{}: {stored} of {} rates", self.name, self.total);
            let _gone = stderr.flush();
        }
    }

    /// Clears the line for the next output.
    fn clear(&mut self) {
        if self.is_shown {
            let _gone = write!(io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}

async fn status(config: &Config, store: &dyn Rates) -> anyhow::Result<()> {
    let imported = rates::latest_imported_day(store).await?;
    let today = Day::of(system::runtime().now());
    let second = rates::latest_second_source_day(store, today).await?;
    for line in status_lines(imported, today, config.rates.url.is_some()) {
        print_line(line);
    }
    print_line(second_source_line(
        second,
        today,
        config.rates.second_url.is_some(),
    ));
    Ok(())
}

/// Returns the status lines, based on the dollar's rate, which all conversions require.
fn status_lines(imported: Option<Day>, today: Day, is_fetched: bool) -> Vec<String> {
    let source = if is_fetched {
        "fetched from rates.url every few hours"
    } else {
        "not fetched: rates.url is not set"
    };
    let until = imported.map_or_else(
        || "no dollar rate".to_owned(),
        |day| format!("up to {day}, based on the dollar rate"),
    );
    let state = match staleness(latest_day(imported), today) {
        Staleness::Fresh => "The rates are fresh.".to_owned(),
        Staleness::Stale { days } => format!(
            "The rates are stale: the latest dollar rate is {days} days old. Amounts are still \
             converted; import newer rates with `tributary fx import FILE`."
        ),
    };
    vec![
        format!("compiled in: up to {SNAPSHOT_DAY}"),
        format!("imported: {until} ({source})"),
        state,
    ]
}

/// Returns the status line for currencies that only the second source publishes.
fn second_source_line(latest: Day, today: Day, is_fetched: bool) -> String {
    let source = if is_fetched {
        "fetched from rates.second_url every few hours"
    } else {
        "not fetched: rates.second_url is not set"
    };
    let age = match staleness(latest, today) {
        Staleness::Fresh => String::new(),
        Staleness::Stale { days } => format!(", {days} days old"),
    };
    format!("other currencies: up to {latest}{age} ({source})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use rstest::rstest;
    use std::fs;

    const ONE: &str = "date,currency,perEur\n2024-03-18,UAH,42.6\n";
    const FUTURE: &str = "date,currency,perEur\n2024-03-18,USD,1.1\n2099-01-01,USD,1.5\n";
    const SEVERAL: &str = "Date,USD,JPY,\n2024-03-18,1.0872,162.43,\n2024-03-15,1.0890,N/A,\n";

    fn today() -> Day {
        Day::parse("2024-03-19").unwrap()
    }

    #[rstest]
    #[case::one(ONE, "1 rate for 1 currency (UAH), 2024-03-18")]
    #[case::several(
        SEVERAL,
        "3 rates for 2 currencies (JPY USD), 2 days from 2024-03-15 to 2024-03-18"
    )]
    fn summarises_a_file(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(
            summary(&rates::parse(text.as_bytes(), today()).unwrap()),
            expected
        );
    }

    #[test]
    fn an_error_in_the_last_file_is_reported_before_anything_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let (good, bad) = (
            folder.path().join("good.csv"),
            folder.path().join("bad.csv"),
        );
        fs::write(&good, ONE).unwrap();
        fs::write(
            &bad,
            "date,currency,perEur\n2024-03-18,UAH,42.6\n2024-03-19,UAH,much\n",
        )
        .unwrap();
        let error = read_all(&[good, bad], today()).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("bad.csv; nothing was stored"), "{text}");
        assert!(
            text.contains("line 3: UAH: must be a decimal number"),
            "{text}"
        );
    }

    #[test]
    fn rejects_future_rates() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("future.csv");
        fs::write(&file, FUTURE).unwrap();
        let text = format!("{:#}", read(&file, today()).unwrap_err());
        assert!(
            text.contains("line 3: 2099-01-01 is later than tomorrow, 2024-03-20"),
            "{text}"
        );
    }

    #[rstest]
    #[case::missing("missing.csv")]
    #[case::a_folder(".")]
    fn names_an_unreadable_file(#[case] name: &str) {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&folder.path().join(name), today()).unwrap_err();
        assert!(error.to_string().starts_with("cannot read"), "{error:#}");
    }

    #[tokio::test]
    async fn a_later_file_overrides_an_earlier_one() {
        let (store, _folder) = testing::store().await;
        let parsed = |text: &str| RateFile {
            name: "test".to_owned(),
            rates: rates::parse(text.as_bytes(), today()).unwrap(),
        };
        let corrected = "date,currency,perEur\n2024-03-18,UAH,42.7\n";
        import(&*store, vec![parsed(ONE), parsed(corrected)])
            .await
            .unwrap();
        let changed = async |text: &str| {
            let at = system::runtime().now();
            store.import_rates(parsed(text).rates, at).await.unwrap()
        };
        assert_eq!(changed(corrected).await, 0, "the later rate is stored");
        assert_eq!(changed(ONE).await, 1, "the earlier rate is not");
    }

    #[rstest]
    #[case::fresh("2026-10-02", true, "up to 2026-10-02 (fetched from rates.second_url")]
    #[case::old("2026-09-29", true, "up to 2026-09-29, 10 days old (")]
    #[case::not_fetched("2026-09-29", false, "(not fetched: rates.second_url is not set")]
    fn status_shows_the_second_source(
        #[case] latest: &str,
        #[case] is_fetched: bool,
        #[case] part: &str,
    ) {
        let day = |text: &str| Day::parse(text).unwrap();
        let line = second_source_line(day(latest), day("2026-10-09"), is_fetched);
        assert!(line.contains(part), "{line}");
    }

    #[rstest]
    #[case::never_imported(None, "2026-09-20", "imported: no dollar rate", "fresh")]
    #[case::fresh(
        Some("2026-10-01"),
        "2026-10-05",
        "imported: up to 2026-10-01",
        "fresh"
    )]
    #[case::stale(
        Some("2026-10-01"),
        "2026-10-09",
        "imported: up to 2026-10-01",
        "8 days old"
    )]
    #[case::older_than_the_snapshot(Some("2024-01-01"), "2026-09-20", "up to 2024-01-01", "fresh")]
    fn status_shows_the_age_of_the_rates(
        #[case] imported: Option<&str>,
        #[case] today: &str,
        #[case] second: &str,
        #[case] third: &str,
    ) {
        let day = |text: &str| Day::parse(text).unwrap();
        let lines = status_lines(imported.map(day), day(today), true);
        assert_eq!(lines[0], "compiled in: up to 2026-09-14");
        assert!(
            lines[1].contains(second) && lines[2].contains(third),
            "{lines:?}"
        );
    }
}
