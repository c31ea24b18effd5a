//! Attribution decisions as JSON in a column. Field names are those of the API in snake case;
//! missing fields are omitted.

use super::click::CampaignJson;
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::attestation::AttestationOutcome;
use tributary_domain::attribution::evidence::ReferrerTimes;
use tributary_domain::attribution::{
    ConsideredCandidate, CreditedNetwork, Decision, EvidenceSummary, Flag, MatchMethod, MatchState,
    MatchType, Rejection, SettingsSummary, Signals, SupersededDecision,
};
use tributary_domain::install::Attribution;
use tributary_domain::vocabulary::id::{AttributionId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;

#[derive(Serialize, Deserialize)]
struct DecisionJson<'a> {
    state: String,
    match_type: String,
    network: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    click: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(default)]
    campaign: CampaignJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyword: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_click_id: Option<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deep_link: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    custom_data: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    query_params: BTreeMap<String, String>,
    reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<ConsideredJson>,
    #[serde(default)]
    evidence: EvidenceJson,
    click_window_hours: i64,
    probabilistic: bool,
    window_hours: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<(String, i64)>,
    /// Times in milliseconds: tap in the store and install start by the device's clock, then the
    /// same two times by Google's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<[Option<i64>; 4]>,
}

#[derive(Serialize, Deserialize)]
struct ConsideredJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    click: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clicked_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<i64>,
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<u8>,
    /// Points for address, OS version, model, time zone, language and screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    signals: Option<[Option<u8>; 6]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<String>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct EvidenceJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    referrer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ad_services: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    click_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address_class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attestation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attestation_failure: Option<String>,
}

/// Converts a decision to JSON.
pub(super) fn decision_to_json(attribution: &Attribution) -> String {
    let decision = &attribution.decision;
    let evidence = decision.evidence.clone();
    to_json(&DecisionJson {
        state: decision.state.as_str().to_owned(),
        match_type: decision.match_type.as_str().to_owned(),
        network: decision.network.as_str().to_owned(),
        confidence: decision.confidence,
        click: decision.click.map(|id| id.to_string()),
        link: decision.link.map(|id| id.to_string()),
        campaign: (&decision.campaign).into(),
        keyword: decision.keyword.clone(),
        network_click_id: decision.network_click_id.clone(),
        deep_link: decision.deep_link.clone(),
        custom_data: decision.custom_data.clone(),
        query_params: decision.query_params.clone(),
        reason: decision.reason.clone(),
        flags: decision
            .flags
            .iter()
            .map(|flag| flag.as_str().to_owned())
            .collect(),
        candidates: decision.candidates.iter().map(considered_to_json).collect(),
        evidence: EvidenceJson {
            referrer: evidence.referrer,
            ad_services: evidence.ad_services,
            click_token: evidence.click_token,
            address_class: evidence.address_class,
            attestation: evidence.attestation.map(|one| one.as_str().to_owned()),
            attestation_failure: evidence
                .attestation
                .and_then(AttestationOutcome::failure)
                .map(|failure| failure.as_str().to_owned()),
        },
        click_window_hours: decision.settings.click_window_hours,
        probabilistic: decision.settings.probabilistic,
        window_hours: decision.settings.window_hours,
        supersedes: attribution.supersedes.map(|earlier| {
            let match_type = earlier.match_type.as_str().to_owned();
            (match_type, earlier.decided_at.as_millis())
        }),
        times: times_to_json(decision.times),
    })
}

fn times_to_json(times: ReferrerTimes) -> Option<[Option<i64>; 4]> {
    let all = [
        times.click_at,
        times.install_begin_at,
        times.click_at_server,
        times.install_begin_at_server,
    ];
    (times != ReferrerTimes::default()).then(|| all.map(|at| at.map(Timestamp::as_millis)))
}

fn times_from_json(stored: Option<[Option<i64>; 4]>) -> ReferrerTimes {
    let [
        click_at,
        install_begin_at,
        click_at_server,
        install_begin_at_server,
    ] = stored
        .unwrap_or_default()
        .map(|at| at.map(Timestamp::from_millis));
    ReferrerTimes {
        click_at,
        install_begin_at,
        click_at_server,
        install_begin_at_server,
    }
}

fn considered_to_json(considered: &ConsideredCandidate) -> ConsideredJson {
    ConsideredJson {
        click: considered.click.map(|id| id.to_string()),
        link: considered.link.map(|id| id.to_string()),
        network: considered
            .network
            .map(|network| network.as_str().to_owned()),
        clicked_at: considered.clicked_at.map(Timestamp::as_millis),
        age_seconds: considered.age_seconds,
        method: considered.method.as_str().to_owned(),
        score: considered.score,
        signals: considered.signals.map(|signals| {
            let Signals {
                address,
                os_version,
                model,
                timezone,
                language,
                screen,
            } = signals;
            [address, os_version, model, timezone, language, screen]
        }),
        rejected: considered.rejection.map(|why| why.as_str().to_owned()),
    }
}

/// Returns whether JSON written by [`decision_to_json`] contains a flag.
pub(super) fn has_flags(text: &str) -> Result<bool, StoreError> {
    #[derive(Deserialize)]
    struct FlagsJson {
        #[serde(default)]
        flags: Vec<String>,
    }
    let stored: FlagsJson = from_json("devices", "decision", "a device", text)?;
    Ok(!stored.flags.is_empty())
}

/// Reads JSON written by [`decision_to_json`].
pub(super) fn attribution_from_json(
    id: AttributionId,
    revision: i64,
    decided_at: i64,
    text: &str,
) -> Result<Attribution, StoreError> {
    let stored: DecisionJson<'_> = from_json("devices", "decision", id, text)?;
    read(id, revision, decided_at, stored)
        .ok_or_else(|| StoreError::corrupt("devices", "decision", id))
}

/// Returns `None` when a stored value is unknown.
fn read(
    id: AttributionId,
    revision: i64,
    decided_at: i64,
    stored: DecisionJson<'_>,
) -> Option<Attribution> {
    let candidates: Option<Vec<_>> = stored.candidates.into_iter().map(read_considered).collect();
    let flags: Option<BTreeSet<_>> = stored.flags.iter().map(|flag| Flag::parse(flag)).collect();
    let supersedes = match stored.supersedes {
        None => None,
        Some((match_type, decided_at)) => Some(SupersededDecision {
            match_type: MatchType::parse(&match_type)?,
            decided_at: Timestamp::from_millis(decided_at),
        }),
    };
    let failure = stored.evidence.attestation_failure;
    let attestation = parse_optional(stored.evidence.attestation, |outcome| {
        AttestationOutcome::parse(outcome, failure.as_deref())
    })?;
    Some(Attribution {
        id,
        revision: u32::try_from(revision).ok()?,
        decided_at: Timestamp::from_millis(decided_at),
        supersedes,
        decision: Decision {
            state: MatchState::parse(&stored.state)?,
            match_type: MatchType::parse(&stored.match_type)?,
            network: CreditedNetwork::parse(&stored.network)?,
            confidence: stored.confidence,
            click: parse_optional(stored.click, |text| ClickId::parse(text).ok())?,
            link: parse_optional(stored.link, |text| LinkId::parse(text).ok())?,
            campaign: stored.campaign.into(),
            keyword: stored.keyword,
            network_click_id: stored.network_click_id,
            deep_link: stored.deep_link,
            custom_data: stored.custom_data,
            query_params: stored.query_params,
            reason: stored.reason,
            flags: flags?,
            candidates: candidates?,
            evidence: EvidenceSummary {
                referrer: stored.evidence.referrer,
                ad_services: stored.evidence.ad_services,
                click_token: stored.evidence.click_token,
                address_class: stored.evidence.address_class,
                attestation,
            },
            times: times_from_json(stored.times),
            settings: SettingsSummary {
                click_window_hours: stored.click_window_hours,
                probabilistic: stored.probabilistic,
                window_hours: stored.window_hours,
            },
        },
        // Stored in separate columns.
        hold: None,
    })
}

fn read_considered(stored: ConsideredJson) -> Option<ConsideredCandidate> {
    Some(ConsideredCandidate {
        click: parse_optional(stored.click, |text| ClickId::parse(text).ok())?,
        link: parse_optional(stored.link, |text| LinkId::parse(text).ok())?,
        network: parse_optional(stored.network, CreditedNetwork::parse)?,
        clicked_at: stored.clicked_at.map(Timestamp::from_millis),
        age_seconds: stored.age_seconds,
        method: MatchMethod::parse(&stored.method)?,
        score: stored.score,
        signals: stored
            .signals
            .map(
                |[address, os_version, model, timezone, language, screen]| Signals {
                    address,
                    os_version,
                    model,
                    timezone,
                    language,
                    screen,
                },
            ),
        rejection: parse_optional(stored.rejected, Rejection::parse)?,
    })
}

/// Parses an optional text. Returns `None` when the text is present but unknown.
#[expect(clippy::option_option, reason = "absent and unreadable differ")]
fn parse_optional<T>(text: Option<String>, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => parse(&text).map(Some),
    }
}
