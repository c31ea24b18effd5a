//! A notice's form fields, and their choices in people's words.

use super::describe;
use crate::form_state::FormState;
use crate::query::UrlQuery;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::integration::Network;
use tributary_domain::notice::{ChannelKind, HOURS, MailAddress, Notice, NoticeTopic, Weekday};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::CostSum;
use tributary_domain::report::metric::METRICS;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_fields::Form;
use tributary_fields::notice::read_preview;
use url::form_urlencoded;

/// Default hour of a summary.
const MORNING: u8 = 8;

/// Choices of the form: value and label.
pub(super) struct Choices {
    pub(super) metrics: Vec<(String, String)>,
    pub(super) networks: Vec<(String, String)>,
    pub(super) hours: Vec<(String, String)>,
    pub(super) weekdays: Vec<(String, String)>,
}

impl Choices {
    pub(super) fn all() -> Self {
        let ads = Network::ALL.into_iter().map(CreditedNetwork::Ad);
        let networks = ads.chain([
            CreditedNetwork::AppleAds,
            CreditedNetwork::Other,
            CreditedNetwork::Organic,
        ]);
        let network = |one: CreditedNetwork| (one.as_str().to_owned(), one.name().to_owned());
        let all = (String::new(), "All".to_owned());
        let metrics = METRICS.iter();
        Self {
            metrics: metrics
                .map(|one| (one.word.to_owned(), one.label.to_owned()))
                .collect(),
            networks: std::iter::once(all).chain(networks.map(network)).collect(),
            hours: HOURS
                .map(|hour| (hour.to_string(), format!("{hour:02}:00")))
                .collect(),
            weekdays: Weekday::ALL
                .iter()
                .map(|day| (day.as_str().to_owned(), title(day.as_str())))
                .collect(),
        }
    }
}

/// Returns a word with a capital.
pub(super) fn title(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Builds the form for a new notice. E-mail comes first where the server can send it.
pub(super) fn empty(sends_mail: bool) -> FormState {
    FormState::default()
        .with_checkbox("active", true)
        .with("channel", if sends_mail { "email" } else { "slack" })
        .with("topic", "daily_summary")
        .with("hour", MORNING.to_string())
        .with("weekday", "monday")
        .with("metric", "installs")
        .with("condition", "over")
        .with("window", "day")
}

/// Fields that a URL may fill in for a new notice. The destination is not among them, so that nobody can
/// be led to send figures elsewhere.
const FROM_URL: [&str; 9] = [
    "name",
    "topic",
    "hour",
    "weekday",
    "metric",
    "condition",
    "value",
    "window",
    "network",
];

/// Fills in what a URL says about a new notice.
pub(super) fn from_url(form: FormState, query: &UrlQuery) -> FormState {
    FROM_URL
        .into_iter()
        .fold(form, |form, name| form.with_optional(name, query.get(name)))
}

/// Builds the form for a new notice with a destination: that of the latest notice by e-mail, or the
/// member's own address. URLs are secrets and cannot be filled in.
pub(super) fn with_destination(form: FormState, notices: &[Notice], email: &str) -> FormState {
    let by_mail = notices
        .iter()
        .filter(|one| !one.settings.channel.recipients().is_empty());
    let latest = by_mail.max_by_key(|one| (one.created_at, one.id));
    let form = form.with_optional("channel", latest.map(|_| ChannelKind::Email.as_str()));
    let recipients = latest.map(|one| {
        let recipients = one.settings.channel.recipients().iter();
        recipients.map(MailAddress::as_str).collect::<Vec<_>>()
    });
    let recipients = recipients.unwrap_or_else(|| vec![email]);
    form.with("recipients", recipients.join("\n"))
}

/// Returns the submitted form with a name that says what the notice sends, if it was sent without a
/// name.
pub(super) fn named(form: &Form) -> Option<Form> {
    if !form.field("name").trim().is_empty() {
        return None;
    }
    let (draft, _) = form.read(read_preview);
    let name = describe(&draft?.topic);
    let others = form.fields().filter(|(field, _)| *field != "name");
    let mut text = form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(others);
    text.append_pair("name", &name);
    Form::parse(text.finish().as_bytes())
}

/// A report or alert that takes one click to fill in.
pub(super) struct NoticePreset {
    pub(super) label: String,
    pub(super) hint: &'static str,
    /// Query of the form.
    pub(super) query: String,
}

impl NoticePreset {
    fn new(label: impl Into<String>, hint: &'static str, fields: &[(&str, &str)]) -> Self {
        let label = label.into();
        let mut query = UrlQuery::default().with(&[("name", Some(label.as_str()))]);
        for (name, value) in fields {
            query = UrlQuery::of(Some(&query)).with(&[(name, Some(value))]);
        }
        Self { label, hint, query }
    }
}

/// Number of networks with a preset.
const NETWORKS_SUGGESTED_MAX: usize = 2;

/// Returns the presets, with alerts for the networks that cost most. `costs` are those of the latest
/// weeks.
pub(super) fn presets(costs: &[CostSum]) -> Vec<NoticePreset> {
    let mut spent: BTreeMap<&str, i64> = BTreeMap::new();
    for cost in costs {
        let sum = spent.entry(&cost.network).or_default();
        *sum = sum.saturating_add(cost.usd_micros);
    }
    let networks = spent.into_iter().filter(|(_, usd)| *usd > 0);
    let mut networks: Vec<(&str, i64)> = networks.collect();
    networks.sort_by_key(|(_, usd)| Reverse(*usd));
    let suggested = networks.into_iter().take(NETWORKS_SUGGESTED_MAX);
    let suggested = suggested.filter_map(|(network, _)| CreditedNetwork::parse(network));
    let low_roas = |network: CreditedNetwork| {
        let fields = [
            ("topic", "threshold"),
            ("metric", "paidRoas"),
            ("condition", "under"),
            ("value", "1"),
            ("window", "week"),
            ("network", network.as_str()),
        ];
        let label = format!("ROAS of {} below 1", network.name());
        NoticePreset::new(
            label,
            "Seven days of ads brought in less than they cost.",
            &fields,
        )
    };
    let mut presets: Vec<NoticePreset> = suggested.map(low_roas).collect();
    presets.extend([
        NoticePreset::new(
            "Integration paused",
            "A network no longer accepts deliveries.",
            &[("topic", "integration_paused")],
        ),
        NoticePreset::new(
            "Traffic unusual",
            "Far more clicks, installs or events than usual.",
            &[("topic", "traffic_anomaly")],
        ),
        NoticePreset::new(
            "Figures every morning",
            "The figures of the day before.",
            &[("topic", "daily_summary")],
        ),
        NoticePreset::new(
            "Spend of a day over $500",
            "The limit is yours to choose.",
            &[
                ("topic", "threshold"),
                ("metric", "cost"),
                ("condition", "over"),
                ("value", "500"),
                ("window", "day"),
            ],
        ),
    ]);
    presets
}

/// Builds the form for a stored notice. The URL is a secret and stays empty.
pub(super) fn filled(notice: &Notice) -> FormState {
    let settings = &notice.settings;
    let form = empty(true)
        .with("active", if settings.active { "on" } else { "" })
        .with("name", settings.name.as_str())
        .with("channel", settings.channel.kind().as_str())
        .with("recipients", recipients_text(notice))
        .with("topic", settings.topic.kind().as_str());
    match &settings.topic {
        NoticeTopic::DailySummary { hour } => form.with("hour", hour.to_string()),
        NoticeTopic::WeeklySummary { weekday, hour } => form
            .with("hour", hour.to_string())
            .with("weekday", weekday.as_str()),
        NoticeTopic::Threshold(limit) => form
            .with("metric", limit.metric.word)
            .with("condition", limit.condition.as_str())
            .with("value", limit.value.to_string())
            .with("window", limit.window.as_str())
            .with_optional("network", limit.network.map(CreditedNetwork::as_str)),
        NoticeTopic::IntegrationPaused | NoticeTopic::TrafficAnomaly => form,
    }
}

/// Returns the field with a notice's recipients, one on each line.
pub(crate) fn recipients_text(notice: &Notice) -> String {
    let recipients = notice.settings.channel.recipients().iter();
    let recipients: Vec<&str> = recipients.map(MailAddress::as_str).collect();
    recipients.join("\n")
}

/// Converts a refusal into field errors. Returns a refusal that is not about a field unchanged.
pub(super) fn faults_from_refusal(refusal: Refusal) -> Result<Faults, Refusal> {
    match refusal {
        Refusal::TooManyNotices => {
            let mut faults = Faults::new();
            faults.add(
                "name",
                Problem::new(FaultCode::NotAllowed, refusal.to_string()),
            );
            Ok(faults)
        }
        Refusal::Invalid(faults) => Ok(faults),
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::report::cost::CostOrigin;
    use tributary_domain::vocabulary::day::Day;

    #[test]
    fn alerts_are_suggested_for_the_networks_that_cost_most() {
        let cost = |network: &str, usd_micros| CostSum {
            day: Day::from_days(0),
            network: network.to_owned(),
            campaign: String::new(),
            usd_micros,
            origin: CostOrigin::Manual,
        };
        let costs = [
            cost("network_a", 5),
            cost("network_b", 4),
            cost("network_a", 5),
            cost("network_c", 9),
            cost("network_d", 0),
        ];
        let labels = |costs: &[CostSum]| {
            let presets = presets(costs).into_iter();
            presets.map(|preset| preset.label).collect::<Vec<_>>()
        };
        let expected = ["ROAS of Meta below 1", "ROAS of TikTok below 1"];
        assert_eq!(labels(&costs)[..2], expected);
        assert_eq!(labels(&[])[0], "Integration paused");
        let query = &presets(&costs)[0].query;
        let form = from_url(FormState::default(), &UrlQuery::of(Some(query)));
        let values = ["metric", "condition", "value", "window", "network"];
        let values = values.map(|name| form.value(name).to_owned());
        assert_eq!(values, ["paidRoas", "under", "1", "week", "network_a"]);
    }
}
