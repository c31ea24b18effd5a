//! Sample traffic: clicks and first opens, recorded under some rules.

use crate::access::Environment;
use crate::app::{AttributionRules, FraudPolicy};
use crate::attribution::ad_services::{AdServices, AdServicesRecord};
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::{ADDRESS_CANDIDATES_MAX, Candidate};
use crate::device::{AdvertisingId, DeviceKey, Platform};
use crate::install::tests::{after, at, call, candidate, click_id, configure};
use crate::install::what_if::{
    ClickOwner, ReplayClick, ReplayQuery, StoredInstall, WhatIf, WhatIfReport,
};
use crate::install::{
    ADVERTISING_CANDIDATES_MAX, AdServicesOutcome, CandidateClicks, ClaimedClick, ClickClaim,
    ConfigureCommand, DeviceState, apply_ad_services, candidate_query,
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
    /// Evidence that arrives later.
    pub(super) late: Option<SampleLate>,
}

/// Evidence that arrives some seconds after the first open.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleLate {
    pub(super) seconds: i64,
    /// Click id that the device sends; `None` if Apple reports a tap.
    pub(super) claims: Option<u8>,
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
        late: None,
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

fn claim(number: u8) -> ClickClaim {
    ClickClaim {
        click: ClaimedClick::Authentic(click_id(number)),
        source: ClickIdSource::Client,
    }
}

fn command(number: usize, one: &SampleOpen, rules: &AttributionRules) -> ConfigureCommand {
    let bytes = [u8::try_from(number).unwrap(); 10];
    let first = call(Platform::Android, one.seconds);
    ConfigureCommand {
        rules: rules.clone(),
        device: DeviceKey::stored(format!("device-{number}")),
        advertising_id: one
            .is_advertised
            .then(|| AdvertisingId::stored("gaid".to_owned())),
        advertising_hash: first.advertising_hash.filter(|_| one.is_advertised),
        claims: one.claims.map(claim).into_iter().collect(),
        attribution_id: AttributionId::new(at(one.seconds), bytes),
        install_id: EventId::new(at(one.seconds), bytes),
        ..first
    }
}

type Owners = BTreeMap<ClickId, ClickOwner>;

fn newest(clicks: &[SampleClick], fits: &dyn Fn(&SampleClick) -> bool) -> Vec<Candidate> {
    let mut found: Vec<&SampleClick> = clicks.iter().filter(|one| fits(one)).collect();
    found.sort_by_key(|one| std::cmp::Reverse((one.seconds, one.number)));
    found.into_iter().map(stored_click).collect()
}

/// Records the opens and the late evidence in order, as a store does.
pub(super) fn record(
    clicks: &[SampleClick],
    opens: &[SampleOpen],
    rules: &AttributionRules,
) -> Vec<StoredInstall> {
    let mut owners = Owners::new();
    let mut states = vec![DeviceState::default(); opens.len()];
    let first = opens.iter().map(|one| (one.seconds, None));
    let late = opens.iter().map(|one| {
        let late = one.late?;
        Some((one.seconds + late.seconds, one.late))
    });
    let late = late
        .enumerate()
        .filter_map(|(number, late)| Some((number, late?)));
    let mut calls: Vec<_> = first.enumerate().chain(late).collect();
    calls.sort_by_key(|(_, (seconds, _))| *seconds);
    for (number, (seconds, late)) in calls {
        let one = &opens[number];
        let mut command = command(number, one, rules);
        command.at = at(seconds);
        if let Some(late) = late {
            let Some(number_of_click) = late.claims else {
                states[number] = answered(&command, &states[number], &mut owners);
                continue;
            };
            command.claims = vec![claim(number_of_click)];
        }
        let found = found(clicks, one, &command, &states[number], &owners);
        let outcome = configure(&command, &states[number], found);
        if let Some(click) = outcome.released_click {
            owners.remove(&click);
        }
        if let Some(click) = outcome.taken_click {
            let owner = ClickOwner {
                device: command.device.clone(),
                first_open_at: Some(outcome.device.first_seen_at),
            };
            owners.insert(click, owner);
        }
        states[number] = after(outcome);
    }
    stored(clicks, opens, states, &owners)
}

/// Applies a tap that Apple reports.
fn answered(command: &ConfigureCommand, state: &DeviceState, owners: &mut Owners) -> DeviceState {
    let outcome = AdServicesOutcome {
        environment: command.environment,
        rules: command.rules.clone(),
        answer: AdServices::Tap(Box::new(AdServicesRecord {
            campaign_id: Some("apple".to_owned()),
            ..AdServicesRecord::default()
        })),
        at: command.at,
    };
    let update = apply_ad_services(&outcome, state).unwrap();
    if let Some(click) = update.released_click {
        owners.remove(&click);
    }
    DeviceState {
        attribution: Some(update.attribution),
        ..state.clone()
    }
}

/// Finds the clicks for a call.
fn found(
    clicks: &[SampleClick],
    one: &SampleOpen,
    command: &ConfigureCommand,
    state: &DeviceState,
    owners: &Owners,
) -> CandidateClicks {
    let query = candidate_query(command, state);
    let is_stored = |click: &SampleClick| at(click.seconds) <= command.at;
    let is_taken = |found: &Candidate| {
        let owner = owners.get(&found.click.id);
        owner.is_some_and(|owner| owner.device != command.device)
    };
    let newest = |fits: &dyn Fn(&SampleClick) -> bool| {
        let mut found = newest(clicks, fits);
        for one in &mut found {
            one.is_taken = is_taken(one);
        }
        found
    };
    let mut found = CandidateClicks {
        clicks: newest(&|click| query.clicks.contains(&click_id(click.number))),
        same_advertising_id: newest(&|click| {
            is_stored(click) && click.is_advertised && query.advertising_hash.is_some()
        }),
        same_address: newest(&|click| {
            is_stored(click)
                && click.is_near
                && one.is_near
                && !query.address_hashes.is_empty()
                && at(click.seconds) >= query.clicks_from
        }),
        ..CandidateClicks::default()
    };
    found
        .same_advertising_id
        .truncate(ADVERTISING_CANDIDATES_MAX);
    found.same_address.truncate(ADDRESS_CANDIDATES_MAX + 1);
    found
}

/// Returns the recorded installs as a store returns them.
fn stored(
    clicks: &[SampleClick],
    opens: &[SampleOpen],
    states: Vec<DeviceState>,
    owners: &Owners,
) -> Vec<StoredInstall> {
    let replay_click = |one: &SampleClick| ReplayClick {
        click: stored_click(one).click,
        owner: owners.get(&click_id(one.number)).cloned(),
    };
    let stored = |(number, (state, one)): (usize, (DeviceState, &SampleOpen))| {
        let (device, attribution) = (state.device.unwrap(), state.attribution.unwrap());
        let query = ReplayQuery::of(&device, &attribution);
        let until = device.first_seen_at;
        let named = clicks
            .iter()
            .filter(|one| query.clicks.contains(&click_id(one.number)));
        let advertised = clicks.iter().filter(|one| {
            query.advertising_id.is_some() && one.is_advertised && at(one.seconds) <= until
        });
        StoredInstall {
            install: command(number, one, &AttributionRules::default()).install_id,
            clicks: named.map(replay_click).collect(),
            same_advertising_id: advertised.map(replay_click).collect(),
            device,
            attribution,
            revenue_micros: one.revenue,
            refunded_micros: 0,
        }
    };
    let recorded = states.into_iter().zip(opens).enumerate();
    recorded.map(stored).collect()
}

/// Replays installs.
pub(super) fn replay(installs: &[StoredInstall], rules: &AttributionRules) -> WhatIfReport {
    let mut what_if = WhatIf::new(Environment::Live, rules.clone(), at(BEGIN));
    what_if.add(installs.to_vec());
    what_if.finish(None, None)
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
