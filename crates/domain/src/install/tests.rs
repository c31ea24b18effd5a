//! Effects of a `configure` call. Which click wins is tested in `attribution`.

use super::*;
use crate::access::Environment;
use crate::app::{AttributionRules, FraudPolicy};
use crate::attestation::PresentedOutcome;
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::{ClickIdSource, ReferrerTimes};
use crate::attribution::{Candidate, MatchState, MatchType, Rejection};
use crate::click::Click;
use crate::click::address::AddressClass;
use crate::click::agent::Agent;
use crate::click::params::TrackingParams;
use crate::device::{ClaimFacts, Consent, DeviceKey, IdentityClaim, Platform, Traits};
use crate::forwarding::plan::samples::click;
use crate::ledger::MoneyPolicy;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, AttributionId, ClickId, EventId};
use crate::vocabulary::time::Timestamp;
use rstest::rstest;
use std::collections::BTreeMap;

const DAY: i64 = 86_400;

pub(super) fn configure(
    command: &ConfigureCommand,
    state: &DeviceState,
    found: CandidateClicks,
) -> ConfigureDecision {
    super::configure(command, state, found, &ClaimFacts::default())
}

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
}

pub(super) fn click_id(number: u8) -> ClickId {
    ClickId::new(at(0), [number; 10])
}

pub(super) fn candidate(number: u8, seconds: i64) -> Candidate {
    let click = Click {
        id: click_id(number),
        clicked_at: at(seconds),
        agent: Agent {
            platform: Platform::Android,
            os_version: Some("14".to_owned()),
            model: None,
        },
        language: Some("en".to_owned()),
        address_hash: Some(Digest::of(b"address")),
        captured: TrackingParams::default(),
        ..click()
    };
    Candidate {
        click,
        deep_link: None,
        custom_data: BTreeMap::new(),
        is_taken: false,
    }
}

pub(super) fn call(platform: Platform, seconds: i64) -> ConfigureCommand {
    ConfigureCommand {
        app: AppId::from_bytes([1; 16]),
        environment: Environment::Live,
        policy: MoneyPolicy::Count,
        rules: AttributionRules {
            fraud: FraudPolicy::Refuse,
            ..AttributionRules::default()
        },
        at: at(seconds),
        device: DeviceKey::stored("device".to_owned()),
        traits: Traits {
            os_version: Some("14".to_owned()),
            locale: Some("en_US".to_owned()),
            ..Traits::of(platform)
        },
        identity: IdentityClaim::default(),
        advertising_id: None,
        idfv: None,
        consent: Consent::default(),
        erase_proof: None,
        country: None,
        claims: Vec::new(),
        referrer: None,
        times: ReferrerTimes::default(),
        ad_services_token: None,
        attestation: PresentedOutcome::default(),
        address_class: AddressClass::Other,
        address_hash: None,
        address_hashes: vec![Digest::of(b"address")],
        advertising_hash: Some(Digest::of(b"gaid")),
        app_link_click: None,
        attribution_id: AttributionId::new(at(seconds), [1; 10]),
        install_id: EventId::new(at(seconds), [2; 10]),
    }
}

pub(super) fn call_with_click(click: ClaimedClick, seconds: i64) -> ConfigureCommand {
    ConfigureCommand {
        claims: vec![ClickClaim {
            click,
            source: ClickIdSource::Client,
        }],
        ..call(Platform::Android, seconds)
    }
}

/// Returns the device's state after a call.
pub(super) fn after(outcome: ConfigureDecision) -> DeviceState {
    DeviceState {
        device: Some(outcome.device),
        attribution: Some(outcome.attribution),
        identity: outcome.identity,
        first_payment: None,
    }
}

pub(super) fn found_click(number: u8, seconds: i64) -> CandidateClicks {
    CandidateClicks {
        clicks: vec![candidate(number, seconds)],
        ..CandidateClicks::default()
    }
}

#[test]
fn the_first_call_of_a_device_is_its_install() {
    let command = call_with_click(ClaimedClick::Authentic(click_id(1)), 60);
    let outcome = configure(&command, &DeviceState::default(), found_click(1, 0));
    assert!(outcome.is_first_open && outcome.is_new_decision);
    assert_eq!(outcome.taken_click, Some(click_id(1)));
    let install = outcome.install.clone().expect("an install is recorded");
    assert_eq!(
        (install.id, install.is_service_install),
        (command.install_id, true)
    );
    assert_eq!(install.credit.unwrap().click, Some(click_id(1)));

    let later = call(Platform::Android, 90);
    let again = configure(&later, &after(outcome.clone()), CandidateClicks::default());
    assert_eq!(again.attribution, outcome.attribution);
    assert!(!again.is_first_open && !again.is_new_decision && again.install.is_none());
    assert_eq!((again.taken_click, again.released_click), (None, None));
}

#[rstest]
#[case::a_test_device_reserves_no_click(Environment::Test, Platform::Android, true)]
#[case::a_web_page_is_not_an_install(Environment::Live, Platform::Web, false)]
fn who_reserves_no_click(
    #[case] environment: Environment,
    #[case] platform: Platform,
    #[case] records_install: bool,
) {
    let mut command = call_with_click(ClaimedClick::Authentic(click_id(1)), 60);
    command.environment = environment;
    command.traits.platform = platform;
    let outcome = configure(&command, &DeviceState::default(), found_click(1, 0));
    assert_eq!(outcome.attribution.decision.click, Some(click_id(1)));
    assert_eq!(outcome.taken_click, None);
    assert_eq!(outcome.install.is_some(), records_install);
}

#[test]
fn a_better_click_releases_the_earlier_one() {
    let candidates = CandidateClicks {
        same_address: vec![candidate(1, 0)],
        ..CandidateClicks::default()
    };
    let first = configure(
        &call(Platform::Android, 60),
        &DeviceState::default(),
        candidates,
    );
    assert_eq!(
        first.attribution.decision.match_type,
        MatchType::Probabilistic
    );
    assert_eq!(first.taken_click, Some(click_id(1)));
    let command = call_with_click(ClaimedClick::Authentic(click_id(2)), 90);
    let better = configure(&command, &after(first), found_click(2, 5));
    assert_eq!(
        (better.taken_click, better.released_click),
        (Some(click_id(2)), Some(click_id(1)))
    );
    assert_eq!(better.attribution.revision, 2);
    let before = better.attribution.decision.candidates.iter();
    let before: Vec<_> = before
        .filter(|one| one.click == Some(click_id(1)))
        .collect();
    assert_eq!(before.len(), 1, "earlier candidates are kept");
    assert!(before[0].rejection.is_some());
}

#[test]
fn a_pending_click_is_loaded_without_being_sent_again() {
    let command = call_with_click(ClaimedClick::Authentic(click_id(1)), 60);
    let first = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    assert_eq!(first.attribution.decision.state, MatchState::PendingClick);
    let state = after(first);
    let later = call(Platform::Android, 120);
    assert_eq!(candidate_query(&later, &state).clicks, [click_id(1)]);
    let found = configure(&later, &state, found_click(1, 0));
    assert_eq!(found.attribution.decision.click, Some(click_id(1)));
    assert_eq!(found.taken_click, Some(click_id(1)));
}

#[rstest]
#[case::a_forged_id(ClaimedClick::BadToken, Rejection::BadToken)]
#[case::of_another_app(ClaimedClick::Foreign(click_id(1)), Rejection::ForeignClick)]
fn invalid_and_foreign_clicks_are_not_loaded(#[case] click: ClaimedClick, #[case] why: Rejection) {
    let command = call_with_click(click, 60);
    assert!(
        candidate_query(&command, &DeviceState::default())
            .clicks
            .is_empty()
    );
    let outcome = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    let rejected: Vec<_> = outcome
        .attribution
        .decision
        .candidates
        .iter()
        .map(|one| one.rejection)
        .collect();
    assert_eq!(rejected, [Some(why)]);
}

#[test]
fn probabilistic_candidates_are_loaded_for_the_first_call_only() {
    let command = call(Platform::Android, 60);
    let first = candidate_query(&command, &DeviceState::default());
    assert_eq!(first.address_hashes.len(), 1);
    assert_eq!(first.clicks_from, at(60 - DAY));
    let outcome = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    let later = candidate_query(&call(Platform::Android, 90), &after(outcome));
    assert!(later.address_hashes.is_empty());
    let page = candidate_query(&call(Platform::Web, 60), &DeviceState::default());
    assert!(page.clicks.is_empty() && page.address_hashes.is_empty());
    assert_eq!(page.advertising_hash, None);
}

#[rstest]
#[case::ios(Platform::Ios, true)]
#[case::android(Platform::Android, false)]
fn a_token_is_redeemed_once(#[case] platform: Platform, #[case] expected: bool) {
    let with_token = |seconds| ConfigureCommand {
        ad_services_token: Some("token".to_owned()),
        ..call(platform, seconds)
    };
    let outcome = configure(
        &with_token(60),
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    assert_eq!(outcome.redeems_token, expected);
    let again = configure(&with_token(90), &after(outcome), CandidateClicks::default());
    assert!(!again.redeems_token);
}

fn respond(answer: AdServices, state: &DeviceState) -> AttributionUpdate {
    respond_in(Environment::Live, answer, state)
}

fn respond_in(
    environment: Environment,
    answer: AdServices,
    state: &DeviceState,
) -> AttributionUpdate {
    let answer = AdServicesOutcome {
        environment,
        rules: AttributionRules::default(),
        answer,
        at: at(70),
    };
    apply_ad_services(&answer, state).expect("the device has an attribution")
}

#[test]
fn an_ad_services_tap_replaces_a_probabilistic_match() {
    let candidates = CandidateClicks {
        same_address: vec![candidate(1, 0)],
        ..CandidateClicks::default()
    };
    let first = configure(
        &call(Platform::Android, 60),
        &DeviceState::default(),
        candidates,
    );
    let update = respond(AdServices::Tap(Box::default()), &after(first));
    assert!(update.is_replaced);
    assert_eq!(
        update.attribution.decision.match_type,
        MatchType::AdServices
    );
    assert_eq!(update.released_click, Some(click_id(1)));
}

#[test]
fn a_test_device_releases_no_click() {
    let candidates = CandidateClicks {
        same_address: vec![candidate(1, 0)],
        ..CandidateClicks::default()
    };
    let command = ConfigureCommand {
        environment: Environment::Test,
        ..call(Platform::Android, 60)
    };
    let first = configure(&command, &DeviceState::default(), candidates);
    let tap = AdServices::Tap(Box::default());
    let update = respond_in(Environment::Test, tap, &after(first));
    assert!(update.is_replaced);
    assert_eq!(update.released_click, None);
}

#[test]
fn a_certain_decision_only_records_the_ad_services_response() {
    let command = call_with_click(ClaimedClick::Authentic(click_id(1)), 60);
    let first = configure(&command, &DeviceState::default(), found_click(1, 0));
    let state = after(first.clone());
    let update = respond(AdServices::Tap(Box::default()), &state);
    assert!(!update.is_replaced && update.released_click.is_none());
    assert_eq!(update.attribution.revision, 1);
    assert_eq!(
        update.attribution.decision.click,
        first.attribution.decision.click
    );
    assert_eq!(
        update.attribution.decision.evidence.ad_services.as_deref(),
        Some("tap")
    );
    assert_eq!(
        apply_ad_services(
            &AdServicesOutcome {
                environment: Environment::Live,
                rules: AttributionRules::default(),
                answer: AdServices::NotAttributed,
                at: at(70),
            },
            &DeviceState::default(),
        ),
        None
    );
}

#[test]
fn a_client_click_id_replaces_a_rejected_referrer() {
    let mut command = call_with_click(ClaimedClick::Authentic(click_id(1)), 60);
    command.claims.push(ClickClaim {
        click: ClaimedClick::BadToken,
        source: ClickIdSource::Referrer,
    });
    let outcome = configure(&command, &DeviceState::default(), found_click(1, 0));
    let decision = outcome.attribution.decision;
    assert_eq!(
        (decision.click, decision.match_type),
        (Some(click_id(1)), MatchType::ClickId)
    );
    let rejected: Vec<_> = decision
        .candidates
        .iter()
        .map(|one| one.rejection)
        .collect();
    assert_eq!(rejected, [None, Some(Rejection::BadToken)]);
}

#[test]
fn a_late_referrer_click_is_checked_against_the_stores_times() {
    let mut command = call_with_click(ClaimedClick::Authentic(click_id(1)), 600);
    command.claims[0].source = ClickIdSource::Referrer;
    command.times.install_begin_at_server = Some(at(-60));
    command.times.click_at_server = Some(at(-120));
    let first = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    assert_eq!(first.attribution.decision.state, MatchState::PendingClick);
    let later = call(Platform::Android, 700);
    let judged = configure(&later, &after(first), found_click(1, 0));
    assert_eq!(judged.attribution.decision.state, MatchState::Implausible);
    assert_eq!(judged.taken_click, None);
}

#[test]
fn rejected_late_evidence_is_recorded() {
    let first = configure(
        &call(Platform::Ios, 60),
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    let mut forged = call_with_click(ClaimedClick::BadToken, 90);
    forged.traits.platform = Platform::Ios;
    let later = configure(&forged, &after(first), CandidateClicks::default());
    assert!(!later.is_new_decision);
    let decision = later.attribution.decision;
    assert_eq!(decision.state, MatchState::Organic);
    assert_eq!(decision.candidates[0].rejection, Some(Rejection::BadToken));
    assert_eq!(decision.evidence.click_token.as_deref(), Some("bad"));
}

#[test]
fn a_click_that_was_never_stored_becomes_a_bad_token() {
    let command = call_with_click(ClaimedClick::Authentic(click_id(1)), 60);
    let first = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    )
    .attribution;
    assert_eq!(first.as_of(at(60 + DAY)), first);
    let read = first.as_of(at(61 + DAY)).decision;
    assert_eq!(read.state, MatchState::BadToken);
    assert_eq!(read.candidates[0].rejection, Some(Rejection::BadToken));
    assert_ne!(read.reason, first.decision.reason);
}

#[test]
fn a_negative_ad_services_response_updates_the_reason() {
    let command = ConfigureCommand {
        ad_services_token: Some("token".to_owned()),
        ..call(Platform::Ios, 60)
    };
    let first = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    let before = first.attribution.decision.reason.clone();
    let update = respond(AdServices::NotAttributed, &after(first));
    assert_ne!(update.attribution.decision.reason, before);
    assert_eq!(update.attribution.revision, 1);
}

#[rstest]
#[case::invalid_token(AdServices::Invalid, true)]
#[case::expired_token(AdServices::Expired, true)]
#[case::not_attributed(AdServices::NotAttributed, false)]
fn another_token_is_redeemed_after_an_unusable_one(
    #[case] answer: AdServices,
    #[case] again: bool,
) {
    let command = ConfigureCommand {
        ad_services_token: Some("token".to_owned()),
        ..call(Platform::Ios, 60)
    };
    let first = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    let mut state = after(first);
    state.attribution = Some(respond(answer, &state).attribution);
    assert_eq!(
        configure(&command, &state, CandidateClicks::default()).redeems_token,
        again
    );
}

#[test]
fn an_app_link_that_opened_the_app_is_recorded() {
    let mut opened = candidate(1, 60).click;
    opened.id = click_id(1);
    let command = ConfigureCommand {
        app_link_click: Some(opened),
        ..call(Platform::Android, 60)
    };
    let outcome = configure(&command, &DeviceState::default(), found_click(1, 60));
    let decision = outcome.attribution.decision;
    assert_eq!(
        decision.evidence.click_token.as_deref(),
        Some("opened_link")
    );
    assert!(decision.flags.is_empty() && decision.reason.contains("opened the app"));
}
