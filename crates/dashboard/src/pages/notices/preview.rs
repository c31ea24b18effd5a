//! `POST /apps/{app}/notices/preview` — an unsaved notice's message, exactly as it would be sent.

use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AppsWrite;
use tributary_domain::access::admission::SlotHolder;
use tributary_domain::notice::{Notice, NoticePreview, NoticeSettings};
use tributary_domain::vocabulary::id::{AppId, NoticeId};
use tributary_domain::vocabulary::revision::Revision;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_fields::notice::read_preview;
use tributary_store::report_slots::{ReportSlot, SlotKind};

/// A notice's preview, or why it cannot be shown.
#[derive(Template, Default)]
#[template(path = "notice_preview.html")]
pub(super) struct PreviewPart {
    pub(super) preview: Option<NoticePreview>,
    pub(super) faults: Vec<String>,
}

impl PreviewPart {
    /// Returns the blocks of a Slack message as text; `None` for other messages.
    fn slack_texts(&self) -> Option<Vec<String>> {
        let preview = self.preview.as_ref()?;
        let body: serde_json::Value = serde_json::from_str(&preview.body).ok()?;
        let texts = body.get("blocks")?.as_array()?.iter().map(|block| {
            let text = block["text"]["text"].as_str();
            let text = text.or_else(|| block["elements"][0]["text"].as_str());
            text.unwrap_or_default().to_owned()
        });
        Some(texts.collect())
    }
}

/// Returns a notice that is not stored.
pub(super) fn unsaved(app: AppId, settings: NoticeSettings, at: Timestamp) -> Notice {
    Notice {
        id: NoticeId::from_bytes([0; 16]),
        app,
        progress: tributary_domain::notice::NoticeProgress::default(),
        settings,
        last_sent_at: None,
        last_error: None,
        created_at: at,
        updated_at: at,
        revision: Revision::FIRST,
    }
}

/// Waits for a slot for a report. A preview or test reads as many rows as one; the slot is freed when
/// it is dropped.
pub(super) async fn report_slot(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
) -> Result<ReportSlot, Failure> {
    let holder = SlotHolder::from(&submission.authorized);
    Ok(handles.report_slots.admit(SlotKind::Report, holder).await?)
}

/// Returns the preview as a fragment.
pub(crate) async fn preview(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (draft, faults) = submission.form.read(read_preview);
    // The form names the other fields when it is saved. An empty limit is only not typed yet.
    let limit = submission.form.field("value");
    let shows = |field: &str| field == "value" && !limit.trim().is_empty();
    let messages: Vec<String> = faults
        .iter()
        .filter(|fault| shows(&fault.field))
        .map(|fault| format!("Limit: {}", fault.message))
        .collect();
    let Some(draft) = draft else {
        let part = PreviewPart {
            preview: None,
            faults: messages,
        };
        return Ok(submission.page(&part));
    };
    let (app, now) = (submission.app()?.id, handles.runtime.now());
    let notice = unsaved(app, draft.without_url(), now);
    let organization = submission.authorized.organization();
    let _slot = report_slot(&handles, &submission).await?;
    let preview = (handles.notices.preview)(organization, notice).await?;
    Ok(submission.page(&PreviewPart {
        preview: Some(preview),
        faults: messages,
    }))
}
