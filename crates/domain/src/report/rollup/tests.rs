//! Tests of roll-up counting.

use super::super::OTHER;
use super::super::cardinality_cap::{Placement, ValueKind};
use super::*;
use crate::access::Environment;
use crate::attribution::{CreditedNetwork, HoldState, MatchType};
use crate::event::EventSource;
use crate::integration::Network;
use crate::ledger::Revenue;
use crate::link::Campaign;
use crate::vocabulary::id::EventId;
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use rstest::rstest;

fn credit(network: CreditedNetwork, match_type: MatchType) -> Credit {
    Credit {
        network,
        match_type,
        link: None,
        click: None,
        campaign: Campaign::default(),
        hold: None,
    }
}

fn event(name: &str) -> Event {
    Event {
        id: EventId::from_bytes([1; 16]),
        external_id: "e".to_owned(),
        app: AppId::from_bytes([2; 16]),
        environment: Environment::Live,
        source: EventSource::Sdk,
        name: name.to_owned(),
        original_name: None,
        occurred_at: Timestamp::from_millis(1_700_000_000_000),
        received_at: Timestamp::from_millis(1_700_000_000_000),
        device: None,
        user: None,
        platform: None,
        country: None,
        revenue: None,
        credit: Some(credit(CreditedNetwork::Organic, MatchType::Organic)),
        params: None,
        first_payment: false,
        is_service_install: false,
        duplicate_of: None,
        dedup_root: None,
        consent: None,
        skipped: Vec::new(),
        website: None,
    }
}

#[test]
fn values_round_trip() {
    let mut values = [0; Figures::COUNT];
    for (number, value) in (1..).zip(values.iter_mut()) {
        *value = number;
    }
    assert_eq!(Figures::from_values(values).values(), values);
}

#[test]
fn only_the_install_of_the_service_counts_as_an_install() {
    let sent = Figures::of_event(&event("install"));
    assert_eq!((sent.installs, sent.events), (0, 1));
    let own = Figures::of_event(&Event {
        is_service_install: true,
        ..event("install")
    });
    assert_eq!((own.installs, own.organic_installs), (1, 1));
}

#[test]
fn uncounted_money_adds_no_revenue() {
    let with = |uncounted| Event {
        revenue: Some(Revenue {
            amount: Amount::from_micros(5),
            currency: None,
            usd: Some(Amount::from_micros(5)),
            rate_day: None,
            rate: None,
            rate_source: None,
            uncounted,
        }),
        ..event("purchase")
    };
    assert_eq!(Figures::of_event(&with(None)).revenue_micros, 5);
    let over = with(Some(crate::ledger::UncountedReason::OverLimit));
    assert_eq!(Figures::of_event(&over).revenue_micros, 0);
    assert_eq!(Figures::of_event(&over).purchases, 1);
}

#[test]
fn moving_an_event_empties_its_old_credit() {
    let mut increments = Increments::default();
    let mut install = Event {
        is_service_install: true,
        ..event("install")
    };
    increments.add_event(&install);
    let to = credit(CreditedNetwork::Ad(Network::A), MatchType::ClickId);
    increments.move_event(&mut install, &to);
    let figures: Vec<_> = increments
        .credits
        .iter()
        .map(|(key, figures)| (key.network, figures.installs, figures.organic_installs))
        .collect();
    assert_eq!(figures, [("network_a", 1, 0), ("organic", 0, 0)]);
    assert!(
        increments
            .places
            .values()
            .all(|figures| figures.installs == 1)
    );
    let pivots = increments.pivots.iter();
    let pivots: Vec<_> = pivots
        .map(|(key, figures)| (key.network, figures.installs))
        .collect();
    assert_eq!(pivots, [("network_a", 1), ("organic", 0)]);
}

#[test]
fn a_pivot_combines_the_credit_and_the_place() {
    let mut increments = Increments::default();
    for (country, platform) in [
        (Some("DE"), Some(crate::device::Platform::Ios)),
        (None, None),
    ] {
        increments.add_event(&Event {
            country: country.map(str::to_owned),
            platform,
            credit: Some(Credit {
                campaign: Campaign {
                    id: Some("c".to_owned()),
                    ..Campaign::default()
                },
                ..credit(CreditedNetwork::Ad(Network::A), MatchType::ClickId)
            }),
            ..event("purchase")
        });
    }
    let keys = increments.pivots.keys();
    let keys: Vec<_> = keys
        .map(|key| {
            (
                key.network,
                key.campaign.as_str(),
                key.country.as_str(),
                key.platform,
            )
        })
        .collect();
    assert_eq!(
        keys,
        [("network_a", "c", "", ""), ("network_a", "c", "DE", "ios")]
    );
}

#[test]
fn a_replaced_event_counts_in_the_cohort_of_its_device() {
    let without = Event {
        credit: None,
        ..event("purchase")
    };
    let with = Event {
        device: crate::device::DeviceKey::parse("d").ok(),
        ..event("purchase")
    };
    let mut increments = Increments::default();
    increments.replace_event(&without, &with);
    assert_eq!(increments.cohorts, [CohortEntry::of(&with).unwrap()]);
    increments.replace_event(&with, &without);
    assert_eq!(
        increments.cohorts.len(),
        2,
        "the second replacement removes it"
    );
}

#[test]
fn an_event_counts_in_every_grain_of_every_table() {
    let mut increments = Increments::default();
    increments.add_event(&event("purchase"));
    increments.add_event(&event("boss_defeated"));
    let rows = RollupRows::of(
        &increments,
        &CapDecisions::default(),
        &CohortRows::default(),
    );
    for grain in Grain::ALL {
        let events = |found: Vec<(BucketKey, i64)>| -> i64 {
            let of_grain = found.iter().filter(|(at, _)| at.grain == grain);
            of_grain.map(|(_, events)| events).sum()
        };
        let all = rows.networks.iter();
        assert_eq!(
            events(all.map(|(key, one)| (key.at, one.events)).collect()),
            2
        );
        let all = rows.campaigns.iter();
        assert_eq!(
            events(all.map(|(key, one)| (key.at, one.events)).collect()),
            2
        );
        let all = rows.credits.iter();
        assert_eq!(
            events(all.map(|(key, one)| (key.at, one.events)).collect()),
            2
        );
        let all = rows.names.iter();
        assert_eq!(
            events(all.map(|(key, one)| (key.at, one.events)).collect()),
            2
        );
        let all = rows.places.iter();
        assert_eq!(
            events(all.map(|(key, one)| (key.at, one.events)).collect()),
            2
        );
        let all = rows.pivots.iter();
        assert_eq!(
            events(all.map(|(key, one)| (key.at, one.events)).collect()),
            2
        );
    }
    assert!(rows.clone().correction_from(&rows).is_empty());
}

#[test]
fn values_beyond_the_cap_count_under_other() {
    let mut event = event("boss_defeated");
    event.credit = Some(Credit {
        campaign: Campaign {
            id: Some("c".to_owned()),
            ad_id: Some("a".to_owned()),
            ..Campaign::default()
        },
        ..credit(CreditedNetwork::Other, MatchType::ClickId)
    });
    let mut increments = Increments::default();
    increments.add_event(&event);
    let stored_names = |others: &[ValueKind]| {
        let values = increments.capped_values().into_iter();
        let placement = |kind| {
            if others.contains(&kind) {
                Placement::OtherWithoutDetails
            } else {
                Placement::Own
            }
        };
        let decisions = values.map(|value| (value, placement(value.quota.kind)));
        let rows = RollupRows::of(
            &increments,
            &CapDecisions(decisions.collect()),
            &CohortRows::default(),
        );
        let credit = rows.credits.keys().next().unwrap().clone();
        let campaign = &rows.campaigns.keys().next().unwrap().campaign;
        assert_eq!(*campaign, credit.campaign);
        let pivot = rows.pivots.keys().next().unwrap();
        assert_eq!(pivot.campaign, credit.campaign);
        let name = rows.names.keys().next().unwrap().name.clone();
        (credit.campaign, credit.ad, name)
    };
    let owned =
        |words: (&str, &str, &str)| (words.0.to_owned(), words.1.to_owned(), words.2.to_owned());
    assert_eq!(stored_names(&[]), owned(("c", "a", "boss_defeated")));
    assert_eq!(
        stored_names(&[ValueKind::Ad]),
        owned(("c", OTHER, "boss_defeated"))
    );
    assert_eq!(
        stored_names(&[ValueKind::Campaign, ValueKind::Name]),
        owned((OTHER, OTHER, OTHER))
    );
}

#[test]
fn a_correction_fixes_figures_and_keeps_stored_clicks() {
    let mut increments = Increments::default();
    increments.add_event(&event("purchase"));
    let decisions = CapDecisions::default();
    let rows = RollupRows::of(&increments, &decisions, &CohortRows::default());
    let mut stored = rows.clone();
    for figures in stored.credits.values_mut() {
        (figures.clicks, figures.purchases) = (9, 4);
    }
    for figures in stored.places.values_mut() {
        figures.clicks = 7;
    }
    for figures in stored.pivots.values_mut() {
        (figures.clicks, figures.purchases) = (5, 2);
    }
    for figures in stored.networks.values_mut() {
        figures.clicks = 9;
    }
    // As if an older version without campaign rows had counted.
    stored.campaigns.clear();
    increments.keep_clicks(&stored.unfold(&decisions).0);
    let rows = RollupRows::of(&increments, &decisions, &CohortRows::default());
    let correction = rows.correction_from(&stored);
    let counts = |figures: &Figures| (figures.clicks, figures.purchases);
    let of_credits: Vec<_> = correction.credits.values().map(counts).collect();
    assert_eq!(of_credits, [(0, -3); 3]);
    let of_campaigns: Vec<_> = correction.campaigns.values().map(counts).collect();
    assert_eq!(of_campaigns, [(9, 1); 3]);
    let of_pivots: Vec<_> = correction.pivots.values().map(counts).collect();
    assert_eq!(of_pivots, [(0, -1); 3]);
    assert!(correction.networks.is_empty() && correction.places.is_empty());
}

#[rstest]
#[case::release(&[Some(HoldState::Held), Some(HoldState::Released)])]
#[case::reject(&[Some(HoldState::Held), Some(HoldState::Rejected)])]
#[case::changed_twice(&[Some(HoldState::Held), Some(HoldState::Rejected), Some(HoldState::Released)])]
#[case::flagged_later(&[None, Some(HoldState::Held)])]
#[case::no_longer_flagged(&[Some(HoldState::Held), None])]
fn moved_figures_equal_figures_counted_at_once(#[case] holds: &[Option<HoldState>]) {
    let under = |hold| Credit {
        hold,
        ..credit(CreditedNetwork::Other, MatchType::ClickId)
    };
    let mut install = event("install");
    install.is_service_install = true;
    install.credit = Some(under(holds[0]));
    let mut moved = Increments::default();
    moved.add_event(&install);
    for hold in &holds[1..] {
        moved.move_event(&mut install, &under(*hold));
    }
    let mut counted = Increments::default();
    counted.add_event(&install);
    assert_eq!(moved.credits, counted.credits);
    assert_eq!(moved.names, counted.names);
    assert_eq!(moved.places, counted.places);
    assert_eq!(moved.pivots, counted.pivots);
}

#[test]
fn increments_are_split_by_app() {
    let device = crate::device::DeviceKey::parse("d1").unwrap();
    let mut all = Increments::default();
    for app in [3, 2, 3] {
        all.add_event(&Event {
            app: AppId::from_bytes([app; 16]),
            device: Some(device.clone()),
            ..event("search")
        });
    }
    assert_eq!(all.len(), 2 + 2 + 2 + 2 + 3);
    let parts = all.clone().by_app();
    let lens: Vec<usize> = parts.values().map(Increments::len).collect();
    assert_eq!(lens, [5, 6]);
    let mut whole = Increments::default();
    for (app, part) in parts.into_iter().rev() {
        assert!(part.credits.keys().all(|key| key.at.app == app));
        assert!(part.cohorts.iter().all(|entry| entry.member.app == app));
        whole.merge(part);
    }
    whole.cohorts.sort_by_key(|entry| entry.member.app);
    all.cohorts.sort_by_key(|entry| entry.member.app);
    assert_eq!(whole, all);
}

/// Otherwise a rejected device could store any number of names.
#[rstest]
#[case::rejected(Some(HoldState::Rejected), 0)]
#[case::held(Some(HoldState::Held), 2)]
#[case::released(Some(HoldState::Released), 2)]
fn values_without_figures_are_not_stored(#[case] hold: Option<HoldState>, #[case] expected: usize) {
    let mut event = event("invented");
    event.revenue = Some(Revenue {
        amount: Amount::from_micros(5),
        currency: None,
        usd: Some(Amount::from_micros(5)),
        rate_day: None,
        rate: None,
        rate_source: None,
        uncounted: None,
    });
    event.credit = Some(Credit {
        campaign: Campaign {
            id: Some("c".to_owned()),
            ..Campaign::default()
        },
        hold,
        ..credit(CreditedNetwork::Other, MatchType::ClickId)
    });
    let mut increments = Increments::default();
    increments.add_event(&event);
    assert_eq!(increments.capped_values().len(), expected);
}
