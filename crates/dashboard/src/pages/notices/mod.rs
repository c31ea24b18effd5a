//! `/apps/{app}/notices` — reports and alerts that the app sends to people.

pub(crate) mod edit;
mod fields;
pub(crate) mod list;
pub(crate) mod preview;

pub(crate) use fields::recipients_text;

use crate::form_state::FormState;
use crate::shell::Shell;
use askama::Template;
use fields::Choices;
use preview::PreviewPart;
use tributary_domain::notice::{NoticeTopic, ThresholdCondition, ThresholdWindow};

/// Shown if the server cannot send e-mail.
const NO_MAIL: &str = "E-mail is not set up on this server, so a notice by e-mail cannot be sent. Ask \
                       the operator to set mail.url and mail.from, or choose Slack or a webhook.";

/// The form for a new or stored notice.
#[derive(Template)]
#[template(path = "notice.html")]
struct NoticePage {
    shell: Shell,
    /// `None` for a new notice.
    id: Option<String>,
    name: String,
    tag: String,
    timezone: String,
    /// Whether e-mail is set up on this server.
    sends_mail: bool,
    /// Host of the stored URL.
    url_origin: Option<String>,
    /// State of the last message.
    state: Option<NoticeState>,
    form: FormState,
    choices: Choices,
    preview: PreviewPart,
}

impl NoticePage {
    fn action(&self) -> String {
        let id = self.id.as_deref().unwrap_or("new");
        self.shell.item_url("notices", id)
    }

    /// Returns why e-mail cannot be sent.
    const fn mail_hint(&self) -> &'static str {
        if self.sends_mail { "" } else { NO_MAIL }
    }

    fn zone_hint(&self) -> String {
        format!("Time zone: {}.", self.timezone)
    }

    fn url_hint(&self) -> String {
        match &self.url_origin {
            Some(origin) => format!("Stored: {origin}/… Leave empty to keep it."),
            None => "For Slack: create an incoming webhook in Slack and paste its URL.".to_owned(),
        }
    }
}

/// State of a notice's last message, in words.
pub(super) struct NoticeState {
    text: String,
    tone: &'static str,
    error: Option<String>,
}

/// Returns when a notice sends, in words.
fn describe(topic: &NoticeTopic) -> String {
    match topic {
        NoticeTopic::DailySummary { hour } => format!("Every day at {hour:02}:00"),
        NoticeTopic::WeeklySummary { weekday, hour } => {
            format!("Every {} at {hour:02}:00", fields::title(weekday.as_str()))
        }
        NoticeTopic::Threshold(limit) => {
            let side = match limit.condition {
                ThresholdCondition::Over => "over",
                ThresholdCondition::Under => "under",
            };
            let window = match limit.window {
                ThresholdWindow::Day => "on a day",
                ThresholdWindow::Week => "in seven days",
            };
            let network = limit
                .network
                .map_or_else(String::new, |one| format!(" of {}", one.name()));
            let value = limit.write(limit.value.micros());
            format!("{}{network} {side} {value} {window}", limit.metric.label)
        }
        NoticeTopic::IntegrationPaused => "When an integration pauses".to_owned(),
        NoticeTopic::TrafficAnomaly => "When traffic is unusual".to_owned(),
    }
}

#[cfg(test)]
mod tests;
