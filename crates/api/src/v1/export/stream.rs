//! Streams an export part by part, so that memory use stays low and database snapshots stay short.

use super::compression::Compressor;
use super::file::{ExportBody, ExportChunk};
use super::records::{self, ExportRecords};
use crate::days::DayFilter;
use crate::error::ApiError;
use crate::state::ApiState;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tracing::Instrument as _;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keywords;
use tributary_domain::report::Period;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::LogPart;

/// Number of records per part. Such a part is one or two megabytes long.
const PART_RECORDS: u32 = 2_000;
/// Parts read ahead of the writer, including the one being read.
const PARTS_AHEAD_MAX: usize = 2;
/// Chunks buffered for a slow client.
const CHUNKS_BUFFERED_MAX: usize = 2;

/// Kind of exported records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExportKind {
    Events,
    Installs,
    Clicks,
}

keywords! { ExportKind { Events => "events", Installs => "installs", Clicks => "clicks" } }

/// File format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExportFormat {
    Csv,
    Ndjson,
}

keywords! { ExportFormat { Csv => "csv", Ndjson => "ndjson" } }

impl ExportFormat {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
        }
    }
}

/// A running export.
pub(super) struct Export {
    pub(super) kind: ExportKind,
    pub(super) format: ExportFormat,
    pub(super) gzip: bool,
    pub(super) period: Period,
    pub(super) app: AppId,
    pub(super) reader: Authorized<AnalyticsRead>,
    pub(super) state: ApiState,
}

impl Export {
    /// Starts the export and returns the streaming response.
    pub(super) fn into_response(self, days: DayFilter) -> Response {
        let (sender, file) = ExportBody::new(CHUNKS_BUFFERED_MAX);
        let day = |prefix: &str, day: Option<Day>| {
            day.map_or_else(String::new, |day| format!("{prefix}{day}"))
        };
        let name = format!(
            "attachment; filename=\"{}{}{}.{}\"",
            self.kind.as_str(),
            day("-from-", days.from),
            day("-to-", days.to),
            self.format.as_str()
        );
        let content_type = HeaderValue::from_static(self.format.content_type());
        let gzip = self.gzip;
        tokio::spawn(self.run(sender).in_current_span());
        let mut response = Body::new(file).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type);
        if let Ok(name) = HeaderValue::from_str(&name) {
            headers.insert(header::CONTENT_DISPOSITION, name);
        }
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        // Prevents proxies from buffering the whole file.
        let unbuffered = HeaderName::from_static("x-accel-buffering");
        headers.insert(unbuffered, HeaderValue::from_static("no"));
        response
    }

    async fn run(self, file: mpsc::Sender<ExportChunk>) {
        let (read, parts) = mpsc::channel(PARTS_AHEAD_MAX);
        let writing = ExportWriter {
            kind: self.kind,
            format: self.format,
            gzip: self.gzip,
            tokens: self.state.click_tokens.clone(),
        };
        tokio::join!(self.read(read), writing.write(parts, file));
    }

    /// Reads parts while the writer accepts them. An empty part marks the end.
    async fn read(&self, parts: mpsc::Sender<ExportRecords>) {
        let mut after = None;
        while let Ok(permit) = parts.reserve().await {
            // The error has already been logged. Without the empty part, the file is incomplete.
            let Ok(part) = self.next(after).await else {
                return;
            };
            after = part.last();
            permit.send(part);
            if after.is_none() {
                return;
            }
        }
    }

    /// Reads the part after a record.
    async fn next(&self, after: Option<[u8; 16]>) -> Result<ExportRecords, ApiError> {
        let store = &self.state.store;
        if self.kind == ExportKind::Clicks {
            let clicks = store.log_clicks(&self.reader, self.app, self.part(after));
            return Ok(ExportRecords::Clicks(clicks.await?));
        }
        let installs = self.kind == ExportKind::Installs;
        let events = store.log_events(&self.reader, self.app, self.part(after), installs);
        Ok(ExportRecords::Events(events.await?))
    }

    fn part<I: LogId>(&self, after: Option<[u8; 16]>) -> LogPart<I> {
        LogPart {
            after: after.map(I::from_cursor),
            from: self.period.0,
            until: self.period.1,
            limit: PART_RECORDS,
        }
    }
}

/// Writes parts to the file.
struct ExportWriter {
    kind: ExportKind,
    format: ExportFormat,
    gzip: bool,
    tokens: ClickTokens,
}

impl ExportWriter {
    /// Writes parts as they arrive. An empty part completes the file.
    async fn write(
        self,
        mut parts: mpsc::Receiver<ExportRecords>,
        file: mpsc::Sender<ExportChunk>,
    ) {
        let mut packing = Compressor::new(self.gzip);
        if self.format == ExportFormat::Csv {
            packing.write(records::header(self.kind).as_bytes().to_vec());
        }
        while let Some(part) = parts.recv().await {
            if part.last().is_none() {
                for piece in [ExportChunk::Bytes(packing.finish()), ExportChunk::End] {
                    let _disconnected = file.send(piece).await;
                }
                return;
            }
            let (tokens, format) = (self.tokens.clone(), self.format);
            // On the async runtime, formatting and compression would block other tasks for too
            // long.
            let written = tokio::task::spawn_blocking(move || {
                packing.write(part.lines(format, &tokens));
                packing
            });
            let Ok(written) = written.await else {
                return;
            };
            packing = written;
            let bytes = packing.take();
            if !bytes.is_empty() && file.send(ExportChunk::Bytes(bytes)).await.is_err() {
                return;
            }
        }
    }
}

/// Id that serves as a position in the log.
trait LogId {
    fn from_cursor(bytes: [u8; 16]) -> Self;
}

impl LogId for tributary_domain::vocabulary::id::EventId {
    fn from_cursor(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes)
    }
}

impl LogId for tributary_domain::vocabulary::id::ClickId {
    fn from_cursor(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use tributary_domain::keyring::Keyring;

    /// Returns the file that a client receives for these parts.
    async fn file(gzip: bool, parts: Vec<ExportRecords>) -> Option<Vec<u8>> {
        let writing = ExportWriter {
            kind: ExportKind::Clicks,
            format: ExportFormat::Csv,
            gzip,
            tokens: ClickTokens::new(&Keyring::new([7; 32])),
        };
        let (read, waiting) = mpsc::channel(parts.len().max(1));
        for part in parts {
            assert!(read.send(part).await.is_ok());
        }
        drop(read);
        let (sender, file) = ExportBody::new(CHUNKS_BUFFERED_MAX);
        let (whole, ()) = tokio::join!(file.collect(), writing.write(waiting, sender));
        Some(whole.ok()?.to_bytes().to_vec())
    }

    #[tokio::test]
    async fn the_empty_part_completes_the_file() {
        let whole = file(false, vec![ExportRecords::Clicks(Vec::new())]).await;
        let header = records::header(ExportKind::Clicks).as_bytes();
        assert_eq!(whole.as_deref(), Some(header));
        assert!(
            file(true, vec![ExportRecords::Clicks(Vec::new())])
                .await
                .is_some()
        );
    }

    #[tokio::test]
    async fn a_failed_reader_aborts_the_file() {
        assert_eq!(file(false, Vec::new()).await, None);
        assert_eq!(file(true, Vec::new()).await, None);
    }
}
