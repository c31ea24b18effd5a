//! Exported records: events as the API shows them, and clicks without personal data.

use super::csv::CsvLines;
use super::stream::{ExportFormat, ExportKind};
use crate::campaign::CampaignOut;
use crate::time_text::rfc3339;
use crate::v1::events::shape::EventOut;
use serde::Serialize;
use std::collections::HashMap;
use tributary_domain::attribution::HoldState;
use tributary_domain::click::Click;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::{DeviceKey, Platform, UserKey};
use tributary_domain::event::Event;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_store::records::original_transaction;

const EVENT_COLUMNS: &str = "id,eventId,name,source,environment,timestamp,receivedAt,deviceId,userId,platform,country,\
     amount,currency,usd,counted,reason,firstPayment,network,matchType,linkId,clickId,campaignId,campaignName,adsetId,\
     adsetName,adId,adName,params,originalTransactionId,sourceUrl,hold\r\n";
const CLICK_COLUMNS: &str = "id,linkId,clickedAt,network,bot,platform,osVersion,model,language,country,referer,campaignId,\
     campaignName,adsetId,adsetName,adId,adName\r\n";

/// Typical number of bytes per line, used to size buffers.
const LINE_BYTES: usize = 640;

/// Returns the header row of a CSV file.
pub(super) const fn header(kind: ExportKind) -> &'static str {
    match kind {
        ExportKind::Events | ExportKind::Installs => EVENT_COLUMNS,
        ExportKind::Clicks => CLICK_COLUMNS,
    }
}

/// Cache of signed click ids. Consecutive events from a device are credited to the same click, and
/// signing an id is slower than looking it up.
struct ClickIdCache<'a> {
    tokens: &'a ClickTokens,
    written: HashMap<ClickId, String>,
}

impl<'a> ClickIdCache<'a> {
    fn new(tokens: &'a ClickTokens) -> Self {
        Self {
            tokens,
            written: HashMap::new(),
        }
    }

    fn text(&mut self, app: AppId, click: ClickId) -> &str {
        let tokens = self.tokens;
        let written = self.written.entry(click);
        written.or_insert_with(|| tokens.sign(app, click))
    }
}

/// The records in one part of the log.
pub(super) enum ExportRecords {
    Events(Vec<Event>),
    Clicks(Vec<Click>),
}

/// JSON line for an event: as in the API, but without deliveries.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportedEvent {
    #[serde(flatten)]
    event: EventOut,
    platform: Option<&'static str>,
    country: Option<String>,
    first_payment: bool,
    /// Whether this is the install that the service recorded, not an event that a client named so.
    install: bool,
}

fn event_out(event: Event, clicks: &mut ClickIdCache<'_>) -> ExportedEvent {
    ExportedEvent {
        platform: event.platform.map(Platform::as_str),
        country: event.country.clone(),
        first_payment: event.first_payment,
        install: event.is_install(),
        event: EventOut::without_deliveries(event, |app, click| clicks.text(app, click).to_owned()),
    }
}

/// JSON line for a click.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClickOut<'a> {
    id: String,
    link_id: String,
    clicked_at: String,
    network: Option<&'static str>,
    bot: Option<&'static str>,
    platform: &'static str,
    os_version: Option<&'a str>,
    model: Option<&'a str>,
    language: Option<&'a str>,
    country: Option<&'a str>,
    referer: Option<&'a str>,
    campaign: CampaignOut,
}

impl ExportRecords {
    /// Returns the id of the last record, after which the next part begins; `None` if there are no
    /// records.
    pub(super) fn last(&self) -> Option<[u8; 16]> {
        match self {
            Self::Events(events) => events.last().map(|event| *event.id.as_bytes()),
            Self::Clicks(clicks) => clicks.last().map(|click| *click.id.as_bytes()),
        }
    }

    /// Formats the records.
    pub(super) fn lines(self, format: ExportFormat, tokens: &ClickTokens) -> Vec<u8> {
        match (self, format) {
            (Self::Events(events), ExportFormat::Csv) => {
                let mut lines = CsvLines::with_capacity(events.len() * LINE_BYTES);
                let mut clicks = ClickIdCache::new(tokens);
                for event in &events {
                    event_line(event, &mut clicks, &mut lines);
                }
                lines.into_bytes()
            }
            (Self::Clicks(clicks), ExportFormat::Csv) => {
                let mut lines = CsvLines::with_capacity(clicks.len() * LINE_BYTES);
                for click in &clicks {
                    click_line(click, tokens, &mut lines);
                }
                lines.into_bytes()
            }
            (Self::Events(events), ExportFormat::Ndjson) => {
                let mut text = Vec::with_capacity(events.len() * LINE_BYTES);
                let mut clicks = ClickIdCache::new(tokens);
                for event in events {
                    json_line(&event_out(event, &mut clicks), &mut text);
                }
                text
            }
            (Self::Clicks(clicks), ExportFormat::Ndjson) => {
                let mut text = Vec::with_capacity(clicks.len() * LINE_BYTES);
                for click in &clicks {
                    json_line(&click_out(click, tokens), &mut text);
                }
                text
            }
        }
    }
}

fn json_line(value: &impl Serialize, text: &mut Vec<u8>) {
    // Serialization of these types cannot fail.
    if serde_json::to_writer(&mut *text, value).is_ok() {
        text.push(b'\n');
    }
}

fn event_line(event: &Event, clicks: &mut ClickIdCache<'_>, line: &mut CsvLines) {
    line.field(&event.id.to_string())
        .field(&event.external_id)
        .field(&event.name)
        .field(event.source.as_str())
        .field(event.environment.as_str())
        .field(&rfc3339(event.occurred_at))
        .field(&rfc3339(event.received_at))
        .optional(event.device.as_ref().map(DeviceKey::as_str))
        .optional(event.user.as_ref().map(UserKey::as_str))
        .optional(event.platform.map(Platform::as_str))
        .optional(event.country.as_deref());
    let revenue = event.revenue.as_ref();
    line.optional(revenue.map(|revenue| revenue.amount.to_string()).as_deref())
        .optional(
            revenue
                .and_then(|revenue| Some(revenue.currency?.as_str().to_owned()))
                .as_deref(),
        )
        .optional(
            revenue
                .and_then(|revenue| Some(revenue.usd?.to_string()))
                .as_deref(),
        )
        .optional(revenue.map(|revenue| {
            if revenue.uncounted.is_none() {
                "true"
            } else {
                "false"
            }
        }))
        .optional(revenue.and_then(|revenue| Some(revenue.uncounted?.as_str())))
        .field(if event.first_payment { "true" } else { "false" });
    let credit = event.credit.as_ref();
    let click = credit.and_then(|credit| credit.click);
    line.optional(credit.map(|credit| credit.network.as_str()))
        .optional(credit.map(|credit| credit.match_type.as_str()))
        .optional(
            credit
                .and_then(|credit| Some(credit.link?.to_string()))
                .as_deref(),
        )
        .optional(click.map(|click| clicks.text(event.app, click)));
    let campaign = credit.map(|credit| &credit.campaign);
    for pick in CAMPAIGN {
        line.optional(campaign.and_then(|campaign| pick(campaign).as_deref()));
    }
    let website = event.website.as_deref();
    let source_url = website.map(|website| website.source_url.as_str());
    line.optional(event.params.as_deref())
        .optional(original_transaction(event).as_deref())
        .optional(source_url.filter(|url| !url.is_empty()))
        .optional(event.hold().map(HoldState::as_str))
        .end();
}

/// Campaign fields in column order.
const CAMPAIGN: [fn(&tributary_domain::link::Campaign) -> &Option<String>; 6] = [
    |campaign| &campaign.id,
    |campaign| &campaign.name,
    |campaign| &campaign.adset_id,
    |campaign| &campaign.adset_name,
    |campaign| &campaign.ad_id,
    |campaign| &campaign.ad_name,
];

fn click_line(click: &Click, tokens: &ClickTokens, line: &mut CsvLines) {
    line.field(&tokens.sign(click.app, click.id))
        .field(&click.link.to_string())
        .field(&rfc3339(click.clicked_at))
        .optional(
            click
                .network
                .map(tributary_domain::integration::Network::as_str),
        )
        .optional(click.bot.map(tributary_domain::click::BotReason::as_str))
        .field(click.platform().as_str())
        .optional(click.agent.os_version.as_deref())
        .optional(click.agent.model.as_deref())
        .optional(click.language.as_deref())
        .optional(click.country.as_deref())
        .optional(click.referer.as_deref());
    for pick in CAMPAIGN {
        line.optional(pick(click.campaign()).as_deref());
    }
    line.end();
}

fn click_out<'a>(click: &'a Click, tokens: &ClickTokens) -> ClickOut<'a> {
    ClickOut {
        id: tokens.sign(click.app, click.id),
        link_id: click.link.to_string(),
        clicked_at: rfc3339(click.clicked_at),
        network: click
            .network
            .map(tributary_domain::integration::Network::as_str),
        bot: click.bot.map(tributary_domain::click::BotReason::as_str),
        platform: click.platform().as_str(),
        os_version: click.agent.os_version.as_deref(),
        model: click.agent.model.as_deref(),
        language: click.language.as_deref(),
        country: click.country.as_deref(),
        referer: click.referer.as_deref(),
        campaign: CampaignOut::from(click.campaign().clone()),
    }
}
