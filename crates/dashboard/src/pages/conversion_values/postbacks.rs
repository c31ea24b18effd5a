//! `GET /apps/{app}/conversion-values/postbacks` — postbacks received from Apple devices.

use crate::access::LogContext;
use crate::failure::Failure;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AppsRead;
use tributary_domain::skan::decode::{DecodedValue, DocumentVersion, ReportedValue, decode};
use tributary_domain::skan::postback::Protocol;
use tributary_domain::vocabulary::id::PostbackId;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::{PostbackFilter, StoredPostback};

#[derive(Template)]
#[template(path = "postbacks.html")]
struct PostbacksPage {
    shell: Shell,
    rows: Vec<Row>,
    older: Option<String>,
}

struct Row {
    at: String,
    protocol: &'static str,
    ad_network: String,
    source: String,
    window: u8,
    value: String,
    meaning: String,
    won: bool,
    signature: &'static str,
    counts: bool,
}

const fn protocol_label(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::SkAdNetwork => "SKAdNetwork",
        Protocol::AdAttributionKit => "AdAttributionKit",
    }
}

fn row(
    stored: &StoredPostback,
    versions: &[DocumentVersion],
    accepts: bool,
    zone: &Timezone,
) -> Row {
    let postback = &stored.parsed.postback;
    let reported = ReportedValue::of(postback);
    let window = postback.sequence_index;
    let decoded = decode(reported, window, stored.received_at, versions);
    let names = |reading: &tributary_domain::skan::decode::Interpretation| {
        reading.names().collect::<Vec<_>>().join(" or ")
    };
    Row {
        at: text::moment(stored.received_at, zone),
        protocol: protocol_label(postback.protocol),
        ad_network: postback.ad_network_id.clone(),
        source: postback
            .source_identifier
            .clone()
            .or_else(|| postback.campaign_id.map(|id| id.to_string()))
            .unwrap_or_else(|| "–".to_owned()),
        window: window + 1,
        value: match reported {
            ReportedValue::Nothing => "withheld".to_owned(),
            ReportedValue::Fine(fine) => fine.to_string(),
            ReportedValue::Coarse(coarse) => coarse.as_str().to_owned(),
        },
        meaning: match &decoded {
            DecodedValue::Withheld => "withheld by Apple".to_owned(),
            DecodedValue::Undecoded => "no configuration defines it".to_owned(),
            DecodedValue::Decoded(reading) => names(reading),
            DecodedValue::Ambiguous(readings) => {
                let all: Vec<String> = readings.iter().map(names).collect();
                format!("ambiguous: {}", all.join(", or "))
            }
        },
        won: postback.did_win,
        signature: stored.parsed.signature.as_str(),
        counts: stored.counting.counts(accepts),
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: LogContext<AppsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let before = context.query.get("before");
    let before = before.and_then(|text| PostbackId::parse(text).ok());
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let (caller, filter) = (&context.authorized, PostbackFilter::default());
    let found = handles
        .store
        .postbacks(caller, app.id, filter, request)
        .await?;
    let last = found.page.items.last().map(|one| one.id.to_string());
    let (versions, accepts) = (&found.versions, found.accept_test_signals);
    let page = PostbacksPage {
        shell: context.shell(Section::ConversionValues),
        rows: found
            .page
            .items
            .iter()
            .map(|one| row(one, versions, accepts, &app.timezone))
            .collect(),
        older: paging::older(&context.query, found.page.has_more, last),
    };
    Ok(context.page(&page))
}
