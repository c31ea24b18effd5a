//! A notice's form fields, and their choices in people's words.

use crate::form_state::FormState;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::integration::Network;
use tributary_domain::notice::{HOURS, MailAddress, Notice, NoticeTopic, Weekday};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::metric::METRICS;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};

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

/// Builds the form for a stored notice. The URL is a secret and stays empty.
pub(super) fn filled(notice: &Notice) -> FormState {
    let settings = &notice.settings;
    let recipients = settings.channel.recipients().iter();
    let recipients: Vec<&str> = recipients.map(MailAddress::as_str).collect();
    let form = empty(true)
        .with("active", if settings.active { "on" } else { "" })
        .with("name", settings.name.as_str())
        .with("channel", settings.channel.kind().as_str())
        .with("recipients", recipients.join("\n"))
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
