//! Logging: records to standard error, as text for people or as one JSON object per line for programs.
//!
//! What may be logged is not decided here. Secrets print themselves as `***`, and the line per request is
//! written where requests are answered.

use crate::config::{Log, LogFormat, log_filter};
use std::io::{self, IsTerminal as _};
use tracing::Subscriber;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

/// Crates that would write what must not be written, whatever level the operator chose: the PostgreSQL
/// driver logs the parameters of statements, and the HTTP crates whole requests.
const CAPPED: &[&str] = &[
    "tokio_postgres=info",
    "hyper=info",
    "hyper_util=info",
    "h2=info",
];

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter cannot be read.
    #[error("log.level {0}")]
    Level(&'static str),
    /// There is one already.
    #[error("logging was set up twice")]
    Twice(#[source] TryInitError),
}

/// Starts logging for the whole process.
pub fn init(log: &Log) -> Result<(), LoggingError> {
    subscriber(log, io::stderr().is_terminal(), io::stderr)?
        .try_init()
        .map_err(LoggingError::Twice)
}

fn subscriber<W>(
    log: &Log,
    is_terminal: bool,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LoggingError>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let mut filter = log_filter(&log.level).map_err(LoggingError::Level)?;
    for directive in CAPPED {
        filter = filter.add_directive(
            directive
                .parse()
                .map_err(|_| LoggingError::Level("is odd"))?,
        );
    }
    let mut builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer);
    if !is_terminal {
        // Only ever switched off: the default minds NO_COLOR, and `with_ansi(true)` would not.
        builder = builder.with_ansi(false);
    }
    Ok(match log.format {
        LogFormat::Text => Box::new(builder.finish()),
        // Fields beside the message, where programs look for them; the innermost span is enough, since the
        // request id is on it.
        LogFormat::Json => Box::new(
            builder
                .json()
                .flatten_event(true)
                .with_span_list(false)
                .finish(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let log = Log {
            format,
            level: level.to_owned(),
        };
        let subscriber = subscriber(&log, is_terminal, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            let _entered = tracing::info_span!("http.request", request.id = "r1").entered();
            tracing::info!(status = 200, "answered\nInjected line");
            tracing::debug!("detail");
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_is_one_object_per_line_with_its_fields_beside_the_message() {
        let text = logged(LogFormat::Json, "debug", false);
        let records: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0]["message"], "answered\nInjected line");
        assert_eq!(records[0]["status"], 200);
        assert_eq!(records[0]["span"]["request.id"], "r1");
    }

    #[test]
    fn text_has_no_colours_where_nobody_looks() {
        assert!(!logged(LogFormat::Text, "info", false).contains('\u{1b}'));
    }

    #[test]
    fn crates_that_log_parameters_are_capped_whatever_the_level() {
        let log = Log {
            format: LogFormat::Text,
            level: "trace,tokio_postgres=trace,hyper=trace".to_owned(),
        };
        let subscriber = subscriber(&log, false, io::sink).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            assert!(!tracing::enabled!(target: "tokio_postgres::query", tracing::Level::DEBUG));
            assert!(!tracing::enabled!(target: "hyper::proto", tracing::Level::DEBUG));
            assert!(tracing::enabled!(tracing::Level::TRACE), "others are not");
        });
    }

    #[test]
    fn the_level_decides_what_is_written() {
        assert!(logged(LogFormat::Text, "debug", false).contains("detail"));
        assert!(!logged(LogFormat::Text, "info", false).contains("detail"));
        assert_eq!(logged(LogFormat::Text, "off", false), "");
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        let log = Log {
            format: LogFormat::Text,
            level: "loud".to_owned(),
        };
        assert!(matches!(
            subscriber(&log, false, io::sink),
            Err(LoggingError::Level(_))
        ));
    }
}
