//! `GET /api/v1/audit-log/export` — exports the audit log with its hash chain.

use crate::caller::ExportCaller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, QUERY};
use crate::query::QueryString;
use crate::state::ApiState;
use crate::v1::export::file::{ExportBody, ExportChunk};
use crate::v1::export::stream::{
    CHUNKS_BUFFERED_MAX, PART_WAIT_MAX, send_chunk, send_in_chunks, streamed_file,
};
use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use tokio::sync::mpsc;
use tracing::Instrument as _;
use tributary_domain::access::admission::SlotHolder;
use tributary_domain::access::resource::AuditLogExport;
use tributary_domain::audit::Action;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_store::report_slots::ReportSlot;
use tributary_store::{ActionNote, ChainLines, StoreError};

/// Entries per part. Like the parts of other exports, a part of ordinary entries is about half a
/// megabyte long.
const PART_ENTRIES: u32 = 500;

/// Name of the downloaded file.
const FILE: HeaderValue = HeaderValue::from_static("attachment; filename=\"audit-log.ndjson\"");

/// A running export.
struct RunningExport {
    lines: ChainLines,
    holder: SlotHolder,
    state: ApiState,
    /// Freed when the last part is sent or the client disconnects.
    _slot: ReportSlot,
}

/// Parses a sequence number, which databases store with a sign.
fn sequence(text: &str) -> Result<u64, Problem> {
    let number = text.parse::<i64>().ok().map(u64::try_from);
    number
        .and_then(Result::ok)
        .ok_or_else(|| Problem::new(FaultCode::InvalidFormat, "Must be a sequence number."))
}

#[utoipa::path(
    get, path = "/api/v1/audit-log/export", tag = "Audit log", operation_id = "exportAuditLog",
    summary = "Export the audit log",
    description = "All entries of the organization as NDJSON, oldest first, with their sequence number \
                   and hashes. The entries are a hash chain: `hash` is the SHA-256 of the line without \
                   `hash`, and `previousHash` is the `hash` of the entry before it. `tributary audit \
                   verify --file` verifies the file. The export is audited, as the last entry of the \
                   file. Requires a live key that is not limited to apps.",
    params(
        ("afterSequence" = Option<u64>, Query,
            description = "Begin after the entry with this sequence number, to continue an earlier \
                           export."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [Code::LiveOnly, Code::AppNotAllowed]]))),
    responses((status = 200, description = "One entry per line.",
        content_type = "application/x-ndjson", body = String))
)]
pub(crate) async fn export(
    caller: ExportCaller<AuditLogExport>,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<Response, ApiError> {
    let after = query.read(|parameters| parameters.optional("afterSequence", sequence))?;
    let organization = caller.authorized.whole_organization()?;
    let origin = caller.origin(&state);
    let note = ActionNote {
        organization,
        action: Action::AuditLogExported,
        app: None,
        target: organization.to_string(),
    };
    state.store.note_action(note, origin).await?;
    let running = RunningExport {
        lines: ChainLines::after(organization, after.unwrap_or(0)),
        holder: SlotHolder::from(&caller.authorized),
        _slot: caller.slot,
        state,
    };
    let (sender, file) = ExportBody::new(CHUNKS_BUFFERED_MAX);
    tokio::spawn(running.run(sender).in_current_span());
    let content_type = HeaderValue::from_static("application/x-ndjson");
    Ok(streamed_file(file, content_type, Some(FILE)))
}

impl RunningExport {
    /// Sends all parts. Without the end marker, which is not sent after an error, the client knows
    /// that the file is incomplete.
    async fn run(mut self, file: mpsc::Sender<ExportChunk>) {
        let idle_max = self.state.timeouts.export_idle;
        loop {
            let (bytes, has_more) = match self.next_part().await {
                Ok(part) => part,
                Err(error) => {
                    tracing::warn!(%error, "export of the audit log aborted");
                    return;
                }
            };
            if send_in_chunks(&file, bytes.into(), idle_max)
                .await
                .is_none()
            {
                return;
            }
            if !has_more {
                break;
            }
        }
        let _sent = send_chunk(&file, ExportChunk::End, idle_max).await;
    }

    /// Reads the next part, and returns whether more follow. Takes a report slot meanwhile, so that
    /// exports share the database with reports.
    async fn next_part(&mut self) -> Result<(Vec<u8>, bool), StoreError> {
        let slots = &self.state.report_slots;
        let slot = slots.admit_part(&self.holder, PART_WAIT_MAX).await;
        let _slot = slot.map_err(|error| StoreError::unavailable("audit_chain_page", error))?;
        let part = self.lines.next(&*self.state.store, PART_ENTRIES).await?;
        let Some(part) = part else {
            return Ok((Vec::new(), false));
        };
        let mut text = part.lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        Ok((text.into_bytes(), part.has_more))
    }
}
