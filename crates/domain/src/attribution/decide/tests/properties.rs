//! Properties that hold for random scenes.

use super::scene::*;
use crate::app::FraudPolicy;
use crate::attribution::evidence::{ClickIdSource, ReferrerTimes};
use crate::attribution::{
    ADDRESS_CANDIDATES_MAX, AttributionCandidates, Candidate, ClickLookup, Decision, Evidence,
    MatchType,
};
use crate::device::Platform;
use crate::vocabulary::id::ClickId;
use crate::vocabulary::time::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Enough clicks to make an address count as shared.
const CLICKS_MAX: usize = 26;
/// A little more than the longest window in the scenes.
const OLDEST: i64 = 10 * DAY;

/// Generates a click. Each property has few values, so that clicks are often similar.
fn any_tap(number: u8) -> impl Strategy<Value = Tap> {
    let age = prop_oneof![
        4 => 0..DAY,
        2 => 0..OLDEST,
        1 => -HOUR..0,
        1 => prop::sample::select(vec![0, HOUR, DAY, DAY + 1, 7 * DAY, 7 * DAY + 1]),
    ];
    let version = prop::sample::select(vec!["14", "14", "14", "13", ""]);
    let model = prop::sample::select(vec!["", "", "Pixel 8", "pixel 8", "Pixel 7"]);
    let language = prop::sample::select(vec!["en", "en", "de", ""]);
    let special = prop::sample::select(vec!["", "", "", "", "", "bot", "taken", "ios"]);
    (age, version, model, language, special).prop_map(
        move |(age, version, model, language, special)| {
            let tap = tap(number)
                .before(age)
                .os(version)
                .model(model)
                .language(language);
            match special {
                "bot" => tap.bot(),
                "taken" => tap.taken(),
                "ios" => tap.platform(Platform::Ios),
                _ => tap,
            }
        },
    )
}

fn any_taps(first: u8) -> impl Strategy<Value = Vec<Tap>> {
    let size = prop_oneof![4 => 0..4_usize, 1 => 0..=CLICKS_MAX];
    size.prop_flat_map(move |size| (first..).take(size).map(any_tap).collect::<Vec<_>>())
}

/// Generates clicks from one address, sometimes exactly as many as the maximum that is compared.
fn any_same_address() -> impl Strategy<Value = Vec<Tap>> {
    prop_oneof![4 => any_taps(1), 1 => Just(crowd(ADDRESS_CANDIDATES_MAX))]
}

fn any_moment() -> impl Strategy<Value = Option<Timestamp>> {
    prop::option::weighted(0.4, (0..OLDEST).prop_map(before_open))
}

fn any_times() -> impl Strategy<Value = ReferrerTimes> {
    let moments = (any_moment(), any_moment(), any_moment(), any_moment());
    moments.prop_map(
        |(click_at, install_begin_at, click_at_server, install_begin_at_server)| ReferrerTimes {
            click_at,
            install_begin_at,
            click_at_server,
            install_begin_at_server,
        },
    )
}

fn any_lookup() -> impl Strategy<Value = Option<ClickLookup>> {
    prop_oneof![
        3 => Just(None),
        3 => any_tap(200).prop_map(|tap| Some(ClickLookup::Found(Box::new(tap.candidate())))),
        1 => Just(Some(ClickLookup::BadToken)),
        1 => Just(Some(ClickLookup::Unknown(click_id(201)))),
    ]
}

prop_compose! {
    fn any_scene()(
        delivered in any_lookup(),
        through_store: bool,
        times in any_times(),
        referrer in prop::sample::select(vec!["", "", "", "gclid=x"]),
        advertising in any_taps(100),
        address in any_same_address(),
        window in prop::sample::select(vec![1, 24, 168, 168]),
        probabilistic_window in prop::sample::select(vec![1, 24]),
        policy in prop::sample::select(FraudPolicy::ALL),
    ) -> Scene {
        let scene = android()
            .referrer(referrer)
            .same_advertising_id(&advertising)
            .same_address(&address)
            .window(window)
            .fraud(policy)
            .rules(|rules| rules.probabilistic_window_hours = probabilistic_window)
            .evidence(|evidence| evidence.times = times);
        let delivery = if through_store { ClickIdSource::Referrer } else { ClickIdSource::Client };
        match delivered {
            Some(delivered) => scene.delivers(delivery, delivered),
            None => scene,
        }
    }
}

/// Generates a click that cannot have led to the install: a bot's click, a click that is already
/// credited, one that is too old for every window, or one after the first open.
fn any_ineligible_tap() -> impl Strategy<Value = Tap> {
    let why = prop::sample::select(vec!["bot", "taken", "old", "late"]);
    (any_tap(250), why).prop_map(|(tap, why)| match why {
        "bot" => tap.bot(),
        "taken" => tap.taken(),
        "old" => tap.before(31 * DAY),
        _ => tap.before(-1),
    })
}

/// Returns what a decision credits, and its confidence.
fn credit(decision: &Decision) -> impl PartialEq + std::fmt::Debug + use<> {
    let Decision {
        state,
        match_type,
        network,
        confidence,
        click,
        ..
    } = decision;
    (*state, *match_type, *network, *confidence, *click)
}

fn found(scene: &Scene) -> impl Iterator<Item = &Candidate> {
    let AttributionCandidates {
        delivered,
        same_advertising_id,
        same_address,
        ..
    } = &scene.facts;
    let delivered = delivered.iter().filter_map(|one| match &one.lookup {
        ClickLookup::Found(candidate) => Some(&**candidate),
        _ => None,
    });
    delivered.chain(same_advertising_id).chain(same_address)
}

fn find(scene: &Scene, click: ClickId) -> &Candidate {
    found(scene)
        .find(|one| one.click.id == click)
        .expect("a found winner")
}

/// Returns the age of a winning click in hours, by the clock that the decision used.
fn hours_before_install(evidence: &Evidence, decision: &Decision, clicked_at: Timestamp) -> i64 {
    let times = evidence.times;
    let through_store = decision.match_type == MatchType::Referrer;
    let unverified = times.click_at_server.is_none() && times.install_begin_at_server.is_none();
    let by_device = times
        .install_begin_at
        .filter(|begin| through_store && unverified && *begin >= clicked_at);
    let is_probabilistic = decision.match_type == MatchType::Probabilistic;
    let install = match (times.install_begin_at_server, by_device) {
        _ if is_probabilistic => evidence.first_open_at,
        (Some(begin), _) | (None, Some(begin)) => begin,
        (None, None) => evidence.first_open_at,
    };
    // Rounded up, because a millisecond past the window is outside.
    -(clicked_at.as_millis() - install.as_millis()).div_euclid(HOUR * 1_000)
}

proptest! {
    #[test]
    fn the_order_of_clicks_does_not_matter(
        (scene, shuffled) in any_scene().prop_flat_map(|scene| {
            let advertising = Just(scene.facts.same_advertising_id.clone()).prop_shuffle();
            let address = Just(scene.facts.same_address.clone()).prop_shuffle();
            (Just(scene), (advertising, address))
        })
    ) {
        let mut other = scene.clone();
        (other.facts.same_advertising_id, other.facts.same_address) = shuffled;
        prop_assert_eq!(other.decide(), scene.decide());
    }

    #[test]
    fn a_click_is_credited_once(
        installs in prop::collection::vec((any_scene(), prop::option::of(0..CLICKS_MAX)), 1..8),
        pool in any_taps(1),
    ) {
        let mut used = BTreeSet::new();
        for (mut scene, delivered) in installs {
            let marked: Vec<_> = pool
                .iter()
                .map(|tap| tap.clone().candidate())
                .map(|one| Candidate {
                    is_taken: one.is_taken || used.contains(&one.click.id),
                    ..one
                })
                .collect();
            let delivered = delivered.and_then(|index| marked.get(index).cloned());
            scene.facts.delivered.clear();
            if let Some(one) = delivered {
                scene = scene.delivers(ClickIdSource::Client, ClickLookup::Found(Box::new(one)));
            }
            scene.facts.same_advertising_id = marked.iter().take(2).cloned().collect();
            scene.facts.same_address = marked;
            if let Some(click) = scene.decide().click {
                prop_assert!(used.insert(click), "credited twice");
            }
        }
    }

    #[test]
    fn no_click_outside_its_window_wins(scene in any_scene()) {
        let decision = scene.decide();
        if let Some(click) = decision.click {
            let clicked_at = find(&scene, click).click.clicked_at;
            let hours = hours_before_install(&scene.evidence, &decision, clicked_at);
            let window = match decision.match_type {
                MatchType::Probabilistic => scene.rules.probabilistic_window_hours,
                _ => scene.rules.click_window_hours,
            };
            prop_assert!(hours <= window, "{hours} hours in a window of {window}");
            prop_assert!(clicked_at <= scene.evidence.first_open_at);
        }
    }

    #[test]
    fn no_bot_and_no_taken_click_wins(scene in any_scene()) {
        if let Some(click) = scene.decide().click {
            let winner = find(&scene, click);
            prop_assert!(winner.click.bot.is_none());
            prop_assert!(!winner.is_taken);
        }
    }

    #[test]
    fn an_ineligible_click_changes_nothing(
        scene in any_scene(),
        ineligible in any_ineligible_tap(),
        positions in (any::<bool>(), any::<bool>(), any::<prop::sample::Index>()),
    ) {
        let mut with = scene.clone();
        let (advertising, address, at) = positions;
        for (list, adds) in [
            (&mut with.facts.same_advertising_id, advertising),
            (&mut with.facts.same_address, address),
        ] {
            if adds {
                list.insert(at.index(list.len() + 1), ineligible.clone().candidate());
            }
        }
        prop_assert_eq!(credit(&with.decide()), credit(&scene.decide()));
    }

    #[test]
    fn a_click_on_another_platform_changes_nothing(scene in any_scene(), other in any_tap(250)) {
        let with = scene.clone().same_address(&[other.platform(Platform::Ios)]);
        prop_assert_eq!(credit(&with.decide()), credit(&scene.decide()));
    }

    #[test]
    fn a_decision_has_an_explanation(scene in any_scene()) {
        let decision = scene.decide();
        prop_assert!(decision.reason.ends_with('.') && decision.reason.len() > 20);
        prop_assert!(decision.candidates.len() <= crate::attribution::DECISION_CANDIDATES_MAX);
        let winners = decision.candidates.iter().filter(|one| one.rejection.is_none());
        let winners: Vec<_> = winners.map(|one| one.click).collect();
        let expected = decision.confidence.map(|_| decision.click);
        prop_assert_eq!(winners, Vec::from_iter(expected));
        for one in found(&scene) {
            prop_assert!(!decision.reason.contains(&one.click.id.to_string()));
        }
    }
}
