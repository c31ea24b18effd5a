//! The file while it is made: one part of the log after the other, so that neither memory nor a snapshot grows
//! with what is exported.

use super::packing::Packing;
use super::records::{self, Records};
use crate::error::ApiError;
use crate::state::ApiState;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use tokio::sync::mpsc;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::Period;
use tributary_domain::report::range::Range;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::LogPart;

/// Records of one part: a megabyte or two.
const PART_RECORDS: u32 = 2_000;
/// Parts that were read and wait to be written: the next one is read meanwhile.
const PARTS_AHEAD_MAX: usize = 1;
/// Written parts that wait for a slow client.
const PARTS_WAITING_MAX: usize = 2;

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Events,
    Installs,
    Clicks,
}

impl Kind {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let all = [Self::Events, Self::Installs, Self::Clicks];
        all.into_iter().find(|kind| kind.as_str() == text)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Installs => "installs",
            Self::Clicks => "clicks",
        }
    }
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Ndjson,
}

impl Format {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let all = [Self::Csv, Self::Ndjson];
        all.into_iter().find(|format| format.as_str() == text)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
        }
    }
}

/// An export.
pub(super) struct Export {
    pub(super) kind: Kind,
    pub(super) format: Format,
    pub(super) gzip: bool,
    pub(super) period: Period,
    pub(super) app: AppId,
    pub(super) reader: Authorized<AnalyticsRead>,
    pub(super) state: ApiState,
}

/// Why a file broke off.
type BrokenOff = Box<dyn std::error::Error + Send + Sync>;

impl Export {
    /// The answer, whose body is made while it is read.
    pub(super) fn into_response(self, range: &Range) -> Response {
        let (sender, body) = Channel::<Bytes, BrokenOff>::new(PARTS_WAITING_MAX);
        let name = format!(
            "attachment; filename=\"{}-{}-{}.{}\"",
            self.kind.as_str(),
            range.from,
            range.to,
            self.format.as_str()
        );
        let content_type = HeaderValue::from_static(self.format.content_type());
        let gzip = self.gzip;
        tokio::spawn(self.run(sender));
        let mut response = Body::new(body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type);
        if let Ok(name) = HeaderValue::from_str(&name) {
            headers.insert(header::CONTENT_DISPOSITION, name);
        }
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        // A proxy that waits for the end would hold all of it.
        let unbuffered = HeaderName::from_static("x-accel-buffering");
        headers.insert(unbuffered, HeaderValue::from_static("no"));
        response
    }

    async fn run(self, sender: Sender<Bytes, BrokenOff>) {
        let (read, parts) = mpsc::channel(PARTS_AHEAD_MAX);
        tokio::join!(self.read(read), self.write(parts, sender));
    }

    /// Reads one part after the other, as long as somebody takes them.
    async fn read(&self, parts: mpsc::Sender<Result<Records, ApiError>>) {
        let mut after = None;
        loop {
            let part = self.next(after).await;
            after = part.as_ref().ok().and_then(Records::last);
            if parts.send(part).await.is_err() || after.is_none() {
                return;
            }
        }
    }

    /// Writes parts as they come.
    async fn write(
        &self,
        mut parts: mpsc::Receiver<Result<Records, ApiError>>,
        mut sender: Sender<Bytes, BrokenOff>,
    ) {
        let mut packing = Packing::new(self.gzip);
        if self.format == Format::Csv {
            packing.write(records::header(self.kind).as_bytes().to_vec());
        }
        while let Some(part) = parts.recv().await {
            let Ok(part) = part else {
                // The log has the reason. The client must see that this is not the end.
                sender.abort("the log could not be read".into());
                return;
            };
            let tokens = self.state.click_tokens.clone();
            let format = self.format;
            // To write and pack a part takes longer than others may wait for this thread.
            let written = tokio::task::spawn_blocking(move || {
                packing.write(part.lines(format, &tokens));
                packing
            });
            let Ok(done) = written.await else {
                sender.abort("a part could not be written".into());
                return;
            };
            packing = done;
            let bytes = packing.take();
            if !bytes.is_empty() && sender.send_data(bytes).await.is_err() {
                return;
            }
        }
        let _gone = sender.send_data(packing.finish()).await;
    }

    /// The part behind a record.
    async fn next(&self, after: Option<[u8; 16]>) -> Result<Records, ApiError> {
        let store = &self.state.store;
        if self.kind == Kind::Clicks {
            let clicks = store.log_clicks(&self.reader, self.app, self.part(after));
            return Ok(Records::Clicks(clicks.await?));
        }
        let installs = self.kind == Kind::Installs;
        let events = store.log_events(&self.reader, self.app, self.part(after), installs);
        Ok(Records::Events(events.await?))
    }

    fn part<I: From16>(&self, after: Option<[u8; 16]>) -> LogPart<I> {
        LogPart {
            after: after.map(I::from16),
            from: self.period.0,
            until: self.period.1,
            limit: PART_RECORDS,
        }
    }
}

/// An id that a part of the log begins behind.
trait From16 {
    fn from16(bytes: [u8; 16]) -> Self;
}

impl From16 for tributary_domain::vocabulary::id::EventId {
    fn from16(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes)
    }
}

impl From16 for tributary_domain::vocabulary::id::ClickId {
    fn from16(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes)
    }
}
