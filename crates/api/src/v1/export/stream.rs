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
use bytes::Bytes;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tracing::Instrument as _;
use tributary_domain::access::admission::SlotHolder;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keywords;
use tributary_domain::report::Period;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::LogPart;
use tributary_store::report_slots::ReportSlot;

/// Number of records per part. Such a part is about half a megabyte long: an export holds two parts
/// in memory, however slowly the client reads.
const PART_RECORDS: u32 = 1_000;
/// Maximum size of a chunk. The client must take one within `Timeouts::export_idle`.
const CHUNK_BYTES_MAX: usize = 64 * 1024;
/// Chunks buffered for a slow client.
pub(in crate::v1) const CHUNKS_BUFFERED_MAX: usize = 1;
/// How long an export waits for the slot of its next part before it fails.
pub(in crate::v1) const PART_WAIT_MAX: Duration = Duration::from_mins(1);

/// Answers with a file that is sent part by part. `name` is the value of `Content-Disposition`.
pub(in crate::v1) fn streamed_file(
    file: ExportBody,
    content_type: HeaderValue,
    name: Option<HeaderValue>,
) -> Response {
    let mut response = Body::new(file).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    if let Some(name) = name {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    // Prevents proxies from buffering the whole file.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    response
}

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
    /// Freed when the last part is sent or the client disconnects.
    pub(super) _slot: ReportSlot,
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
        let mut response = streamed_file(file, content_type, HeaderValue::from_str(&name).ok());
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }

    /// Sends one part while the next one is read and formatted.
    async fn run(self, file: mpsc::Sender<ExportChunk>) {
        let holder = SlotHolder::from(&self.reader);
        let mut progress = ExportProgress {
            writer: ExportWriter::new(&self),
            after: None,
        };
        let idle_max = self.state.timeouts.export_idle;
        let mut ready = Bytes::new();
        loop {
            let next = self.prepare_part(progress, &holder);
            let sent = send_in_chunks(&file, ready, idle_max);
            let (sent, next) = tokio::join!(sent, next);
            let (Some(()), Some(part)) = (sent, next) else {
                return;
            };
            let Some(next) = part.next else {
                if send_in_chunks(&file, part.bytes, idle_max).await.is_some() {
                    let _sent = send_chunk(&file, ExportChunk::End, idle_max).await;
                }
                return;
            };
            (ready, progress) = (part.bytes, next);
        }
    }

    /// Reads and formats the next part. Takes a report slot meanwhile, so that exports share the
    /// database and the processor with reports. Returns `None` after an error, which is logged;
    /// without the end marker, the client knows that the file is incomplete.
    async fn prepare_part(
        &self,
        progress: ExportProgress,
        holder: &SlotHolder,
    ) -> Option<PreparedPart> {
        let slots = &self.state.report_slots;
        let Ok(_slot) = slots.admit_part(holder, PART_WAIT_MAX).await else {
            tracing::warn!("export aborted: no slot for its next part");
            return None;
        };
        let part = self.next(progress.after).await.ok()?;
        let after = part.last();
        if after.is_none() {
            let bytes = progress.writer.finish();
            return Some(PreparedPart { bytes, next: None });
        }
        let (writer, bytes) = progress.writer.write(part).await?;
        let next = Some(ExportProgress { writer, after });
        Some(PreparedPart { bytes, next })
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

/// Sends bytes in chunks. Returns `None` if the client has disconnected or is too slow.
pub(in crate::v1) async fn send_in_chunks(
    file: &mpsc::Sender<ExportChunk>,
    mut bytes: Bytes,
    idle_max: Duration,
) -> Option<()> {
    while !bytes.is_empty() {
        let chunk = bytes.split_to(bytes.len().min(CHUNK_BYTES_MAX));
        send_chunk(file, ExportChunk::Bytes(chunk), idle_max).await?;
    }
    Some(())
}

/// Sends a chunk or the end marker. Returns `None` if the client has disconnected or is too slow.
pub(in crate::v1) async fn send_chunk(
    file: &mpsc::Sender<ExportChunk>,
    chunk: ExportChunk,
    idle_max: Duration,
) -> Option<()> {
    match file.send_timeout(chunk, idle_max).await {
        Ok(()) => Some(()),
        Err(SendTimeoutError::Closed(_)) => None,
        Err(SendTimeoutError::Timeout(_)) => {
            tracing::info!("export aborted: the client reads too slowly");
            None
        }
    }
}

/// Where an export continues.
struct ExportProgress {
    writer: ExportWriter,
    /// Last record of the previous part.
    after: Option<[u8; 16]>,
}

/// The next bytes of the file.
struct PreparedPart {
    bytes: Bytes,
    /// `None` after the last record.
    next: Option<ExportProgress>,
}

/// Formats and compresses parts.
struct ExportWriter {
    format: ExportFormat,
    tokens: ClickTokens,
    packing: Compressor,
}

impl ExportWriter {
    fn new(export: &Export) -> Self {
        let tokens = export.state.click_tokens.clone();
        Self::with_header(export.kind, export.format, export.gzip, tokens)
    }

    fn with_header(
        kind: ExportKind,
        format: ExportFormat,
        gzip: bool,
        tokens: ClickTokens,
    ) -> Self {
        let mut packing = Compressor::new(gzip);
        if format == ExportFormat::Csv {
            packing.write(records::header(kind).as_bytes().to_vec());
        }
        Self {
            format,
            tokens,
            packing,
        }
    }

    /// Returns the bytes of a part that can be sent now, or `None` after a bug. On the async
    /// runtime, formatting and compression would block other tasks for too long.
    async fn write(mut self, part: ExportRecords) -> Option<(Self, Bytes)> {
        let written = tokio::task::spawn_blocking(move || {
            self.packing.write(part.lines(self.format, &self.tokens));
            let bytes = self.packing.take();
            (self, bytes)
        });
        written.await.ok()
    }

    /// Returns the last bytes of the file.
    fn finish(self) -> Bytes {
        self.packing.finish()
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
    use rstest::rstest;
    use std::io::Read as _;
    use tributary_domain::keyring::Keyring;

    #[rstest]
    #[case::plain(false)]
    #[case::gzip(true)]
    #[tokio::test]
    async fn a_file_without_records_has_a_header(#[case] gzip: bool) {
        let tokens = ClickTokens::new(&Keyring::new([7; 32]));
        let writer = ExportWriter::with_header(ExportKind::Clicks, ExportFormat::Csv, gzip, tokens);
        let empty = ExportRecords::Clicks(Vec::new());
        let (writer, first) = writer.write(empty).await.unwrap();
        let mut file = [first, writer.finish()].concat();
        if gzip {
            let packed = std::mem::take(&mut file);
            let mut reader = flate2::read::GzDecoder::new(packed.as_slice());
            reader.read_to_end(&mut file).unwrap();
        }
        assert_eq!(file, records::header(ExportKind::Clicks).as_bytes());
    }

    /// Otherwise a client that reads a byte now and then would keep its slot after the last chunk.
    #[tokio::test(start_paused = true)]
    async fn the_end_marker_does_not_wait_for_a_slow_client() {
        let (sender, _unread) = ExportBody::new(CHUNKS_BUFFERED_MAX);
        let idle_max = Duration::from_secs(30);
        let last = ExportChunk::Bytes(Bytes::from_static(b"last"));
        assert!(send_chunk(&sender, last, idle_max).await.is_some());
        let end = send_chunk(&sender, ExportChunk::End, idle_max);
        assert!(end.await.is_none());
    }
}
