//! Sample traffic: clicks and first opens, recorded under some rules.

use crate::access::Environment;
use crate::app::{AttributionRules, FraudPolicy};
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{ADDRESS_CANDIDATES_MAX, Candidate};
use crate::device::{AdvertisingId, DeviceKey, Platform};
use crate::install::tests::{at, call, candidate, click_id, configure};
use crate::install::what_if::{
    ClickOwner, ReplayClick, ReplayQuery, StoredInstall, WhatIf, WhatIfReport,
};
use crate::install::{
    ADVERTISING_CANDIDATES_MAX, CandidateClicks, ClaimedClick, ClickClaim, ConfigureCommand,
    DeviceState, candidate_query,
};
use crate::integration::Network;
use crate::link::Campaign;
use crate::vocabulary::id::{AttributionId, ClickId, EventId};
use std::collections::BTreeMap;

pub(super) const HOUR: i64 = 3_600;
/// Start of the replayed period, in seconds.
pub(super) const BEGIN: i64 = 0;

/// A click, in seconds after the start of the period.
#[derive(Debug, Clone)]
pub(super) struct SampleClick {
    pub(super) number: u8,
    pub(super) seconds: i64,
    /// Whether it has the devices' advertising id.
    pub(super) is_advertised: bool,
    /// Whether it came from the devices' address.
    pub(super) is_near: bool,
}

/// A first open.
#[derive(Debug, Clone)]
pub(super) struct SampleOpen {
    pub(super) seconds: i64,
    /// Click id that the device sends.
    pub(super) claims: Option<u8>,
    /// Whether the device sends its advertising id.
    pub(super) is_advertised: bool,
    /// Whether the device has the clicks' address.
    pub(super) is_near: bool,
    /// Net revenue, in millionths.
    pub(super) revenue: i64,
}

pub(super) fn click(number: u8, seconds: i64) -> SampleClick {
    SampleClick {
        number,
        seconds,
        is_advertised: false,
        is_near: false,
    }
}

pub(super) fn open(seconds: i64) -> SampleOpen {
    SampleOpen {
        seconds,
        claims: None,
        is_advertised: false,
        is_near: false,
        revenue: 1_000_000,
    }
}

pub(super) fn rules(change: impl FnOnce(&mut AttributionRules)) -> AttributionRules {
    let mut rules = AttributionRules {
        fraud: FraudPolicy::Flag,
        ..AttributionRules::default()
    };
    change(&mut rules);
    rules
}

fn stored_click(one: &SampleClick) -> Candidate {
    let mut found = candidate(one.number, one.seconds);
    let networks = [Some(Network::A), Some(Network::B), None];
    found.click.network = networks[usize::from(one.number) % networks.len()];
    found.click.captured.campaign = Campaign {
        id: Some(format!("campaign-{}", one.number % 4)),
        name: Some(format!("Campaign {}", one.number % 4)),
        ..Campaign::default()
    };
    found
}

fn command(number: usize, one: &SampleOpen, rules: &AttributionRules) -> ConfigureCommand {
    let claims = one.claims.map(|number| ClickClaim {
        click: ClaimedClick::Authentic(click_id(number)),
        source: ClickIdSource::Client,
    });
    let bytes = [u8::try_from(number).unwrap(); 10];
    let first = call(Platform::Android, one.seconds);
    ConfigureCommand {
        rules: rules.clone(),
        device: DeviceKey::stored(format!("device-{number}")),
        advertising_id: one
            .is_advertised
            .then(|| AdvertisingId::stored("gaid".to_owned())),
        advertising_hash: first.advertising_hash.filter(|_| one.is_advertised),
        claims: claims.into_iter().collect(),
        attribution_id: AttributionId::new(at(one.seconds), bytes),
        install_id: EventId::new(at(one.seconds), bytes),
        ..first
    }
}

type Owners = BTreeMap<ClickId, ClickOwner>;

fn newest<'a>(
    clicks: &'a [SampleClick],
    owners: &Owners,
    fits: impl Fn(&SampleClick) -> bool,
) -> Vec<Candidate> {
    let mut found: Vec<&'a SampleClick> = clicks.iter().filter(|one| fits(one)).collect();
    found.sort_by_key(|one| std::cmp::Reverse((one.seconds, one.number)));
    let taken = |one: &SampleClick| Candidate {
        is_taken: owners.contains_key(&click_id(one.number)),
        ..stored_click(one)
    };
    found.into_iter().map(taken).collect()
}

/// Records the opens in order, as a store does.
pub(super) fn record(
    clicks: &[SampleClick],
    opens: &[SampleOpen],
    rules: &AttributionRules,
) -> Vec<StoredInstall> {
    let mut owners = Owners::new();
    let mut recorded = Vec::new();
    for (number, one) in opens.iter().enumerate() {
        let command = command(number, one, rules);
        let query = candidate_query(&command, &DeviceState::default());
        let is_stored = |click: &SampleClick| click.seconds <= one.seconds;
        let mut found = CandidateClicks {
            clicks: newest(clicks, &owners, |click| {
                query.clicks.contains(&click_id(click.number))
            }),
            same_advertising_id: newest(clicks, &owners, |click| {
                is_stored(click) && click.is_advertised && query.advertising_hash.is_some()
            }),
            same_address: newest(clicks, &owners, |click| {
                is_stored(click)
                    && click.is_near
                    && one.is_near
                    && at(click.seconds) >= query.clicks_from
            }),
            ..CandidateClicks::default()
        };
        found
            .same_advertising_id
            .truncate(ADVERTISING_CANDIDATES_MAX);
        found.same_address.truncate(ADDRESS_CANDIDATES_MAX + 1);
        let outcome = configure(&command, &DeviceState::default(), found);
        if let Some(click) = outcome.taken_click {
            let owner = ClickOwner {
                device: command.device.clone(),
                first_open_at: Some(command.at),
            };
            owners.insert(click, owner);
        }
        recorded.push((command.install_id, outcome, one.revenue));
    }
    let replay_click = |one: &SampleClick| ReplayClick {
        click: stored_click(one).click,
        owner: owners.get(&click_id(one.number)).cloned(),
    };
    let stored = |(install, outcome, revenue_micros): (_, crate::install::ConfigureDecision, _)| {
        let query = ReplayQuery::of(&outcome.device, &outcome.attribution);
        let until = outcome.device.first_seen_at;
        let named = clicks
            .iter()
            .filter(|one| query.clicks.contains(&click_id(one.number)));
        let advertised = clicks.iter().filter(|one| {
            query.advertising_id.is_some() && one.is_advertised && at(one.seconds) <= until
        });
        StoredInstall {
            install,
            clicks: named.map(replay_click).collect(),
            same_advertising_id: advertised.map(replay_click).collect(),
            device: outcome.device,
            attribution: outcome.attribution,
            revenue_micros,
            refunded_micros: 0,
        }
    };
    recorded.into_iter().map(stored).collect()
}

/// Replays installs.
pub(super) fn replay(installs: &[StoredInstall], rules: &AttributionRules) -> WhatIfReport {
    let mut what_if = WhatIf::new(Environment::Live, rules.clone(), at(BEGIN));
    what_if.add(installs.to_vec());
    what_if.finish(None)
}

/// Returns the moves in a few words, such as `network_a campaign-1 > organic: 2`.
pub(super) fn moves(report: &WhatIfReport) -> Vec<String> {
    let place = |place: &crate::install::what_if::ReplayPlace| {
        let hold = place.hold.map(crate::attribution::HoldState::as_str);
        let words = [place.network_name(), &place.campaign, hold.unwrap_or("")];
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" ")
    };
    let described = |one: &crate::install::what_if::ReplayMove| {
        format!(
            "{} > {}: {}",
            place(&one.from),
            place(&one.to),
            one.installs
        )
    };
    report.moves.iter().map(described).collect()
}

/// Returns the gaps as keywords with their counts.
pub(super) fn gaps(report: &WhatIfReport) -> Vec<(&'static str, u64)> {
    let gaps = report.gaps.iter();
    gaps.map(|(gap, count)| (gap.as_str(), *count)).collect()
}
