//! What holds whatever comes.

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

/// Enough clicks to crowd an address.
const CLICKS_MAX: usize = 26;
/// A little more than the longest window of the scenes.
const OLDEST: i64 = 10 * DAY;

/// What a random click is made of. Few values each, so that clicks are often alike, and often not.
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
    let odd = prop::sample::select(vec!["", "", "", "", "", "bot", "taken", "ios"]);
    (age, version, model, language, odd).prop_map(move |(age, version, model, language, odd)| {
        let tap = tap(number)
            .before(age)
            .os(version)
            .model(model)
            .language(language);
        match odd {
            "bot" => tap.bot(),
            "taken" => tap.taken(),
            "ios" => tap.platform(Platform::Ios),
            _ => tap,
        }
    })
}

fn any_taps(first: u8) -> impl Strategy<Value = Vec<Tap>> {
    let size = prop_oneof![4 => 0..4_usize, 1 => 0..=CLICKS_MAX];
    size.prop_flat_map(move |size| (first..).take(size).map(any_tap).collect::<Vec<_>>())
}

/// Clicks from one address; sometimes just as many as it may have.
fn any_company() -> impl Strategy<Value = Vec<Tap>> {
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

fn any_named() -> impl Strategy<Value = Option<ClickLookup>> {
    prop_oneof![
        3 => Just(None),
        3 => any_tap(200).prop_map(|tap| Some(ClickLookup::Found(Box::new(tap.candidate())))),
        1 => Just(Some(ClickLookup::BadToken)),
        1 => Just(Some(ClickLookup::Unknown(click_id(201)))),
    ]
}

prop_compose! {
    fn any_scene()(
        named in any_named(),
        by_store: bool,
        times in any_times(),
        referrer in prop::sample::select(vec!["", "", "", "gclid=x"]),
        advertising in any_taps(100),
        address in any_company(),
        window in prop::sample::select(vec![1, 24, 168, 168]),
        likeness_window in prop::sample::select(vec![1, 24]),
        policy in prop::sample::select(FraudPolicy::ALL),
    ) -> Scene {
        let scene = android()
            .referrer(referrer)
            .same_advertising_id(&advertising)
            .same_address(&address)
            .window(window)
            .fraud(policy)
            .rules(|rules| rules.probabilistic_window_hours = likeness_window)
            .evidence(|evidence| evidence.times = times);
        let delivery = if by_store { ClickIdSource::Referrer } else { ClickIdSource::Client };
        match named {
            Some(named) => scene.names(delivery, named),
            None => scene,
        }
    }
}

/// A click that cannot have led to the install: a crawler's, one that has its install, one that is too old
/// for every window, or one that came after the first open.
fn any_ineligible_tap() -> impl Strategy<Value = Tap> {
    let why = prop::sample::select(vec!["bot", "taken", "old", "late"]);
    (any_tap(250), why).prop_map(|(tap, why)| match why {
        "bot" => tap.bot(),
        "taken" => tap.taken(),
        "old" => tap.before(31 * DAY),
        _ => tap.before(-1),
    })
}

/// What a decision credits, and how surely.
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
        delivered: named,
        same_advertising_id,
        same_address,
        ..
    } = &scene.facts;
    let named = named.iter().filter_map(|one| match &one.lookup {
        ClickLookup::Found(candidate) => Some(&**candidate),
        _ => None,
    });
    named.chain(same_advertising_id).chain(same_address)
}

fn find(scene: &Scene, click: ClickId) -> &Candidate {
    found(scene)
        .find(|one| one.click.id == click)
        .expect("the winner was found")
}

/// The latest moment at which a winning click may have ended its window, by any clock that may be asked.
fn hours_before_install(evidence: &Evidence, decision: &Decision, clicked_at: Timestamp) -> i64 {
    let times = evidence.times;
    let by_store = decision.match_type == MatchType::Referrer;
    let unverified = times.click_at_server.is_none() && times.install_begin_at_server.is_none();
    let by_device = times
        .install_begin_at
        .filter(|begin| by_store && unverified && *begin >= clicked_at);
    let by_likeness = decision.match_type == MatchType::Probabilistic;
    let install = match (times.install_begin_at_server, by_device) {
        _ if by_likeness => evidence.first_open_at,
        (Some(begin), _) | (None, Some(begin)) => begin,
        (None, None) => evidence.first_open_at,
    };
    // Rounded up: a millisecond past the window is past it.
    -(clicked_at.as_millis() - install.as_millis()).div_euclid(HOUR * 1_000)
}

proptest! {
    #[test]
    fn the_order_in_which_clicks_are_listed_is_nothing(
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
    fn a_click_leads_to_one_install(
        installs in prop::collection::vec((any_scene(), prop::option::of(0..CLICKS_MAX)), 1..8),
        pool in any_taps(1),
    ) {
        let mut used = BTreeSet::new();
        for (mut scene, named) in installs {
            let marked: Vec<_> = pool
                .iter()
                .map(|tap| tap.clone().candidate())
                .map(|one| Candidate { is_taken: one.is_taken || used.contains(&one.click.id), ..one })
                .collect();
            let named = named.and_then(|index| marked.get(index).cloned());
            scene.facts.delivered.clear();
            if let Some(one) = named {
                scene = scene.names(ClickIdSource::Client, ClickLookup::Found(Box::new(one)));
            }
            scene.facts.same_advertising_id = marked.iter().take(2).cloned().collect();
            scene.facts.same_address = marked;
            if let Some(click) = scene.decide().click {
                prop_assert!(used.insert(click), "a second install");
            }
        }
    }

    #[test]
    fn nothing_outside_its_window_wins(scene in any_scene()) {
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
    fn a_click_that_cannot_have_led_to_the_install_changes_nothing(
        scene in any_scene(),
        stranger in any_ineligible_tap(),
        places in (any::<bool>(), any::<bool>(), any::<prop::sample::Index>()),
    ) {
        let mut with = scene.clone();
        let (advertising, address, at) = places;
        for (list, adds) in [
            (&mut with.facts.same_advertising_id, advertising),
            (&mut with.facts.same_address, address),
        ] {
            if adds {
                list.insert(at.index(list.len() + 1), stranger.clone().candidate());
            }
        }
        prop_assert_eq!(credit(&with.decide()), credit(&scene.decide()));
    }

    #[test]
    fn a_click_of_another_platform_is_no_company(scene in any_scene(), other in any_tap(250)) {
        let with = scene.clone().same_address(&[other.platform(Platform::Ios)]);
        prop_assert_eq!(credit(&with.decide()), credit(&scene.decide()));
    }

    #[test]
    fn a_decision_explains_itself(scene in any_scene()) {
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
