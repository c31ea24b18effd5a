//! Logging to standard error, as text for people or as one JSON object per line for programs.
//!
//! This module does not decide what may be logged. Secrets print themselves as `***`, and the API
//! logs each request.

mod lossy;
mod time;

pub(crate) use lossy::dropped_lines;

use crate::config::{LogConfig, LogFormat, log_filter};
use lossy::{BufferedOutput, LogBuffer};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal as _};
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::time::Duration;
use time::LogTime;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

/// Crates that log sensitive data: the PostgreSQL driver logs statement parameters, and the HTTP
/// crates log whole requests.
const CAPPED_CRATES: &[&str] = &["tokio_postgres", "hyper", "hyper_util", "h2"];
/// Most verbose level for these crates.
const MAX_LEVEL: LevelFilter = LevelFilter::INFO;

/// Longest wait for buffered lines after a panic and at the end of the process. Standard error takes
/// longer only if its reader has stopped.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Reason why logging could not be initialised.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter is invalid.
    #[error("log.level {0}")]
    Level(&'static str),
    /// Logging is already initialised.
    #[error("logging is already initialised")]
    AlreadyInitialized(#[source] TryInitError),
    /// The thread that writes the lines could not be started.
    #[error("cannot start the log thread")]
    Thread(#[source] io::Error),
}

/// Writes the remaining lines when dropped. Keep it until the end of the process.
#[must_use]
pub struct LogGuard(Arc<LogBuffer>);

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.0.flush(FLUSH_MAX);
    }
}

/// Initialises logging for the whole process.
pub fn init(log: &LogConfig) -> Result<LogGuard, LoggingError> {
    let buffer = LogBuffer::start(io::stderr()).map_err(LoggingError::Thread)?;
    let output = BufferedOutput(buffer.clone());
    subscriber(log, io::stderr().is_terminal(), output)?
        .try_init()
        .map_err(LoggingError::AlreadyInitialized)?;
    let panicked = buffer.clone();
    std::panic::set_hook(Box::new(move |panic| {
        log_panic(panic);
        // The process may be about to end.
        panicked.flush(FLUSH_MAX);
    }));
    Ok(LogGuard(buffer))
}

/// Logs a panic like any other error, in the configured format and with the request's fields.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("(no message)");
    let location = panic.location().map(ToString::to_string);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then_some(backtrace);
    tracing::error!(
        location,
        backtrace = backtrace.as_ref().map(tracing::field::display),
        "panicked: {message}"
    );
}

fn subscriber<W>(
    log: &LogConfig,
    is_terminal: bool,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LoggingError>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let filter = log_filter(&log.level).map_err(LoggingError::Level)?;
    let mut builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_timer(LogTime)
        // Internal errors would go through `eprintln!`, which panics if standard error cannot be
        // written.
        .log_internal_errors(false)
        .with_writer(writer);
    if !is_terminal {
        // Only ever disable colours: the default respects NO_COLOR, but `with_ansi(true)` would
        // not.
        builder = builder.with_ansi(false);
    }
    Ok(match log.format {
        LogFormat::Text => filtered(builder.finish(), &log.level, filter),
        // Put fields next to the message, where programs expect them. The innermost span is enough,
        // because it has the request id.
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_span_list(false);
            filtered(builder.finish(), &log.level, filter)
        }
    })
}

/// Adds the filters. `EnvFilter` takes a lock whenever a request's span is created, entered, left or
/// closed, so it is used only if a directive names a span or field, which `Targets` cannot do.
fn filtered<S>(subscriber: S, level: &str, filter: EnvFilter) -> Box<dyn Subscriber + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let cap = filter_fn(is_allowed);
    let targets = level.parse::<Targets>().ok();
    match targets.filter(|_| !level.contains('[')) {
        Some(targets) => Box::new(subscriber.with(targets).with(cap)),
        None => Box::new(subscriber.with(filter).with(cap)),
    }
}

/// Returns whether a record's level is allowed for its crate. This check is not a filter directive,
/// because a more specific directive from the operator would override it.
///
/// Records from the `log` crate are checked twice, and either check can reject them: first with
/// their own target and level, then after conversion, with the target `log`.
fn is_allowed(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= MAX_LEVEL || !is_capped(metadata.target())
}

fn is_capped(target: &str) -> bool {
    let its_crate = target.split("::").next().unwrap_or(target);
    CAPPED_CRATES.contains(&its_crate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, level: &str, is_terminal: bool) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = LogConfig {
            format,
            level: level.to_owned(),
        };
        let subscriber = subscriber(&log, is_terminal, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            let _entered = tracing::info_span!("http.request", request.id = "r1").entered();
            tracing::info!(status = 200, "responded\nInjected line");
            tracing::debug!("detail");
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_has_one_object_per_line_with_flat_fields() {
        let text = logged(LogFormat::Json, "debug", false);
        let records: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0]["message"], "responded\nInjected line");
        assert_eq!(records[0]["status"], 200);
        assert_eq!(records[0]["span"]["request.id"], "r1");
    }

    #[test]
    fn text_has_no_colours_without_a_terminal() {
        assert!(!logged(LogFormat::Text, "info", false).contains('\u{1b}'));
    }

    fn at(level: &str) -> LogConfig {
        LogConfig {
            format: LogFormat::Text,
            level: level.to_owned(),
        }
    }

    #[rstest]
    #[case::everything("trace")]
    #[case::by_crate("trace,tokio_postgres=trace,hyper=trace")]
    #[case::by_module("trace,tokio_postgres::query=trace,hyper::proto::h1=trace")]
    #[case::by_span("trace,tokio_postgres::query[{a}]=trace")]
    fn caps_crates_that_log_parameters_at_any_level(#[case] level: &str) {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = subscriber(&at(level), false, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            use tracing::Level;
            assert!(!tracing::enabled!(target: "tokio_postgres::query", Level::DEBUG));
            assert!(!tracing::enabled!(target: "tokio_postgres", Level::TRACE));
            assert!(!tracing::enabled!(target: "hyper::proto::h1", Level::DEBUG));
            assert!(tracing::enabled!(target: "tokio_postgres::query", Level::INFO));
            assert!(tracing::enabled!(target: "hyperion", Level::TRACE));
            tracing::debug!(target: "tokio_postgres::query", "canary");
            tracing::warn!(target: "tokio_postgres::query", "a warning");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(
            !text.contains("canary") && text.contains("a warning"),
            "{text}"
        );
    }

    #[test]
    fn caps_records_of_the_log_crate() {
        use tracing_log::log::{Level, Record};
        let lines = Lines::default();
        let writer = lines.clone();
        let level = "trace,tokio_postgres::query=trace";
        let subscriber = subscriber(&at(level), false, move || writer.clone()).unwrap();
        let record = |target: &str, level: Level, text: &str| {
            // Do what the bridge does with a record.
            let args = format_args!("{text}");
            let record = Record::builder()
                .target(target)
                .level(level)
                .args(args)
                .build();
            tracing_log::format_trace(&record).unwrap();
        };
        tracing::subscriber::with_default(subscriber, || {
            record("tokio_postgres::query", Level::Debug, "canary");
            record("tokio_postgres::connection", Level::Trace, "canary");
            record("tokio_postgres::connection", Level::Info, "a notice");
            record("rustls::client", Level::Debug, "another crate");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(!text.contains("canary"), "{text}");
        assert!(
            text.contains("a notice") && text.contains("another crate"),
            "{text}"
        );
    }

    #[test]
    fn filters_by_level() {
        assert!(logged(LogFormat::Text, "debug", false).contains("detail"));
        assert!(!logged(LogFormat::Text, "info", false).contains("detail"));
        assert_eq!(logged(LogFormat::Text, "off", false), "");
    }

    #[rstest]
    #[case::by_target("info,tributary_server=debug", true)]
    #[case::by_another_target("info,tributary_api=debug", false)]
    #[case::by_span("info,[http.request]=debug", true)]
    #[case::by_field("info,[{request.id=r1}]=debug", true)]
    #[case::by_another_field("info,[{request.id=r2}]=debug", false)]
    fn filters_by_target_and_span(#[case] level: &str, #[case] has_detail: bool) {
        let text = logged(LogFormat::Text, level, false);
        assert_eq!(text.contains("detail"), has_detail, "{text}");
    }

    #[test]
    fn rejects_an_unknown_level() {
        let log = LogConfig {
            format: LogFormat::Text,
            level: "loud".to_owned(),
        };
        assert!(matches!(
            subscriber(&log, false, io::sink),
            Err(LoggingError::Level(_))
        ));
    }
}
