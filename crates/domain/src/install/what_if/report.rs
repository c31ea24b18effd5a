//! Adds up the replayed installs.

use super::period::add_period_net;
use super::replay::{ReplayedCredit, replay};
use super::{
    ReplayClick, ReplayGap, StoredInstall, WHAT_IF_CAMPAIGNS_MAX, WHAT_IF_EXAMPLES_MAX,
    WHAT_IF_MOVES_MAX,
};
use crate::access::Environment;
use crate::app::AttributionRules;
use crate::attribution::{CreditedNetwork, HoldState, MatchType};
use crate::device::DeviceKey;
use crate::event::Credit;
use crate::report::{CostSum, Figures, ReportFigures, StatsRow};
use crate::vocabulary::id::ClickId;
use crate::vocabulary::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name of the row for installs whose new credit is not known.
pub(super) const UNKNOWN: &str = "unknown";

/// Where an install counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplayPlace {
    /// Credited network; `None` if the install loses its credit and the new one is not known.
    pub network: Option<CreditedNetwork>,
    /// Campaign id; empty if there is none.
    pub campaign: String,
    /// The state of a hold that keeps the install from counting.
    pub hold: Option<HoldState>,
}

impl ReplayPlace {
    fn of(credit: &Credit) -> Self {
        Self {
            network: Some(credit.network),
            campaign: credit.campaign.id.clone().unwrap_or_default(),
            hold: credit.hold.filter(|hold| hold.withholds()),
        }
    }

    /// Returns the place of an install whose new credit is not known.
    const fn unknown() -> Self {
        Self {
            network: None,
            campaign: String::new(),
            hold: None,
        }
    }

    /// Returns the network's name in reports, or `unknown`.
    pub fn network_name(&self) -> &'static str {
        self.network.map_or(UNKNOWN, CreditedNetwork::as_str)
    }
}

/// Figures of one network or campaign, now and under the other rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhatIfRow {
    /// Network, or `unknown`.
    pub network: String,
    /// Campaign id; empty if there is none, and in rows of networks.
    pub campaign: String,
    /// Name of the campaign, if a credit contains it.
    pub campaign_name: Option<String>,
    /// As recorded.
    pub now: ReportFigures,
    /// Under the other rules.
    pub then: ReportFigures,
    /// Net revenue of the period as recorded, in millionths of a US dollar, with payments of earlier
    /// installs and on websites; `None` if unknown.
    pub period_net: Option<i64>,
}

/// Installs that move from one place to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayMove {
    /// Place as recorded.
    pub from: ReplayPlace,
    /// Place under the other rules.
    pub to: ReplayPlace,
    /// Number of installs.
    pub installs: u64,
    /// Their revenue minus refunds, in millionths of a US dollar.
    pub net_micros: i64,
    /// The first of these installs.
    pub examples: Vec<MovedInstall>,
}

/// An install that moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedInstall {
    /// Device.
    pub device: DeviceKey,
    /// First open.
    pub first_open_at: Timestamp,
    /// Explanation of the new decision; `None` if the new credit is not known.
    pub reason: Option<String>,
}

/// A replay in progress. Add the installs in the order of their ids.
#[derive(Debug)]
pub struct WhatIf {
    environment: Environment,
    rules: AttributionRules,
    /// Start of the replayed period. Earlier installs keep their clicks.
    begin: Timestamp,
    /// Clicks claimed by replayed installs.
    claims: BTreeMap<ClickId, DeviceKey>,
    installs: u64,
    moved: u64,
    gaps: BTreeMap<ReplayGap, u64>,
    rows: BTreeMap<(String, String), WhatIfRow>,
    moves: BTreeMap<(ReplayPlace, ReplayPlace), ReplayMove>,
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatIfReport {
    /// Installs that were read.
    pub installs: u64,
    /// Installs that move.
    pub moved: u64,
    /// Installs that could not be replayed, or whose new credit is not known, by reason.
    pub gaps: Vec<(ReplayGap, u64)>,
    /// Sum over all networks.
    pub total: WhatIfRow,
    /// Sum over the networks of ads and links: without organic installs, and without those whose new
    /// credit is not known.
    pub paid: WhatIfRow,
    /// Rows by network.
    pub networks: Vec<WhatIfRow>,
    /// Rows by network and campaign, largest first, at most [`WHAT_IF_CAMPAIGNS_MAX`].
    pub campaigns: Vec<WhatIfRow>,
    /// Whether there are more campaigns.
    pub has_more_campaigns: bool,
    /// Moves, largest first, at most [`WHAT_IF_MOVES_MAX`].
    pub moves: Vec<ReplayMove>,
    /// Whether there are more moves.
    pub has_more_moves: bool,
}

impl WhatIfReport {
    /// Returns the number of installs that could not be replayed, and keep their credit in the
    /// figures.
    pub fn kept(&self) -> u64 {
        let kept = self.gaps.iter().filter(|(gap, _)| !gap.loses_credit());
        kept.map(|(_, installs)| installs).sum()
    }
}

impl WhatIf {
    /// Starts a replay of the installs since `begin`.
    pub const fn new(environment: Environment, rules: AttributionRules, begin: Timestamp) -> Self {
        Self {
            environment,
            rules,
            begin,
            claims: BTreeMap::new(),
            installs: 0,
            moved: 0,
            gaps: BTreeMap::new(),
            rows: BTreeMap::new(),
            moves: BTreeMap::new(),
        }
    }

    /// Returns the number of installs replayed so far.
    pub const fn installs(&self) -> u64 {
        self.installs
    }

    /// Replays the next installs. Their order does not matter; they must be later than all that were
    /// added before.
    pub fn add(&mut self, mut page: Vec<StoredInstall>) {
        page.sort_by_key(|one| one.install);
        for install in &page {
            self.add_install(install);
        }
    }

    fn add_install(&mut self, install: &StoredInstall) {
        let device = &install.device.key;
        let replayed = replay(install, self.environment, &self.rules, |click| {
            self.is_taken(click, device)
        });
        let before = install.attribution.credit();
        self.installs += 1;
        if let Err(gap) = &replayed {
            *self.gaps.entry(*gap).or_default() += 1;
        }
        let (to, after, reason) = match replayed {
            Ok(ReplayedCredit { credit, reason }) => {
                (ReplayPlace::of(&credit), Some(credit), Some(reason))
            }
            Err(gap) if gap.loses_credit() => (ReplayPlace::unknown(), None, None),
            Err(_) => (ReplayPlace::of(&before), Some(before.clone()), None),
        };
        let click = after.as_ref().and_then(|credit| credit.click);
        if let Some(click) = click {
            self.claims.insert(click, device.clone());
        }
        let from = ReplayPlace::of(&before);
        let figures = |credit| figures(install, credit);
        let (now, then) = (figures(Some(&before)), figures(after.as_ref()));
        self.row(&from, Some(&before)).now.figures.add(&now, 1);
        self.row(&to, after.as_ref()).then.figures.add(&then, 1);
        if from != to {
            self.moved += 1;
            self.add_move(install, from, to, reason);
        }
    }

    /// Returns whether another install has claimed a click by now. Replayed installs claim clicks
    /// in order; earlier ones keep theirs.
    fn is_taken(&self, click: &ReplayClick, device: &DeviceKey) -> bool {
        if self.environment != Environment::Live {
            return false;
        }
        if let Some(claimed_by) = self.claims.get(&click.click.id) {
            return claimed_by != device;
        }
        let owner = click.owner.as_ref().filter(|owner| owner.device != *device);
        owner.is_some_and(|owner| owner.first_open_at.is_none_or(|at| at < self.begin))
    }

    fn row(&mut self, place: &ReplayPlace, credit: Option<&Credit>) -> &mut WhatIfRow {
        let key = (place.network_name().to_owned(), place.campaign.clone());
        let row = self.rows.entry(key).or_insert_with(|| WhatIfRow {
            network: place.network_name().to_owned(),
            campaign: place.campaign.clone(),
            ..WhatIfRow::default()
        });
        if row.campaign_name.is_none() && !row.campaign.is_empty() {
            row.campaign_name = credit.and_then(|credit| credit.campaign.name.clone());
        }
        row
    }

    fn add_move(
        &mut self,
        install: &StoredInstall,
        from: ReplayPlace,
        to: ReplayPlace,
        reason: Option<String>,
    ) {
        let key = (from.clone(), to.clone());
        let sum = self.moves.entry(key).or_insert_with(|| ReplayMove {
            from,
            to,
            installs: 0,
            net_micros: 0,
            examples: Vec::new(),
        });
        let net = install
            .revenue_micros
            .saturating_sub(install.refunded_micros);
        sum.installs += 1;
        sum.net_micros = sum.net_micros.saturating_add(net);
        if sum.examples.len() < WHAT_IF_EXAMPLES_MAX {
            sum.examples.push(MovedInstall {
                device: install.device.key.clone(),
                first_open_at: install.device.first_seen_at,
                reason,
            });
        }
    }

    /// Returns the result, with the costs of the period and the app's figures by network and campaign.
    /// Without them, costs and revenue of the period are unknown. Other rules change no costs.
    pub fn finish(
        mut self,
        costs: Option<Vec<CostSum>>,
        reported: Option<&[StatsRow]>,
    ) -> WhatIfReport {
        let has_costs = costs.is_some();
        if let Some(costs) = costs {
            for row in self.rows.values_mut() {
                (row.now.cost, row.then.cost) = (Some(0), Some(0));
            }
            for cost in costs {
                let key = (cost.network.clone(), cost.campaign.clone());
                let row = self.rows.entry(key).or_insert_with(|| WhatIfRow {
                    network: cost.network,
                    campaign: cost.campaign,
                    now: ReportFigures::zero(),
                    then: ReportFigures::zero(),
                    ..WhatIfRow::default()
                });
                for figures in [&mut row.now, &mut row.then] {
                    let before = figures.cost.unwrap_or(0);
                    figures.cost = Some(before.saturating_add(cost.usd_micros));
                }
            }
        }
        let mut campaigns: Vec<WhatIfRow> = self.rows.into_values().collect();
        let mut networks = by_network(&campaigns);
        let uncredited =
            reported.map(|rows| add_period_net(&mut networks, &mut campaigns, rows, has_costs));
        let mut total = sum(&networks);
        total.period_net = total.period_net.or(uncredited.map(|_| 0));
        total.period_net = add_known(total.period_net, uncredited);
        let size = |row: &WhatIfRow| row.now.figures.installs.max(row.then.figures.installs);
        campaigns.sort_by_key(|row| Reverse(size(row)));
        let mut moves: Vec<ReplayMove> = self.moves.into_values().collect();
        moves.sort_by_key(|one| Reverse(one.installs));
        let has_more_campaigns = campaigns.len() > WHAT_IF_CAMPAIGNS_MAX;
        campaigns.truncate(WHAT_IF_CAMPAIGNS_MAX);
        let has_more_moves = moves.len() > WHAT_IF_MOVES_MAX;
        moves.truncate(WHAT_IF_MOVES_MAX);
        WhatIfReport {
            installs: self.installs,
            moved: self.moved,
            gaps: self.gaps.into_iter().collect(),
            total,
            paid: sum(networks.iter().filter(|row| row.is_paid())),
            networks,
            campaigns,
            has_more_campaigns,
            moves,
            has_more_moves,
        }
    }
}

/// Returns the figures of an install with a credit; `None` if the credit is not known.
fn figures(install: &StoredInstall, credit: Option<&Credit>) -> Figures {
    let is_organic = credit.is_some_and(|credit| credit.match_type == MatchType::Organic);
    Figures {
        installs: 1,
        organic_installs: i64::from(is_organic),
        revenue_micros: install.revenue_micros,
        refunded_micros: install.refunded_micros,
        ..Figures::default()
    }
    .under_hold(credit.and_then(|credit| credit.hold))
}

fn add(sum: &mut WhatIfRow, row: &WhatIfRow) {
    sum.now.add(&row.now);
    sum.then.add(&row.then);
    sum.period_net = add_known(sum.period_net, row.period_net);
}

fn add_known(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    Some(one?.saturating_add(other?))
}

fn by_network(campaigns: &[WhatIfRow]) -> Vec<WhatIfRow> {
    let mut networks: BTreeMap<&str, WhatIfRow> = BTreeMap::new();
    for row in campaigns {
        if let Some(sum) = networks.get_mut(row.network.as_str()) {
            add(sum, row);
            continue;
        }
        let first = WhatIfRow {
            campaign: String::new(),
            campaign_name: None,
            ..row.clone()
        };
        networks.insert(&row.network, first);
    }
    networks.into_values().collect()
}

fn sum<'a>(networks: impl IntoIterator<Item = &'a WhatIfRow>) -> WhatIfRow {
    let mut rows = networks.into_iter();
    let mut sum = rows.next().cloned().unwrap_or_default();
    sum.network = String::new();
    rows.for_each(|row| add(&mut sum, row));
    sum
}
