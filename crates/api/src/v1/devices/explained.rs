//! An attribution with all its evidence and candidates, to answer "why organic?" without a
//! developer.

use crate::time_text::rfc3339;
use crate::track::shape::DecisionOut;
use crate::v1::held::shape::HoldOut;
use serde::Serialize;
use tributary_domain::attestation::{AttestationFailure, AttestationOutcome};
use tributary_domain::attribution::{ConsideredCandidate, CreditedNetwork, Rejection, Signals};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::install::Attribution;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use utoipa::ToSchema;

/// A device's attribution, with its explanation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "ExplainedAttribution")]
pub(super) struct ExplainedOut {
    #[serde(flatten)]
    attribution: DecisionOut,
    /// `attributed`, `organic`, `third_party`, `unavailable`, `pending_click`, `bad_token`,
    /// `foreign_click`, `implausible`, `outside_window` or `duplicate_click`.
    state: &'static str,
    /// Number of decisions so far, including this one.
    revision: u32,
    /// The earlier decision that this decision replaced.
    supersedes: Option<SupersedesOut>,
    evidence: EvidenceOut,
    /// The app's settings at the time of the decision.
    settings: SettingsOut,
    /// Candidate clicks, including the winner.
    candidates: Vec<CandidateOut>,
    /// Fraud signals: `unverified_time`, `short_ctit`, `implausible`, `impossible_device`,
    /// `install_burst`, `attestation_failed`, `attestation_missing`.
    flags: Vec<&'static str>,
    /// The hold; null if the install was never held.
    hold: Option<HoldOut>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SupersedesOut {
    match_type: &'static str,
    #[schema(format = DateTime)]
    decided_at: String,
}

/// Evidence that was available for the decision; null if there was none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EvidenceOut {
    /// `ours`, `organic`, `google`, `meta`, `other`, `unavailable`.
    referrer: Option<String>,
    /// `tap`, `view`, `not_attributed`, `pending`, `invalid`, `expired`.
    ad_services: Option<String>,
    /// `valid`, `bad`, `foreign`, `not_stored`.
    click_token: Option<String>,
    /// `relay`, `private`, `other`.
    address_class: Option<String>,
    /// Proof that the device runs the genuine app: `verified`, `failed`, `missing`; null if the app
    /// did not ask for one.
    attestation: Option<&'static str>,
    /// Why the proof failed: `not_configured`, `wrong_platform`, `too_large`, `malformed`,
    /// `invalid_challenge`, `expired_challenge`, `untrusted_certificate`, `invalid_signature`,
    /// `challenge_mismatch`, `key_mismatch`, `wrong_app`, `development_build`, `stale_token`,
    /// `unrecognized_app`, `untrusted_device`.
    attestation_failure: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SettingsOut {
    click_window_hours: i64,
    /// Whether probabilistic matching was enabled for this platform.
    probabilistic: bool,
    window_hours: i64,
}

/// A possible cause of the install.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CandidateOut {
    click_id: Option<String>,
    link_id: Option<String>,
    network: Option<&'static str>,
    #[schema(format = DateTime)]
    clicked_at: Option<String>,
    /// Age of the click at the time of the install.
    age_seconds: Option<i64>,
    /// `referrer`, `click_id`, `adservices_tap`, `foreign_referrer`, `advertising_id`,
    /// `adservices_view`, `probabilistic`.
    method: &'static str,
    /// Score; only for probabilistic matches.
    score: Option<u8>,
    signals: Option<SignalsOut>,
    accepted: bool,
    /// Rejection reason: `outside_window`, `duplicate_click`, `bot`, `test_link`, `bad_token`,
    /// `foreign_click`, `pending_click`, `implausible`, `score_too_low`, `ambiguous`, `shared_address`,
    /// `method_disabled`, `older_than_winner`.
    rejected: Option<&'static str>,
}

/// Points per signal. Null if the value is unknown for the click or for the device; 0 if both
/// values are known but differ.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SignalsOut {
    address: Option<u8>,
    os_version: Option<u8>,
    model: Option<u8>,
    timezone: Option<u8>,
    language: Option<u8>,
    screen: Option<u8>,
}

impl ExplainedOut {
    /// Builds the explanation as of now: a pending click that was not stored within a day counts as
    /// invalid.
    pub(super) fn of(
        attribution: Attribution,
        app: AppId,
        tokens: &ClickTokens,
        now: Timestamp,
    ) -> Self {
        let attribution = attribution.as_of(now);
        let decision = &attribution.decision;
        let evidence = decision.evidence.clone();
        let candidate = |one: &ConsideredCandidate| CandidateOut::of(one, app, tokens);
        Self {
            state: decision.state.as_str(),
            revision: attribution.revision,
            supersedes: attribution.supersedes.map(|earlier| SupersedesOut {
                match_type: earlier.match_type.as_str(),
                decided_at: rfc3339(earlier.decided_at),
            }),
            evidence: EvidenceOut {
                referrer: evidence.referrer,
                ad_services: evidence.ad_services,
                click_token: evidence.click_token,
                address_class: evidence.address_class,
                attestation: evidence.attestation.map(AttestationOutcome::as_str),
                attestation_failure: evidence
                    .attestation
                    .and_then(AttestationOutcome::failure)
                    .map(AttestationFailure::as_str),
            },
            settings: SettingsOut {
                click_window_hours: decision.settings.click_window_hours,
                probabilistic: decision.settings.probabilistic,
                window_hours: decision.settings.window_hours,
            },
            candidates: decision.candidates.iter().map(candidate).collect(),
            flags: decision.flags.iter().map(|flag| flag.as_str()).collect(),
            hold: attribution.hold.clone().map(HoldOut::from),
            attribution: DecisionOut::of(attribution, app, tokens),
        }
    }
}

impl CandidateOut {
    fn of(considered: &ConsideredCandidate, app: AppId, tokens: &ClickTokens) -> Self {
        Self {
            click_id: considered.click.map(|click| tokens.sign(app, click)),
            link_id: considered.link.map(|link| link.to_string()),
            network: considered.network.map(CreditedNetwork::as_str),
            clicked_at: considered.clicked_at.map(rfc3339),
            age_seconds: considered.age_seconds,
            method: considered.method.as_str(),
            score: considered.score,
            signals: considered.signals.map(SignalsOut::from),
            accepted: considered.rejection.is_none(),
            rejected: considered.rejection.map(Rejection::as_str),
        }
    }
}

impl From<Signals> for SignalsOut {
    fn from(signals: Signals) -> Self {
        Self {
            address: signals.address,
            os_version: signals.os_version,
            model: signals.model,
            timezone: signals.timezone,
            language: signals.language,
            screen: signals.screen,
        }
    }
}

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> serde_json::Value {
    let mut example = crate::track::shape::example();
    let explanation = serde_json::json!({
        "state": "attributed",
        "revision": 1,
        "supersedes": null,
        "evidence": {
            "referrer": null, "adServices": null, "clickToken": "valid", "addressClass": "other",
            "attestation": "verified", "attestationFailure": null
        },
        "settings": {"clickWindowHours": 168, "probabilistic": true, "windowHours": 24},
        "candidates": [{
            "clickId": "clk_030c1g60r30c1g60r30c1g60r354nfv34zghh9c074ps0hgy06",
            "linkId": "lnk_01k9z3v7q8e4r9m2x5c6b7n8d1",
            "network": "network_a",
            "clickedAt": "2025-12-31T23:39:00.000Z",
            "ageSeconds": 1260,
            "method": "click_id",
            "score": null,
            "signals": null,
            "accepted": true,
            "rejected": null
        }],
        "flags": [],
        "hold": null
    });
    if let (Some(example), serde_json::Value::Object(more)) = (example.as_object_mut(), explanation)
    {
        example.extend(more);
    }
    example
}
