//! Streams the document part by part, so that memory use stays low however many events a device has.

use crate::caller::ExportCaller;
use crate::error::ApiError;
use crate::state::ApiState;
use crate::v1::export::file::{ExportBody, ExportChunk};
use crate::v1::export::stream::{
    CHUNKS_BUFFERED_MAX, PART_WAIT_MAX, send_chunk, send_in_chunks, streamed_file,
};
use axum::http::HeaderValue;
use axum::response::Response;
use tokio::sync::mpsc;
use tracing::Instrument as _;
use tributary_domain::access::PeopleExport;
use tributary_domain::access::admission::SlotHolder;
use tributary_domain::personal_data::DataSubject;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreError;
use tributary_store::personal_data::{PersonDocument, PersonExport};
use tributary_store::report_slots::ReportSlot;

/// Name of the downloaded file. It contains no id, because file names end up in logs.
const FILE: HeaderValue = HeaderValue::from_static("attachment; filename=\"personal-data.json\"");

/// A running export.
struct RunningExport {
    export: PersonExport,
    document: PersonDocument,
    holder: SlotHolder,
    state: ApiState,
    /// Freed when the last part is sent or the client disconnects.
    _slot: ReportSlot,
}

/// Begins an export and returns the streaming response.
pub(super) async fn respond(
    caller: ExportCaller<PeopleExport>,
    app: AppId,
    subject: DataSubject,
    state: ApiState,
) -> Result<Response, ApiError> {
    let origin = caller.origin(&state);
    let of = (app, subject);
    let export = PersonExport::begin(state.store.as_ref(), &caller.authorized, of, origin).await?;
    let running = RunningExport {
        document: PersonDocument::new(state.click_tokens.clone()),
        holder: SlotHolder::from(&caller.authorized),
        _slot: caller.slot,
        export,
        state,
    };
    let (sender, file) = ExportBody::new(CHUNKS_BUFFERED_MAX);
    tokio::spawn(running.run(sender).in_current_span());
    let content_type = HeaderValue::from_static("application/json");
    Ok(streamed_file(file, content_type, Some(FILE)))
}

impl RunningExport {
    /// Sends all parts. Without the end marker, which is not sent after an error, the client knows
    /// that the document is incomplete.
    async fn run(mut self, file: mpsc::Sender<ExportChunk>) {
        let idle_max = self.state.timeouts.export_idle;
        let mut bytes = self.document.begin(&self.export);
        loop {
            if send_in_chunks(&file, bytes.into(), idle_max)
                .await
                .is_none()
            {
                return;
            }
            match self.next_part().await {
                Ok(Some(part)) => bytes = part,
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "export of personal data aborted");
                    return;
                }
            }
        }
        let last = self.document.finish(&self.export, true);
        if send_in_chunks(&file, last.into(), idle_max).await.is_some() {
            let _sent = send_chunk(&file, ExportChunk::End, idle_max).await;
        }
    }

    /// Reads and writes the next part. Takes a report slot meanwhile, so that exports share the
    /// database with reports.
    async fn next_part(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let slots = &self.state.report_slots;
        let slot = slots.admit_part(&self.holder, PART_WAIT_MAX).await;
        let _slot = slot.map_err(|error| StoreError::unavailable("person_events", error))?;
        let part = self.export.next(self.state.store.as_ref()).await?;
        Ok(part.map(|part| self.document.part(part)))
    }
}
