//! What a call comes to, beyond which click wins: that is `attribution`'s table.

use super::*;
use crate::access::Environment;
use crate::app::AttributionRules;
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::{ClickIdSource, ReferrerTimes};
use crate::attribution::{Candidate, MatchState, MatchType, Rejection};
use crate::click::Click;
use crate::click::address::AddressClass;
use crate::click::agent::Agent;
use crate::click::params::TrackingParams;
use crate::device::{Consent, DeviceKey, Identity, Platform, Traits};
use crate::forwarding::plan::samples::click;
use crate::ledger::MoneyPolicy;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, AttributionId, ClickId, EventId};
use crate::vocabulary::time::Timestamp;
use rstest::rstest;
use std::collections::BTreeMap;

const DAY: i64 = 86_400;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
}

fn click_id(number: u8) -> ClickId {
    ClickId::new(at(0), [number; 10])
}

fn candidate(number: u8, seconds: i64) -> Candidate {
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

fn call(platform: Platform, seconds: i64) -> ConfigureCommand {
    ConfigureCommand {
        app: AppId::from_bytes([1; 16]),
        environment: Environment::Live,
        policy: MoneyPolicy::Count,
        rules: AttributionRules::default(),
        at: at(seconds),
        device: DeviceKey::stored("device".to_owned()),
        traits: Traits {
            os_version: Some("14".to_owned()),
            locale: Some("en_US".to_owned()),
            ..Traits::of(platform)
        },
        identity: Identity::default(),
        advertising_id: None,
        idfv: None,
        consent: Consent::default(),
        country: None,
        claims: Vec::new(),
        referrer: None,
        times: ReferrerTimes::default(),
        ad_services_token: None,
        address_class: AddressClass::Other,
        address_hash: None,
        address_hashes: vec![Digest::of(b"address")],
        advertising_hash: Some(Digest::of(b"gaid")),
        app_link_click: None,
        attribution_id: AttributionId::new(at(seconds), [1; 10]),
        install_id: EventId::new(at(seconds), [2; 10]),
    }
}

fn claiming(click: ClaimedClick, seconds: i64) -> ConfigureCommand {
    ConfigureCommand {
        claims: vec![ClickClaim {
            click,
            source: ClickIdSource::Client,
        }],
        ..call(Platform::Android, seconds)
    }
}

/// What is known after a call.
fn after(opening: ConfigureDecision) -> DeviceState {
    DeviceState {
        device: Some(opening.device),
        attribution: Some(opening.attribution),
        identity: opening.identity,
        first_payment: None,
    }
}

fn named(number: u8, seconds: i64) -> CandidateClicks {
    CandidateClicks {
        clicks: vec![candidate(number, seconds)],
        ..CandidateClicks::default()
    }
}

#[test]
fn the_first_call_of_a_device_is_its_install() {
    let command = claiming(ClaimedClick::Authentic(click_id(1)), 60);
    let opening = configure(&command, &DeviceState::default(), named(1, 0));
    assert!(opening.is_first_open && opening.is_new_decision);
    assert_eq!(opening.taken_click, Some(click_id(1)));
    let install = opening.install.clone().expect("an install is recorded");
    assert_eq!(
        (install.id, install.is_service_install),
        (command.install_id, true)
    );
    assert_eq!(install.credit.unwrap().click, Some(click_id(1)));

    let later = call(Platform::Android, 90);
    let again = configure(&later, &after(opening.clone()), CandidateClicks::default());
    assert_eq!(again.attribution, opening.attribution);
    assert!(!again.is_first_open && !again.is_new_decision && again.install.is_none());
    assert_eq!((again.taken_click, again.released_click), (None, None));
}

#[rstest]
#[case::a_test_device_uses_no_click_up(Environment::Test, Platform::Android, true)]
#[case::a_web_page_is_no_install(Environment::Live, Platform::Web, false)]
fn who_takes_no_click(
    #[case] environment: Environment,
    #[case] platform: Platform,
    #[case] makes_install: bool,
) {
    let mut command = claiming(ClaimedClick::Authentic(click_id(1)), 60);
    command.environment = environment;
    command.traits.platform = platform;
    let opening = configure(&command, &DeviceState::default(), named(1, 0));
    assert_eq!(opening.attribution.decision.click, Some(click_id(1)));
    assert_eq!(opening.taken_click, None);
    assert_eq!(opening.install.is_some(), makes_install);
}

#[test]
fn a_better_click_frees_the_one_before() {
    let likeness = CandidateClicks {
        same_address: vec![candidate(1, 0)],
        ..CandidateClicks::default()
    };
    let first = configure(
        &call(Platform::Android, 60),
        &DeviceState::default(),
        likeness,
    );
    assert_eq!(
        first.attribution.decision.match_type,
        MatchType::Probabilistic
    );
    assert_eq!(first.taken_click, Some(click_id(1)));
    let command = claiming(ClaimedClick::Authentic(click_id(2)), 90);
    let better = configure(&command, &after(first), named(2, 5));
    assert_eq!(
        (better.taken_click, better.released_click),
        (Some(click_id(2)), Some(click_id(1)))
    );
    assert_eq!(better.attribution.revision, 2);
    let before = better.attribution.decision.candidates.iter();
    let before: Vec<_> = before
        .filter(|one| one.click == Some(click_id(1)))
        .collect();
    assert_eq!(
        before.len(),
        1,
        "the story keeps what was considered before"
    );
    assert!(before[0].rejection.is_some());
}

#[test]
fn a_click_that_appears_later_is_looked_for_without_being_named_again() {
    let command = claiming(ClaimedClick::Authentic(click_id(1)), 60);
    let first = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    assert_eq!(first.attribution.decision.state, MatchState::PendingClick);
    let known = after(first);
    let later = call(Platform::Android, 120);
    assert_eq!(candidate_query(&later, &known).clicks, [click_id(1)]);
    let found = configure(&later, &known, named(1, 0));
    assert_eq!(found.attribution.decision.click, Some(click_id(1)));
    assert_eq!(found.taken_click, Some(click_id(1)));
}

#[rstest]
#[case::a_forged_id(ClaimedClick::BadToken, Rejection::BadToken)]
#[case::another_apps(ClaimedClick::Foreign(click_id(1)), Rejection::ForeignClick)]
fn what_is_not_ours_is_not_looked_for(#[case] click: ClaimedClick, #[case] why: Rejection) {
    let command = claiming(click, 60);
    assert!(
        candidate_query(&command, &DeviceState::default())
            .clicks
            .is_empty()
    );
    let opening = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    let rejected: Vec<_> = opening
        .attribution
        .decision
        .candidates
        .iter()
        .map(|one| one.rejection)
        .collect();
    assert_eq!(rejected, [Some(why)]);
}

#[test]
fn likeness_is_looked_for_at_the_first_call_only() {
    let command = call(Platform::Android, 60);
    let first = candidate_query(&command, &DeviceState::default());
    assert_eq!(first.address_hashes.len(), 1);
    assert_eq!(first.clicks_from, at(60 - DAY));
    let opening = configure(
        &command,
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    let later = candidate_query(&call(Platform::Android, 90), &after(opening));
    assert!(later.address_hashes.is_empty());
    let page = candidate_query(&call(Platform::Web, 60), &DeviceState::default());
    assert!(page.clicks.is_empty() && page.address_hashes.is_empty());
    assert_eq!(page.advertising_hash, None);
}

#[rstest]
#[case::apples_device(Platform::Ios, true)]
#[case::another(Platform::Android, false)]
fn a_token_is_redeemed_once(#[case] platform: Platform, #[case] expected: bool) {
    let with_token = |seconds| ConfigureCommand {
        ad_services_token: Some("token".to_owned()),
        ..call(platform, seconds)
    };
    let opening = configure(
        &with_token(60),
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    assert_eq!(opening.redeems_token, expected);
    let again = configure(&with_token(90), &after(opening), CandidateClicks::default());
    assert!(!again.redeems_token);
}

fn answered(answer: AdServices, known: &DeviceState) -> AttributionUpdate {
    answered_in(Environment::Live, answer, known)
}

fn answered_in(
    environment: Environment,
    answer: AdServices,
    known: &DeviceState,
) -> AttributionUpdate {
    let answer = AdServicesOutcome {
        environment,
        rules: AttributionRules::default(),
        answer,
        at: at(70),
    };
    apply_ad_services(&answer, known).expect("there is a decision")
}

#[test]
fn apples_word_replaces_likeness_and_frees_its_click() {
    let likeness = CandidateClicks {
        same_address: vec![candidate(1, 0)],
        ..CandidateClicks::default()
    };
    let first = configure(
        &call(Platform::Android, 60),
        &DeviceState::default(),
        likeness,
    );
    let late = answered(AdServices::Tap(Box::default()), &after(first));
    assert!(late.is_replaced);
    assert_eq!(late.attribution.decision.match_type, MatchType::AdServices);
    assert_eq!(late.released_click, Some(click_id(1)));
}

#[test]
fn a_test_device_has_no_click_to_give_back() {
    let likeness = CandidateClicks {
        same_address: vec![candidate(1, 0)],
        ..CandidateClicks::default()
    };
    let command = ConfigureCommand {
        environment: Environment::Test,
        ..call(Platform::Android, 60)
    };
    let first = configure(&command, &DeviceState::default(), likeness);
    let tap = AdServices::Tap(Box::default());
    let late = answered_in(Environment::Test, tap, &after(first));
    assert!(late.is_replaced);
    assert_eq!(late.released_click, None);
}

#[test]
fn a_certain_decision_only_learns_what_apple_said() {
    let command = claiming(ClaimedClick::Authentic(click_id(1)), 60);
    let first = configure(&command, &DeviceState::default(), named(1, 0));
    let known = after(first.clone());
    let late = answered(AdServices::Tap(Box::default()), &known);
    assert!(!late.is_replaced && late.released_click.is_none());
    assert_eq!(late.attribution.revision, 1);
    assert_eq!(
        late.attribution.decision.click,
        first.attribution.decision.click
    );
    assert_eq!(
        late.attribution.decision.evidence.ad_services.as_deref(),
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
fn a_click_id_of_the_clients_stands_in_for_a_referrers_that_is_refused() {
    let mut command = claiming(ClaimedClick::Authentic(click_id(1)), 60);
    command.claims.push(ClickClaim {
        click: ClaimedClick::BadToken,
        source: ClickIdSource::Referrer,
    });
    let opening = configure(&command, &DeviceState::default(), named(1, 0));
    let decision = opening.attribution.decision;
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
fn a_referrer_click_that_appears_later_is_judged_by_the_stores_times() {
    let mut command = claiming(ClaimedClick::Authentic(click_id(1)), 600);
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
    let judged = configure(&later, &after(first), named(1, 0));
    assert_eq!(judged.attribution.decision.state, MatchState::Implausible);
    assert_eq!(judged.taken_click, None);
}

#[test]
fn late_evidence_that_is_refused_leaves_a_trace() {
    let first = configure(
        &call(Platform::Ios, 60),
        &DeviceState::default(),
        CandidateClicks::default(),
    );
    let mut forged = claiming(ClaimedClick::BadToken, 90);
    forged.traits.platform = Platform::Ios;
    let later = configure(&forged, &after(first), CandidateClicks::default());
    assert!(!later.is_new_decision);
    let decision = later.attribution.decision;
    assert_eq!(decision.state, MatchState::Organic);
    assert_eq!(decision.candidates[0].rejection, Some(Rejection::BadToken));
    assert_eq!(decision.evidence.click_token.as_deref(), Some("bad"));
}

#[test]
fn a_click_that_never_came_reads_as_a_bad_token() {
    let command = claiming(ClaimedClick::Authentic(click_id(1)), 60);
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
fn apples_no_replaces_the_sentence_that_it_had_not_answered() {
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
    let late = answered(AdServices::NotAttributed, &after(first));
    assert_ne!(late.attribution.decision.reason, before);
    assert_eq!(late.attribution.revision, 1);
}

#[rstest]
#[case::apple_did_not_know_it(AdServices::Invalid, true)]
#[case::apple_was_not_reached(AdServices::Expired, true)]
#[case::apple_said_no(AdServices::NotAttributed, false)]
fn another_token_is_redeemed_where_the_first_was_no_use(
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
    let mut known = after(first);
    known.attribution = Some(answered(answer, &known).attribution);
    assert_eq!(
        configure(&command, &known, CandidateClicks::default()).redeems_token,
        again
    );
}

#[test]
fn a_link_that_opened_the_app_says_so() {
    let mut opened = candidate(1, 60).click;
    opened.id = click_id(1);
    let command = ConfigureCommand {
        app_link_click: Some(opened),
        ..call(Platform::Android, 60)
    };
    let opening = configure(&command, &DeviceState::default(), named(1, 60));
    let decision = opening.attribution.decision;
    assert_eq!(
        decision.evidence.click_token.as_deref(),
        Some("opened_link")
    );
    assert!(decision.flags.is_empty() && decision.reason.contains("opened the app"));
}
