//! Bodies of messages to Slack and webhooks.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tributary_domain::integration::Network;
use tributary_domain::notice::{Message, Occasion};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum length of the text of a section, by Slack's documentation.
const SECTION_CHARS_MAX: usize = 3_000;

/// Escapes the characters that Slack reads as control characters.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn section(text: &str) -> Value {
    let text: String = text.chars().take(SECTION_CHARS_MAX).collect();
    json!({"type": "section", "text": {"type": "mrkdwn", "text": text}})
}

/// Builds the body for Slack's incoming webhooks: `text` for notifications, and `blocks`.
pub(super) fn slack_body(message: &Message) -> String {
    let header = json!({"type": "header", "text": {
        "type": "plain_text", "text": message.subject, "emoji": false
    }});
    let mut blocks = vec![header, section(&escaped(&message.lines.join("\n")))];
    let figures = message.figures();
    if !figures.is_empty() {
        // Leaves room for the fences, and for characters that become longer.
        let figures: String = figures.chars().take(SECTION_CHARS_MAX / 2).collect();
        blocks.push(section(&format!("```\n{}\n```", escaped(&figures))));
    }
    blocks.push(section(&format!(
        "<{}|Open in Tributary>",
        escaped(&message.link)
    )));
    blocks.push(json!({"type": "context", "elements": [
        {"type": "mrkdwn", "text": escaped(&message.footer)}
    ]}));
    json!({"text": escaped(&message.subject), "blocks": blocks}).to_string()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookBody<'a> {
    id: &'a str,
    r#type: &'a str,
    app_id: String,
    network: Option<&'a str>,
    timestamp: String,
    subject: &'a str,
    message: String,
    metrics: BTreeMap<&'a str, Option<Box<RawValue>>>,
}

/// Builds the body for a webhook, in the format of the app's alert webhook.
pub(super) fn webhook_body(
    id: &str,
    app: AppId,
    occasion: &Occasion,
    message: &Message,
    at: Timestamp,
) -> String {
    let network = match occasion {
        Occasion::Alert(alert) => alert.network.map(Network::as_str),
        Occasion::Summary { .. } | Occasion::Threshold { .. } => None,
    };
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default();
    let metrics = message.values.iter().map(|one| {
        let number = RawValue::from_string(one.plain.clone()).ok();
        (one.metric, number)
    });
    let body = WebhookBody {
        id,
        r#type: occasion.kind(),
        app_id: app.to_string(),
        network,
        timestamp: at.to_string(),
        subject: &message.subject,
        message: message.lines.join(" "),
        metrics: metrics.collect(),
    };
    serde_json::to_string(&body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::notice::MessageValue;
    use tributary_domain::vocabulary::day::Day;

    fn message() -> Message {
        let value = |metric, plain: &str| MessageValue {
            metric,
            label: "Installs".to_owned(),
            value: "12".to_owned(),
            change: None,
            plain: plain.to_owned(),
        };
        Message {
            subject: "Runner <3".to_owned(),
            lines: vec!["Figures of *Runner* & co.".to_owned()],
            values: vec![value("installs", "12"), value("paidRoas", "")],
            table: None,
            link: "https://t.example.com/apps/a?from=1&to=2".to_owned(),
            footer: "Why.".to_owned(),
        }
    }

    #[test]
    fn slack_gets_text_and_blocks() {
        let body: Value = serde_json::from_str(&slack_body(&message())).unwrap();
        assert_eq!(body["text"], "Runner &lt;3");
        let blocks = body["blocks"].as_array().unwrap();
        let kinds: Vec<&str> = blocks
            .iter()
            .map(|one| one["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            ["header", "section", "section", "section", "context"]
        );
        assert_eq!(
            blocks[0]["text"]["text"], "Runner <3",
            "plain text is not escaped"
        );
        assert_eq!(blocks[1]["text"]["text"], "Figures of *Runner* &amp; co.");
        let link = "<https://t.example.com/apps/a?from=1&amp;to=2|Open in Tributary>";
        assert_eq!(blocks[3]["text"]["text"], link);
    }

    #[test]
    fn long_figures_fit_into_a_section() {
        let mut long = message();
        long.values[0].label = "<".repeat(9_000);
        let body: Value = serde_json::from_str(&slack_body(&long)).unwrap();
        for block in body["blocks"].as_array().unwrap() {
            let text = block["text"]["text"].as_str().unwrap_or_default();
            assert!(text.chars().count() <= SECTION_CHARS_MAX);
        }
    }

    #[test]
    fn a_webhook_gets_numbers() {
        let day = Day::from_days(20_000);
        let occasion = Occasion::Summary { from: day, to: day };
        let app = AppId::from_bytes([1; 16]);
        let body = webhook_body(
            "msg_1",
            app,
            &occasion,
            &message(),
            Timestamp::from_millis(0),
        );
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["type"], "summary.daily");
        assert_eq!(body["metrics"], json!({"installs": 12, "paidRoas": null}));
        assert_eq!(body["timestamp"], "1970-01-01T00:00:00Z");
    }
}
