//! Checks what people enter for a notice. Which fields are needed depends on the channel and the topic.

use super::{
    ChannelKind, ChannelUrl, MailAddress, NoticeChannel, NoticeSettings, NoticeTopic, Threshold,
    ThresholdCondition, ThresholdWindow, TopicKind, Weekday,
};
use crate::attribution::CreditedNetwork;
use crate::keyring::seal::SealedSecret;
use crate::report::metric::{Metric, Unit};
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::field_input::FieldInput;
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};
use crate::vocabulary::text::Name;
use crate::vocabulary::web_url::HttpsUrl;
use std::ops::RangeInclusive;

/// Hours at which a summary can be sent.
pub const HOURS: RangeInclusive<i64> = 0..=23;

/// The fields of a notice as read.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "each is the field of the same name")]
pub struct NoticeInput {
    pub name: FieldInput<Name>,
    pub active: FieldInput<bool>,
    pub channel: FieldInput<ChannelKind>,
    pub recipients: FieldInput<Vec<MailAddress>>,
    pub url: FieldInput<HttpsUrl>,
    pub topic: FieldInput<TopicKind>,
    pub hour: FieldInput<i64>,
    pub weekday: FieldInput<Weekday>,
    pub metric: FieldInput<&'static Metric>,
    pub condition: FieldInput<ThresholdCondition>,
    pub value: FieldInput<Amount>,
    pub window: FieldInput<ThresholdWindow>,
    pub network: FieldInput<CreditedNetwork>,
}

/// Where to send to. A URL is not encrypted yet; `None` keeps the stored one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftChannel {
    /// These addresses.
    Email(Vec<MailAddress>),
    /// Slack's incoming webhook.
    Slack(Option<HttpsUrl>),
    /// A webhook.
    Webhook(Option<HttpsUrl>),
}

/// A checked notice whose URL is not encrypted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeDraft {
    /// Name for people.
    pub name: Name,
    /// Whether it sends messages.
    pub active: bool,
    /// Where it sends to.
    pub channel: DraftChannel,
    /// What it sends.
    pub topic: NoticeTopic,
}

fn required<T>(field: &str, input: FieldInput<T>, faults: &mut Faults) -> Option<T> {
    if !input.is_present() {
        faults.add(field, Problem::new(FaultCode::Required, "Required."));
    }
    input.value()
}

fn reject<T>(field: &str, input: &FieldInput<T>, needs: &str, faults: &mut Faults) {
    if input.is_present() {
        let message = format!("Only valid with {needs}.");
        faults.add(field, Problem::new(FaultCode::NotAllowed, message));
    }
}

impl NoticeInput {
    /// Drops the fields that the chosen channel and topic do not use. A form sends all of them.
    #[must_use]
    pub fn only_relevant(mut self) -> Self {
        if self.channel == FieldInput::Value(ChannelKind::Email) {
            self.url = FieldInput::Absent;
        } else {
            self.recipients = FieldInput::Absent;
        }
        let topic = match self.topic {
            FieldInput::Value(topic) => Some(topic),
            FieldInput::Absent | FieldInput::Invalid => None,
        };
        if topic != Some(TopicKind::Threshold) {
            self.metric = FieldInput::Absent;
            self.condition = FieldInput::Absent;
            self.value = FieldInput::Absent;
            self.window = FieldInput::Absent;
            self.network = FieldInput::Absent;
        }
        if topic != Some(TopicKind::WeeklySummary) {
            self.weekday = FieldInput::Absent;
        }
        if !matches!(
            topic,
            Some(TopicKind::DailySummary | TopicKind::WeeklySummary)
        ) {
            self.hour = FieldInput::Absent;
        }
        self
    }

    /// Fills in what a preview does not show, so that it needs no name, recipient or URL yet.
    #[must_use]
    pub fn for_preview(self) -> Self {
        let mut input = self.only_relevant();
        input.name = Name::parse("Preview").map_or(FieldInput::Invalid, FieldInput::Value);
        input.url = FieldInput::Absent;
        if input.channel == FieldInput::Value(ChannelKind::Email) {
            input.recipients = FieldInput::Value(vec![MailAddress::placeholder()]);
        }
        input
    }

    /// Checks the fields against each other, and reports every fault.
    pub fn check(self, faults: &mut Faults) -> Option<NoticeDraft> {
        let channel = required("channel", self.channel, faults);
        let topic = required("topic", self.topic, faults);
        let channel = channel.and_then(|kind| match kind {
            ChannelKind::Email => {
                reject("url", &self.url, "`channel` `slack` or `webhook`", faults);
                let recipients = required("recipients", self.recipients, faults)?;
                if recipients.is_empty() {
                    let message = "Must name at least one address.";
                    faults.add("recipients", Problem::new(FaultCode::TooShort, message));
                }
                Some(DraftChannel::Email(recipients))
            }
            ChannelKind::Slack | ChannelKind::Webhook => {
                reject("recipients", &self.recipients, "`channel` `email`", faults);
                let url = self.url.value();
                Some(if kind == ChannelKind::Slack {
                    DraftChannel::Slack(url)
                } else {
                    DraftChannel::Webhook(url)
                })
            }
        });
        let fields = TopicFields {
            hour: self.hour,
            weekday: self.weekday,
            metric: self.metric,
            condition: self.condition,
            value: self.value,
            window: self.window,
            network: self.network,
        };
        let topic = topic.and_then(|kind| fields.check(kind, faults));
        Some(NoticeDraft {
            name: required("name", self.name, faults)?,
            active: match self.active {
                FieldInput::Absent => true,
                FieldInput::Invalid => return None,
                FieldInput::Value(active) => active,
            },
            channel: channel?,
            topic: topic?,
        })
    }
}

/// The fields that belong to a topic.
struct TopicFields {
    hour: FieldInput<i64>,
    weekday: FieldInput<Weekday>,
    metric: FieldInput<&'static Metric>,
    condition: FieldInput<ThresholdCondition>,
    value: FieldInput<Amount>,
    window: FieldInput<ThresholdWindow>,
    network: FieldInput<CreditedNetwork>,
}

impl TopicFields {
    fn check(self, kind: TopicKind, faults: &mut Faults) -> Option<NoticeTopic> {
        if kind != TopicKind::Threshold {
            const NEEDS: &str = "`topic` `threshold`";
            reject("metric", &self.metric, NEEDS, faults);
            reject("condition", &self.condition, NEEDS, faults);
            reject("value", &self.value, NEEDS, faults);
            reject("window", &self.window, NEEDS, faults);
            reject("network", &self.network, NEEDS, faults);
        }
        if kind != TopicKind::WeeklySummary {
            reject("weekday", &self.weekday, "`topic` `weekly_summary`", faults);
        }
        match kind {
            TopicKind::DailySummary => Some(NoticeTopic::DailySummary {
                hour: hour(self.hour, faults)?,
            }),
            TopicKind::WeeklySummary => {
                let weekday = required("weekday", self.weekday, faults);
                let hour = hour(self.hour, faults);
                Some(NoticeTopic::WeeklySummary {
                    weekday: weekday?,
                    hour: hour?,
                })
            }
            TopicKind::Threshold => {
                reject("hour", &self.hour, "a summary", faults);
                let metric = required("metric", self.metric, faults);
                let condition = required("condition", self.condition, faults);
                let value = required("value", self.value, faults);
                let window = required("window", self.window, faults);
                if let (Some(metric), Some(value)) = (metric, value) {
                    faults.check("value", check_value(metric, value));
                }
                let network = match self.network {
                    FieldInput::Absent => None,
                    FieldInput::Invalid => return None,
                    FieldInput::Value(network) => Some(network),
                };
                Some(NoticeTopic::Threshold(Threshold {
                    metric: metric?,
                    condition: condition?,
                    value: value?,
                    window: window?,
                    network,
                }))
            }
            TopicKind::IntegrationPaused | TopicKind::TrafficAnomaly => {
                reject("hour", &self.hour, "a summary", faults);
                Some(match kind {
                    TopicKind::IntegrationPaused => NoticeTopic::IntegrationPaused,
                    _ => NoticeTopic::TrafficAnomaly,
                })
            }
        }
    }
}

fn hour(input: FieldInput<i64>, faults: &mut Faults) -> Option<u8> {
    let hour = required("hour", input, faults)?;
    let parsed = u8::try_from(hour).ok().filter(|_| HOURS.contains(&hour));
    let problem = || Problem::new(FaultCode::OutOfRange, "Must be between 0 and 23.");
    faults.check("hour", parsed.ok_or_else(problem))
}

fn check_value(metric: &Metric, value: Amount) -> Result<(), Problem> {
    if metric.unit == Unit::Count && value.micros() % MICROS_PER_UNIT != 0 {
        let message = "Must be a whole number for this metric.";
        return Err(Problem::new(FaultCode::InvalidFormat, message));
    }
    Ok(())
}

impl NoticeDraft {
    /// Returns the settings for a preview, which needs no URL.
    pub fn without_url(self) -> NoticeSettings {
        let url = || ChannelUrl {
            sealed: SealedSecret::from_bytes(Vec::new()),
            origin: String::new(),
        };
        let channel = match self.channel {
            DraftChannel::Email(recipients) => NoticeChannel::Email(recipients),
            DraftChannel::Slack(_) => NoticeChannel::Slack(url()),
            DraftChannel::Webhook(_) => NoticeChannel::Webhook(url()),
        };
        NoticeSettings {
            name: self.name,
            active: self.active,
            channel,
            topic: self.topic,
        }
    }

    /// Encrypts the URL, or keeps the stored one of the same kind of channel.
    pub fn into_settings(
        self,
        stored: Option<&NoticeChannel>,
        seal: impl FnOnce(&str) -> SealedSecret,
    ) -> Result<NoticeSettings, Faults> {
        let stored = stored.and_then(|stored| Some((stored.kind(), stored.url()?.clone())));
        let kept = |kind| stored.filter(|one| one.0 == kind).map(|one| one.1);
        let resolved = |url: Option<HttpsUrl>, kind| match url {
            Some(url) => Some(ChannelUrl {
                sealed: seal(url.as_str()),
                origin: url.origin().as_str().to_owned(),
            }),
            None => kept(kind),
        };
        let missing = || {
            let mut faults = Faults::new();
            faults.add(
                "url",
                Problem::new(FaultCode::Required, "Required for this channel."),
            );
            faults
        };
        let channel = match self.channel {
            DraftChannel::Email(recipients) => NoticeChannel::Email(recipients),
            DraftChannel::Slack(url) => {
                NoticeChannel::Slack(resolved(url, ChannelKind::Slack).ok_or_else(missing)?)
            }
            DraftChannel::Webhook(url) => {
                NoticeChannel::Webhook(resolved(url, ChannelKind::Webhook).ok_or_else(missing)?)
            }
        };
        Ok(NoticeSettings {
            name: self.name,
            active: self.active,
            channel,
            topic: self.topic,
        })
    }
}
