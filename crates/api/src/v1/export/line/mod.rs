//! Reads a line of an exported event, the counterpart of `records`.

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::value::RawValue;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::attribution::{CreditedNetwork, HoldState, MatchType};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::{Consent, DeviceKey, Platform, Tracking, UserKey};
use tributary_domain::event::import::{ImportedEvent, check};
use tributary_domain::event::name::canonical;
use tributary_domain::event::web::recorded_fingerprint;
use tributary_domain::event::{Credit, Event, EventSource, PARAMS_BYTES_MAX, WebEventDetails};
use tributary_domain::ledger::{Revenue, UncountedReason};
use tributary_domain::link::Campaign;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::{check_external_id, parse_event_name, reject_nul};
use tributary_domain::vocabulary::time::{Timestamp, event_time};

/// Maximum length of a line in bytes: the parameters, which may be 16 KiB long, and far more than all
/// other fields need.
pub const EXPORT_LINE_BYTES_MAX: usize = 64 * 1_024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExportedLine<'a> {
    id: String,
    event_id: String,
    name: String,
    source: String,
    environment: String,
    timestamp_ms: i64,
    received_at: String,
    device_id: Option<String>,
    /// Follows from the device id.
    #[serde(rename = "deviceIdPlaceholder", default)]
    _placeholder: bool,
    user_id: Option<String>,
    #[serde(borrow)]
    revenue: Option<ExportedRevenue<'a>>,
    original_transaction_id: Option<String>,
    source_url: Option<String>,
    duplicate_of: Option<String>,
    attribution: Option<ExportedCredit>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    platform: Option<String>,
    country: Option<String>,
    /// Follows from the device's payments.
    #[serde(rename = "firstPayment")]
    _first_payment: bool,
    install: bool,
    consent: Option<ExportedConsent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExportedConsent {
    ad_user_data: Option<bool>,
    ad_personalization: Option<bool>,
    tracking: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExportedRevenue<'a> {
    #[serde(borrow)]
    amount: &'a RawValue,
    currency: Option<String>,
    #[serde(borrow)]
    usd: Option<&'a RawValue>,
    rate_date: Option<String>,
    counted: bool,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExportedCredit {
    network: String,
    match_type: String,
    link_id: Option<String>,
    click_id: Option<String>,
    campaign: ExportedCampaign,
    hold: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExportedCampaign {
    id: Option<String>,
    name: Option<String>,
    adset_id: Option<String>,
    adset_name: Option<String>,
    ad_id: Option<String>,
    ad_name: Option<String>,
}

/// The parameters of a billing event that tell its transaction, which another source may use as its
/// event id.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BillingParams {
    transaction_id: Option<String>,
    provider: Option<String>,
}

/// Reads a line of an NDJSON export of events, as an event of this app. Returns every fault that the
/// line has, or the first one if it does not have the form of an exported event.
pub fn read_exported_event(app: AppId, line: &str) -> Result<ImportedEvent, Faults> {
    let parsed: ExportedLine<'_> = serde_json::from_str(line).map_err(|_| describe(line))?;
    let mut faults = Faults::new();
    let imported = read(app, parsed, &mut faults);
    match imported {
        Some(imported) if faults.is_empty() => {
            check(&imported, &mut faults);
            faults.into_result().map(|()| imported)
        }
        _ => Err(faults),
    }
}

/// Finds the first field that does not have its form. Messages do not contain values, which may be
/// personal data.
fn describe(line: &str) -> Faults {
    let mut faults = Faults::new();
    let mut reader = serde_json::Deserializer::from_str(line);
    let parsed = serde_path_to_error::deserialize::<_, ExportedLine<'_>>(&mut reader);
    let Err(error) = parsed else {
        let message = "Remove the text after the object.";
        faults.add("line", Problem::new(FaultCode::InvalidFormat, message));
        return faults;
    };
    let (path, cause) = (error.path().to_string(), error.inner());
    // A missing or unknown field of the line itself has no path.
    let path = if path == "." { "line" } else { path.as_str() };
    if !cause.is_data() {
        let message = "Must be one JSON object per line.";
        faults.add("line", Problem::new(FaultCode::InvalidFormat, message));
        return faults;
    }
    let text = cause.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let (code, message) = if let Some((_, expected)) = text.split_once(", expected ")
        && text.starts_with("invalid")
    {
        (FaultCode::WrongType, format!("Must be {expected}."))
    } else if text.starts_with("missing field") {
        (
            FaultCode::Required,
            format!("Not an exported event: {text}."),
        )
    } else {
        (
            FaultCode::UnknownField,
            format!("Not an exported event: {text}."),
        )
    };
    faults.add(path, Problem::new(code, message));
    faults
}

fn read(app: AppId, line: ExportedLine<'_>, faults: &mut Faults) -> Option<ImportedEvent> {
    let revenue = line.revenue.map(|revenue| read_revenue(revenue, faults));
    let click_text = line.attribution.as_ref();
    let click_text = click_text.and_then(|credit| credit.click_id.clone());
    let credit = line.attribution.map(|credit| read_credit(credit, faults));
    let mut text = |field, text: Option<&str>| optional(field, text, plain, faults);
    let parent = text(
        "originalTransactionId",
        line.original_transaction_id.as_deref(),
    );
    let source_url = text("sourceUrl", line.source_url.as_deref());
    let country = optional("country", line.country.as_deref(), country, faults);
    let platform = optional("platform", line.platform.as_deref(), platform, faults);
    let (device, user) = (line.device_id.as_deref(), line.user_id.as_deref());
    let device = optional("deviceId", device, DeviceKey::parse_any, faults);
    let user = optional("userId", user, UserKey::parse, faults);
    let duplicate_of = line.duplicate_of.as_deref();
    let duplicate_of = optional("duplicateOf", duplicate_of, event_id, faults);
    let params = line.params.map(RawValue::get);
    let params = optional("params", params, params_object, faults);
    let consent = line.consent.map(|consent| read_consent(&consent, faults));
    let id = faults.check("id", event_id(&line.id));
    let external_id = check_external_id(&line.event_id).map(str::to_owned);
    let external_id = faults.check("eventId", external_id);
    let name = faults.check("name", parse_event_name(&line.name));
    let source = choice(EventSource::parse(&line.source), "sdk, billing, web");
    let source = faults.check("source", source);
    let environment = choice(Environment::parse(&line.environment), "live, test");
    let environment = faults.check("environment", environment);
    let occurred_at = faults.check("timestampMs", event_time(line.timestamp_ms));
    let received_at = faults.check("receivedAt", time(&line.received_at));
    let source = source?;
    let (name, original_name) = canonical(&name?);
    let website = (source == EventSource::Web).then(|| WebEventDetails {
        source_url: source_url.unwrap_or_default(),
        parent,
        email_sha256: None,
    });
    let event = Event {
        id: id?,
        external_id: external_id?,
        app,
        environment: environment?,
        source,
        name,
        original_name,
        occurred_at: occurred_at?,
        received_at: received_at?,
        device,
        user,
        platform,
        country,
        revenue: revenue.flatten(),
        credit: credit.flatten(),
        params,
        first_payment: false,
        is_service_install: line.install,
        duplicate_of,
        dedup_root: None,
        consent,
        skipped: Vec::new(),
        website: website.map(Box::new),
    };
    Some(with_keys(event, &click_text.unwrap_or_default()))
}

/// Adds the ids by which other sources find the event.
fn with_keys(event: Event, click_text: &str) -> ImportedEvent {
    let is_web = event.source == EventSource::Web;
    let fingerprint = is_web.then(|| recorded_fingerprint(&event, click_text));
    let params = event.params.as_deref();
    let params = params.filter(|_| event.source == EventSource::Billing);
    let params = params.and_then(|text| serde_json::from_str::<BillingParams>(text).ok());
    let (transaction, provider) = params.map_or((None, None), |params| {
        (params.transaction_id, params.provider)
    });
    ImportedEvent {
        transaction,
        provider: provider.and_then(|provider| BillingProvider::parse(&provider)),
        fingerprint,
        event,
    }
}

fn read_revenue(revenue: ExportedRevenue<'_>, faults: &mut Faults) -> Option<Revenue> {
    let amount = faults.check("revenue.amount", Amount::parse(revenue.amount.get()));
    let currency = revenue.currency.as_deref();
    let currency = optional("revenue.currency", currency, currency_code, faults);
    let usd = revenue.usd.map(RawValue::get);
    let usd = optional("revenue.usd", usd, Amount::parse, faults);
    let rate_day = revenue.rate_date.as_deref();
    let rate_day = optional("revenue.rateDate", rate_day, Day::parse, faults);
    let reason = revenue.reason.as_deref();
    let uncounted = optional("revenue.reason", reason, uncounted_reason, faults);
    if revenue.counted != revenue.reason.is_none() {
        let message = "Must be true if and only if `reason` is null.";
        let problem = Problem::new(FaultCode::NotAllowed, message);
        faults.add("revenue.counted", problem);
    }
    Some(Revenue {
        amount: amount?,
        currency,
        usd,
        rate_day,
        rate: None,
        rate_source: None,
        uncounted,
    })
}

fn read_consent(consent: &ExportedConsent, faults: &mut Faults) -> Consent {
    let tracking_text = consent.tracking.as_deref();
    Consent {
        ad_user_data: consent.ad_user_data,
        ad_personalization: consent.ad_personalization,
        tracking: optional("consent.tracking", tracking_text, tracking, faults),
    }
}

fn tracking(text: &str) -> Result<Tracking, Problem> {
    choice(Tracking::parse(text), "authorized, denied, notDetermined")
}

fn read_credit(credit: ExportedCredit, faults: &mut Faults) -> Option<Credit> {
    let network = choice(
        CreditedNetwork::parse(&credit.network),
        "network_a, network_b, network_c, network_d, apple_ads, other, organic",
    );
    let network = faults.check("attribution.network", network);
    let match_type = choice(
        MatchType::parse(&credit.match_type),
        "click_id, referrer, adservices, probabilistic, organic",
    );
    let match_type = faults.check("attribution.matchType", match_type);
    let link = credit.link_id.as_deref();
    let link = optional("attribution.linkId", link, link_id, faults);
    let click = credit.click_id.as_deref();
    let click = optional("attribution.clickId", click, click_id, faults);
    let hold = credit.hold.as_deref();
    let hold = optional("attribution.hold", hold, hold_state, faults);
    let ExportedCampaign {
        id,
        name,
        adset_id,
        adset_name,
        ad_id,
        ad_name,
    } = credit.campaign;
    for text in [&id, &name, &adset_id, &adset_name, &ad_id, &ad_name] {
        optional("attribution.campaign", text.as_deref(), reject_nul, faults);
    }
    Some(Credit {
        network: network?,
        match_type: match_type?,
        link,
        click,
        campaign: Campaign {
            id,
            name,
            adset_id,
            adset_name,
            ad_id,
            ad_name,
        },
        hold,
    })
}

/// Reads a field that may be null.
fn optional<T>(
    field: &str,
    text: Option<&str>,
    read: impl FnOnce(&str) -> Result<T, Problem>,
    faults: &mut Faults,
) -> Option<T> {
    text.and_then(|text| faults.check(field, read(text)))
}

fn choice<T>(found: Option<T>, words: &str) -> Result<T, Problem> {
    let message = || format!("Must be one of {words}.");
    found.ok_or_else(|| Problem::new(FaultCode::UnknownValue, message()))
}

fn invalid(message: &str) -> Problem {
    Problem::new(FaultCode::InvalidFormat, message)
}

fn event_id(text: &str) -> Result<EventId, Problem> {
    EventId::parse(text).map_err(|_| invalid("Must be an event id (evt_…)."))
}

fn link_id(text: &str) -> Result<LinkId, Problem> {
    LinkId::parse(text).map_err(|_| invalid("Must be a link id (lnk_…)."))
}

/// Reads a click id. The secret of the exporting database is not known here, so the signature is not
/// verified; the click counts only if it is stored.
fn click_id(text: &str) -> Result<ClickId, Problem> {
    ClickTokens::unverified(text).ok_or_else(|| invalid("Must be a click id (clk_…)."))
}

fn platform(text: &str) -> Result<Platform, Problem> {
    choice(Platform::parse(text), "ios, android, web")
}

fn hold_state(text: &str) -> Result<HoldState, Problem> {
    choice(HoldState::parse(text), "held, released, rejected")
}

fn uncounted_reason(text: &str) -> Result<UncountedReason, Problem> {
    let message = "Must be a reason why revenue does not count.";
    let unknown = || Problem::new(FaultCode::UnknownValue, message);
    UncountedReason::parse(text).ok_or_else(unknown)
}

fn currency_code(text: &str) -> Result<Currency, Problem> {
    let message = "Must be a three-letter ISO 4217 code, for example USD.";
    Currency::from_stored(text).ok_or_else(|| invalid(message))
}

fn country(text: &str) -> Result<String, Problem> {
    let is_code = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    let message = "Must be a two-letter country code, for example DE.";
    is_code
        .then(|| text.to_owned())
        .ok_or_else(|| invalid(message))
}

fn time(text: &str) -> Result<Timestamp, Problem> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    let message = "Must be an RFC 3339 time, for example 2026-01-01T00:00:01.000Z.";
    parsed
        .map(|at| Timestamp::from_millis(at.as_millisecond()))
        .map_err(|_| invalid(message))
}

fn params_object(text: &str) -> Result<String, Problem> {
    if !text.starts_with('{') {
        return Err(Problem::new(FaultCode::WrongType, "Must be an object."));
    }
    if text.len() > PARAMS_BYTES_MAX {
        let message = format!("Must have at most {PARAMS_BYTES_MAX} bytes.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(text.to_owned())
}

fn plain(text: &str) -> Result<String, Problem> {
    reject_nul(text).map(|()| text.to_owned())
}
