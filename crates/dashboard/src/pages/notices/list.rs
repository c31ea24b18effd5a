//! `/apps/{app}/notices` — lists the notices.

use super::fields::{NoticePreset, presets};
use super::{NO_MAIL, NoticeState, describe};
use crate::access::ReportContext;
use crate::failure::Failure;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::resource::NoticesRead;
use tributary_domain::notice::{ChannelKind, Notice};
use tributary_domain::report::CostSum;
use tributary_domain::report::range::days_before;
use tributary_domain::vocabulary::calendar::today;
use tributary_domain::vocabulary::time::Timestamp;

/// Days of spend that decide which networks have a suggested alert.
const SPEND_DAYS: i32 = 30;

#[derive(Template)]
#[template(path = "notices.html")]
struct NoticesPage {
    shell: Shell,
    timezone: String,
    rows: Vec<NoticeLine>,
    presets: Vec<NoticePreset>,
}

struct NoticeLine {
    id: String,
    name: String,
    what: String,
    to: String,
    state: NoticeState,
}

/// Returns the state of a notice in words.
pub(super) fn state(notice: &Notice, sends_mail: bool, now: Timestamp) -> NoticeState {
    let is_mail = notice.settings.channel.kind() == ChannelKind::Email;
    if notice.settings.active && is_mail && !sends_mail {
        return NoticeState {
            text: "Cannot be sent".to_owned(),
            tone: "bad",
            error: Some(NO_MAIL.to_owned()),
        };
    }
    let sent = notice
        .last_sent_at
        .map(|at| format!("Sent {}", text::ago(at, now)));
    let (text, tone) = match (notice.settings.active, &notice.last_error, sent) {
        (false, ..) => ("Off".to_owned(), "quiet"),
        (true, Some(_), _) => ("Not delivered".to_owned(), "bad"),
        (true, None, Some(sent)) => (sent, "good"),
        (true, None, None) => ("Nothing sent yet".to_owned(), "quiet"),
    };
    NoticeState {
        text,
        tone,
        error: notice.last_error.clone(),
    }
}

/// Returns where a notice is sent to.
pub(crate) fn receiver(notice: &Notice) -> String {
    let channel = &notice.settings.channel;
    let origin = channel.url().map(|url| url.origin.replace("https://", ""));
    match (channel.kind(), channel.recipients()) {
        (ChannelKind::Email, [one]) => one.as_str().to_owned(),
        (ChannelKind::Email, [one, others @ ..]) => {
            format!("{} and {} more", one.as_str(), others.len())
        }
        (ChannelKind::Email, []) => "E-mail".to_owned(),
        (ChannelKind::Slack, _) => format!("Slack ({})", origin.unwrap_or_default()),
        (ChannelKind::Webhook, _) => format!("Webhook ({})", origin.unwrap_or_default()),
    }
}

/// Shows the list.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<NoticesRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let notices = handles.store.notices(&context.authorized, app.id).await?;
    let now = handles.runtime.now();
    let line = |notice: &Notice| NoticeLine {
        id: notice.id.to_string(),
        name: notice.settings.name.as_str().to_owned(),
        what: describe(&notice.settings.topic),
        to: receiver(notice),
        state: state(notice, handles.notices.sends_mail, now),
    };
    let last = today(now, &app.timezone);
    let reader = context.authorized.analytics_access();
    let costs = handles
        .store
        .cost_sums(&reader, vec![app.id], days_before(last, SPEND_DAYS), last);
    let costs: Vec<CostSum> = costs.await?.into_iter().map(|(_, sum)| sum).collect();
    Ok(context.page(&NoticesPage {
        presets: presets(&costs),
        shell: context.shell(Section::Notices),
        timezone: app.timezone.as_str().to_owned(),
        rows: notices.iter().map(line).collect(),
    }))
}
