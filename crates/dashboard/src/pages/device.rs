//! `GET /apps/{app}/devices/{device}` — a device, its attribution with all candidates, and its
//! events.

use crate::access::LogContext;
use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::pages::events::{self, EventTableRow, match_label};
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use crate::value_names::{LinkLabel, LinkNames, platform_label};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::resource::DevicesRead;
use tributary_domain::attestation::AttestationOutcome;
use tributary_domain::attribution::{
    ConsideredCandidate, CreditedNetwork, Decision, EvidenceSummary, Flag, MatchMethod, Rejection,
    Signals,
};
use tributary_domain::device::{Device, DeviceKey, IdentityFlag, Tracking};
use tributary_domain::install::Attribution;
use tributary_domain::vocabulary::country::country_label;
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

#[derive(Template)]
#[template(path = "device.html")]
struct DevicePage {
    shell: Shell,
    key: String,
    user: Option<String>,
    identity_flags: Vec<&'static str>,
    facts: Vec<(&'static str, String)>,
    decision: Option<DecisionView>,
    events: Vec<EventTableRow>,
    has_more: bool,
}

struct DecisionView {
    network: NetworkLabel,
    how: &'static str,
    reason: String,
    confidence: Option<u8>,
    decided: String,
    revision: u32,
    superseded: Option<String>,
    link: Option<LinkLabel>,
    evidence: Vec<(&'static str, String)>,
    window: String,
    probabilistic: bool,
    flags: Vec<&'static str>,
    hold: Option<&'static str>,
    /// Why a suspicious install is credited all the same.
    credited_anyway: Option<&'static str>,
    candidates: Vec<CandidateRow>,
}

struct CandidateRow {
    method: &'static str,
    clicked: String,
    age: String,
    network: NetworkLabel,
    link: Option<LinkLabel>,
    click: Option<String>,
    score: Option<u8>,
    signals: Vec<(&'static str, String)>,
    /// Why the candidate was rejected; `None` for the winner.
    rejected: Option<&'static str>,
}

const fn method_label(method: MatchMethod) -> &'static str {
    match method {
        MatchMethod::Referrer => "Play Store referrer",
        MatchMethod::ClickId => "Click id from the device",
        MatchMethod::AdServicesTap => "Apple AdServices, tap",
        MatchMethod::ForeignReferrer => "Referrer from another source",
        MatchMethod::AdvertisingId => "Advertising id",
        MatchMethod::AdServicesView => "Apple AdServices, view",
        MatchMethod::Probabilistic => "Probabilistic match",
    }
}

const fn rejection_label(rejection: Rejection) -> &'static str {
    match rejection {
        Rejection::OutsideWindow => "older than the click window",
        Rejection::DuplicateClick => "already credited with another install",
        Rejection::Bot => "click by a bot",
        Rejection::TestLink => "click on a test link",
        Rejection::BadToken => "invalid click id",
        Rejection::ForeignClick => "click for another app",
        Rejection::PendingClick => "the click is not stored yet",
        Rejection::Implausible => "implausible times",
        Rejection::ScoreTooLow => "score too low",
        Rejection::Ambiguous => "another click has the same score",
        Rejection::SharedAddress => "too many clicks from this address",
        Rejection::MethodDisabled => "method disabled for this platform",
        Rejection::OlderThanWinner => "a later click or view won",
    }
}

pub(crate) const fn flag_label(flag: Flag) -> &'static str {
    match flag {
        Flag::UnverifiedTime => "times known only from the device's clock",
        Flag::ShortCtit => "opened impossibly soon after the click",
        Flag::Implausible => "implausible times",
        Flag::ImpossibleDevice => "model or version does not exist on this platform",
        Flag::InstallBurst => "many installs from one address within an hour",
        Flag::AttestationFailed => "the proof of a genuine app is invalid",
        Flag::AttestationMissing => "no proof of a genuine app",
    }
}

fn attestation_label(outcome: AttestationOutcome) -> String {
    match outcome.failure() {
        Some(failure) => format!("{} ({})", outcome.as_str(), failure.as_str()),
        None => outcome.as_str().to_owned(),
    }
}

const fn identity_flag_label(flag: IdentityFlag) -> &'static str {
    match flag {
        IdentityFlag::TooManyUsers => "claimed too many users; its unsigned claims are not used",
        IdentityFlag::ClaimBurst => "many users claimed from one address within an hour",
        IdentityFlag::UnsignedUser => "claimed a user without the required signature",
        IdentityFlag::WrongSignature => "sent a wrong signature of a user id",
        IdentityFlag::CrowdedUser => {
            "claimed a user that too many devices had claimed; the claim is not recorded"
        }
        IdentityFlag::TooManyMatchingChanges => {
            "changed matching values too often; later ones are not used"
        }
    }
}

fn signals(signals: Signals) -> Vec<(&'static str, String)> {
    let points = |points: Option<u8>| points.map_or_else(|| "?".to_owned(), |one| one.to_string());
    vec![
        ("IP address", points(signals.address)),
        ("OS", points(signals.os_version)),
        ("model", points(signals.model)),
        ("time zone", points(signals.timezone)),
        ("language", points(signals.language)),
        ("screen", points(signals.screen)),
    ]
}

fn candidate(
    one: ConsideredCandidate,
    app: AppId,
    zone: &Timezone,
    names: &LinkNames,
    handles: &DashboardHandles,
) -> CandidateRow {
    CandidateRow {
        method: method_label(one.method),
        clicked: one
            .clicked_at
            .map_or_else(|| "–".to_owned(), |at| text::moment(at, zone)),
        age: one.age_seconds.map_or_else(|| "–".to_owned(), text::span),
        network: one
            .network
            .map_or(NetworkLabel::NONE, NetworkLabel::credited),
        link: one.link.map(|link| names.label(link)),
        click: one.click.map(|click| handles.click_tokens.sign(app, click)),
        score: one.score,
        signals: one.signals.map(signals).unwrap_or_default(),
        rejected: one.rejection.map(rejection_label),
    }
}

/// Explains a flagged install that is credited and not held.
fn credited_anyway(attribution: &Attribution) -> Option<&'static str> {
    let decision = &attribution.decision;
    let is_credited = decision.network != CreditedNetwork::Organic;
    (is_credited && !decision.flags.is_empty() && attribution.hold.is_none()).then_some(
        "The install is credited all the same, because such a sign also occurs with honest users. \
         To check flagged installs before they count, choose “Flag and hold for a review” in the \
         settings.",
    )
}

/// Returns the summary of the evidence in words. Unknown codes are shown as they are.
fn evidence(evidence: EvidenceSummary) -> Vec<(&'static str, String)> {
    let none = || "none".to_owned();
    let words = |value: Option<String>, words: &[(&str, &str)]| {
        let value = value.unwrap_or_else(none);
        let found = words.iter().find(|(code, _)| *code == value);
        found.map_or(value, |(_, words)| (*words).to_owned())
    };
    vec![
        ("Store referrer", words(evidence.referrer, &REFERRER_WORDS)),
        (
            "Apple AdServices",
            words(evidence.ad_services, &AD_SERVICES_WORDS),
        ),
        ("Click id", words(evidence.click_token, &CLICK_ID_WORDS)),
        ("IP address", words(evidence.address_class, &ADDRESS_WORDS)),
        (
            "Genuine app",
            evidence
                .attestation
                .map_or_else(|| "not checked".to_owned(), attestation_label),
        ),
    ]
}

const REFERRER_WORDS: [(&str, &str); 6] = [
    ("ours", "names a link of this app"),
    ("organic", "organic"),
    ("google", "names a Google Ads ad"),
    ("meta", "names a Meta ad"),
    ("other", "names another source"),
    ("unavailable", "could not be read"),
];
const AD_SERVICES_WORDS: [(&str, &str); 6] = [
    ("tap", "tap on an ad"),
    ("view", "view of an ad"),
    ("not_attributed", "no ad"),
    ("pending", "Apple has not responded yet"),
    ("invalid", "Apple rejected the token"),
    ("expired", "Apple did not respond in time"),
];
const CLICK_ID_WORDS: [(&str, &str); 5] = [
    ("valid", "valid"),
    ("opened_link", "the link opened the app"),
    ("bad", "invalid"),
    ("foreign", "of another app"),
    ("not_stored", "not stored yet"),
];
const ADDRESS_WORDS: [(&str, &str); 3] = [
    (
        "relay",
        "of a relay that hides the device's own, so not compared",
    ),
    ("private", "private, so not compared"),
    ("other", "the device's own network"),
];

fn decision(
    attribution: Attribution,
    first_open: Option<Timestamp>,
    app: AppId,
    zone: &Timezone,
    names: &LinkNames,
    handles: &DashboardHandles,
) -> DecisionView {
    let attribution = attribution.as_of(handles.runtime.now());
    let credited_anyway = credited_anyway(&attribution);
    let decision = attribution.decision;
    let times = decision.times;
    let begin = times.install_begin_at_server.or(times.install_begin_at);
    let moment = |label, at: Option<Timestamp>| Some((label, text::moment(at?, zone)));
    let moments = [
        moment("Installation began", begin),
        moment("First open", first_open),
    ];
    DecisionView {
        credited_anyway,
        network: NetworkLabel::credited(decision.network),
        how: match_label(decision.match_type),
        reason: decision.reason,
        confidence: decision.confidence,
        decided: text::moment(attribution.decided_at, zone),
        revision: attribution.revision,
        superseded: attribution.supersedes.map(|earlier| {
            let label = match_label(earlier.match_type);
            format!("{label}, {}", text::moment(earlier.decided_at, zone))
        }),
        link: decision.link.map(|link| names.label(link)),
        evidence: moments
            .into_iter()
            .flatten()
            .chain(evidence(decision.evidence))
            .collect(),
        window: text::hours_or_days(decision.settings.click_window_hours),
        probabilistic: decision.settings.probabilistic,
        flags: decision.flags.iter().copied().map(flag_label).collect(),
        hold: attribution.hold.map(|hold| hold.state.as_str()),
        candidates: decision
            .candidates
            .into_iter()
            .map(|one| candidate(one, app, zone, names, handles))
            .collect(),
    }
}

/// Returns the links of a decision and of its candidates.
fn links(decision: &Decision) -> impl Iterator<Item = LinkId> {
    let candidates = decision.candidates.iter();
    let candidates = candidates.filter_map(|one| one.link);
    decision.link.into_iter().chain(candidates)
}

fn facts(device: Device, zone: &Timezone) -> Vec<(&'static str, String)> {
    let yes_or_no = |known: Option<bool>| match known {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => "unknown".to_owned(),
    };
    let traits = device.traits;
    let some = |label, value: Option<String>| value.map(|value| (label, value));
    let consent = device.consent;
    [
        Some((
            "Platform",
            platform_label(traits.platform.as_str()).to_owned(),
        )),
        some("OS version", traits.os_version),
        some("Model", traits.model),
        some("Manufacturer", traits.manufacturer),
        some("App version", traits.app_version),
        some("Bundle id", traits.bundle_id),
        some("Locale", traits.locale),
        some("Time zone", traits.timezone),
        some("SDK version", traits.sdk_version),
        some("Country", device.country.map(|code| country_label(&code))),
        Some((
            "Advertising id",
            if device.advertising_id.is_some() {
                "known"
            } else {
                "none"
            }
            .to_owned(),
        )),
        Some((
            "Tracking permission",
            consent
                .tracking
                .map_or("unknown", Tracking::as_str)
                .to_owned(),
        )),
        Some(("Consent: ad data", yes_or_no(consent.ad_user_data))),
        Some((
            "Consent: personalised ads",
            yes_or_no(consent.ad_personalization),
        )),
        Some(("First seen", text::moment(device.first_seen_at, zone))),
        Some(("Last seen", text::moment(device.last_seen_at, zone))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: LogContext<DevicesRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let key = DeviceKey::parse(context.path_parameter("device")).map_err(|_| Failure::NotFound)?;
    let shown = key.as_str().to_owned();
    let caller = context.authorized.analytics_access();
    let story = handles.store.device(&caller, app.id, key).await?;
    let zone = &app.timezone;
    let known = story.state;
    let attribution = known.attribution.iter();
    let links = attribution.flat_map(|one| links(&one.decision));
    let names = LinkNames::load(&handles, &caller, app.id, links).await?;
    let flags = known.identity.flags.iter().copied();
    let first_open = known.device.as_ref().map(|device| device.first_seen_at);
    let page = DevicePage {
        identity_flags: flags.map(identity_flag_label).collect(),
        shell: context.shell(Section::Events),
        key: shown,
        user: known.identity.user.map(|user| user.as_str().to_owned()),
        facts: known
            .device
            .map(|device| facts(device, zone))
            .unwrap_or_default(),
        decision: known
            .attribution
            .map(|attribution| decision(attribution, first_open, app.id, zone, &names, &handles)),
        events: events::rows(&handles, app.id, zone, &story.events).await?,
        has_more: story.has_more_events,
    };
    Ok(context.page(&page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_in_words_and_an_unknown_code_is_shown() {
        let found = evidence(EvidenceSummary {
            referrer: Some("ours".to_owned()),
            address_class: Some("other".to_owned()),
            click_token: Some("later_code".to_owned()),
            ..EvidenceSummary::default()
        });
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        let expected = [
            "names a link of this app",
            "none",
            "later_code",
            "the device's own network",
            "not checked",
        ];
        assert_eq!(texts, expected);
    }
}
