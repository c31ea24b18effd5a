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
    /// Returns the blocks of a Slack message; `None` for other messages.
    fn slack_blocks(&self) -> Option<Vec<SlackBlock>> {
        let preview = self.preview.as_ref()?;
        let body: serde_json::Value = serde_json::from_str(&preview.body).ok()?;
        let texts = body.get("blocks")?.as_array()?.iter().map(|block| {
            let text = block["text"]["text"].as_str();
            let text = text.or_else(|| block["elements"][0]["text"].as_str());
            SlackBlock::of(text.unwrap_or_default())
        });
        // The first block repeats the subject, which is the heading.
        let texts = texts.skip(1);
        Some(texts.collect())
    }
}

/// A block of a Slack message as Slack shows it.
#[derive(Debug, PartialEq, Eq)]
struct SlackBlock {
    text: String,
    /// URL, if the block is a link.
    url: Option<String>,
    /// Whether the text is a table with a fixed width per character.
    is_table: bool,
}

impl SlackBlock {
    /// Reads the markup that our messages use: a fenced table, a link, or escaped text.
    fn of(markup: &str) -> Self {
        let plain = |text: &str| {
            let text = text.replace("&lt;", "<").replace("&gt;", ">");
            text.replace("&amp;", "&")
        };
        let fenced = markup.strip_prefix("```\n");
        if let Some(table) = fenced.and_then(|rest| rest.strip_suffix("\n```")) {
            return Self {
                text: plain(table),
                url: None,
                is_table: true,
            };
        }
        let link = markup.strip_prefix('<');
        let link = link.and_then(|rest| rest.strip_suffix('>')?.split_once('|'));
        let (url, text) = link.map_or((None, markup), |(url, text)| (Some(plain(url)), text));
        Self {
            text: plain(text),
            url,
            is_table: false,
        }
    }
}

/// Returns a notice that is not stored.
pub(super) fn unsaved(app: AppId, settings: NoticeSettings, at: Timestamp) -> Notice {
    Notice {
        id: NoticeId::from_bytes([0; 16]),
        app,
        progress: tributary_domain::notice::NoticeProgress::default(),
        settings,
        owner: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::text(
        "Spend &amp; installs &lt;today&gt;",
        "Spend & installs <today>",
        None,
        false
    )]
    #[case::table("```\nInstalls  5\n```", "Installs  5", None, true)]
    #[case::link(
        "<https://t.example.com/?a=1&amp;b=2|Open in Tributary>",
        "Open in Tributary",
        Some("https://t.example.com/?a=1&b=2"),
        false
    )]
    fn slack_markup_is_shown_as_slack_shows_it(
        #[case] markup: &str,
        #[case] text: &str,
        #[case] url: Option<&str>,
        #[case] is_table: bool,
    ) {
        let expected = SlackBlock {
            text: text.to_owned(),
            url: url.map(str::to_owned),
            is_table,
        };
        assert_eq!(SlackBlock::of(markup), expected);
    }
}
