//! The writable fields of a notice.

use crate::{Fields, amount, choice, flag, integer, text_as, text_list};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::notice::{
    ChannelKind, HOURS, MailAddress, NoticeDraft, NoticeInput, RECIPIENTS_MAX, ThresholdCondition,
    ThresholdWindow, TopicKind, Weekday, distinct_recipients,
};
use tributary_domain::report::metric::{METRICS, Metric};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::text::{NAME_CHARS_MAX, Name};
use tributary_domain::vocabulary::web_url::{HttpsUrl, URL_CHARS_MAX};

/// Reads a notice from a body.
pub fn read(fields: &mut Fields<'_>) -> Option<NoticeDraft> {
    let input = read_input(fields);
    fields.check(|faults| input.check(faults))
}

/// Reads a notice from a form, which sends the fields of all channels and topics.
pub fn read_form(fields: &mut Fields<'_>) -> Option<NoticeDraft> {
    let input = read_input(fields).only_relevant();
    fields.check(|faults| input.check(faults))
}

/// Reads a notice from a form for its preview.
pub fn read_preview(fields: &mut Fields<'_>) -> Option<NoticeDraft> {
    let input = read_input(fields).for_preview();
    fields.check(|faults| input.check(faults))
}

fn metric(text: &str) -> Result<&'static Metric, Problem> {
    let problem = || Problem::new(FaultCode::UnknownValue, "Must be a metric of the overview.");
    Metric::find(text).ok_or_else(problem)
}

fn network(text: &str) -> Result<CreditedNetwork, Problem> {
    let message = "Must be a network such as network_a, apple_ads, other or organic.";
    let problem = || Problem::new(FaultCode::UnknownValue, message);
    CreditedNetwork::parse(text).ok_or_else(problem)
}

fn read_input(fields: &mut Fields<'_>) -> NoticeInput {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    let channel = choice(&ChannelKind::ALL, ChannelKind::as_str);
    let topic = choice(&TopicKind::ALL, TopicKind::as_str);
    let recipients = text_list(RECIPIENTS_MAX, MailAddress::parse)
        .then(|addresses| Ok(distinct_recipients(addresses)));
    let url = text_as(HttpsUrl::parse_outbound).size(0..=URL_CHARS_MAX);
    NoticeInput {
        name: fields.required_input("name", name.about("1–200 characters.")),
        active: fields.input("active", flag().about("Default: true.")),
        channel: fields.required_input("channel", channel.about("Where to send messages.")),
        recipients: fields.input(
            "recipients",
            recipients.about("Addresses for `email`; at most 10. They see each other."),
        ),
        url: fields.input(
            "url",
            url.pattern("^https://").write_only().about(
                "URL for `slack` (an incoming webhook) or `webhook`. No response contains it; \
                 without it, a change keeps the stored one.",
            ),
        ),
        topic: fields.required_input("topic", topic.about("What to send messages about.")),
        hour: fields.input(
            "hour",
            integer().within(HOURS).about(
                "Hour of the app's time zone at which a summary is sent; required for summaries.",
            ),
        ),
        weekday: fields.input(
            "weekday",
            choice(&Weekday::ALL, Weekday::as_str).about("Required for `weekly_summary`."),
        ),
        metric: fields.input(
            "metric",
            text_as(metric)
                .words(METRICS.iter().map(|one| one.word))
                .about("A key figure of the overview; required for `threshold`."),
        ),
        condition: fields.input(
            "condition",
            choice(&ThresholdCondition::ALL, ThresholdCondition::as_str)
                .about("Required for `threshold`."),
        ),
        value: fields.input(
            "value",
            amount().about("The limit, in US dollars for money; required for `threshold`."),
        ),
        window: fields.input(
            "window",
            choice(&ThresholdWindow::ALL, ThresholdWindow::as_str)
                .about("`day`, or `week` for seven complete days; required for `threshold`."),
        ),
        network: fields.input(
            "network",
            text_as(network).about("Only figures of this network; only for `threshold`."),
        ),
    }
}
