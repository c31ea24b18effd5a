//! JSON form of a replay under other attribution rules.

use crate::decimal::number;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tributary_domain::app::AttributionRules;
use tributary_domain::attribution::HoldState;
use tributary_domain::install::what_if::{
    MovedInstall, ReplayGap, ReplayMove, ReplayPlace, WhatIfReport, WhatIfRow,
};
use tributary_domain::report::ReportFigures;
use tributary_domain::report::range::DayRange;
use tributary_domain::vocabulary::money::Amount;
use tributary_store::ReplaySpan;
use utoipa::ToSchema;

/// Result of trying other attribution rules.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "WhatIf")]
pub(super) struct WhatIfOut {
    /// The app's rules.
    current_rules: RulesOut,
    /// The rules that were tried.
    tried_rules: RulesOut,
    /// First day.
    #[schema(format = Date)]
    from: String,
    /// Last day: today.
    #[schema(format = Date)]
    to: String,
    /// Number of installs that were replayed.
    installs: u64,
    /// True if the period has older installs. Only the newest 50,000 are replayed, and costs are
    /// null, because they belong to more installs.
    limit_reached: bool,
    /// Number of installs that would count elsewhere.
    moved: u64,
    /// Installs for which evidence is missing, by reason.
    gaps: Vec<GapOut>,
    /// All networks.
    total: ComparedOut,
    /// The networks of ads and links: without organic installs, and without those whose new credit
    /// is not known. `cpi`, `roas` and `periodRoas` correspond to `paidCpi` and `paidRoas` of other
    /// reports, and those of `total` to `cpi` and `roas`.
    paid: ComparedOut,
    /// By network.
    networks: Vec<NetworkComparedOut>,
    /// By campaign, those with most installs first, at most 500.
    campaigns: Vec<CampaignComparedOut>,
    /// True if there are more campaigns.
    has_more_campaigns: bool,
    /// From where to where installs would move, most installs first, at most 200.
    moves: Vec<MoveOut>,
    /// True if there are more moves.
    has_more_moves: bool,
}

/// Attribution rules.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RulesOut {
    click_window_hours: i64,
    probabilistic: TriedMatchingOut,
    #[schema(inline, value_type = crate::choices::FraudChoice)]
    fraud: &'static str,
}

/// Rules for probabilistic matching.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TriedMatchingOut {
    ios: bool,
    android: bool,
    window_hours: i64,
}

/// Installs for which evidence is missing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GapOut {
    /// `evidence_removed`: erased, removed by retention, or imported. `click_removed`: a click is
    /// deleted. `candidates_cut`: too many clicks from the address to store. `not_reproduced`: the
    /// stored evidence no longer leads to the stored credit. `late_evidence`: the credit improved
    /// after the end of the shorter click window. `address_unknown`, `apple_ad_unknown`,
    /// `store_ad_unknown`: the credit is lost, and clicks from the address, or the ad named by Apple
    /// or by the Play Store, which could get it, are not stored.
    reason: &'static str,
    /// Number of installs.
    installs: u64,
    /// True if these installs count under the network `unknown` in `then`; false if they keep their
    /// credit.
    unknown: bool,
}

/// Figures now and then.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ComparedOut {
    /// As recorded.
    now: ReplayedOut,
    /// Under the other rules.
    then: ReplayedOut,
}

/// Figures of a network now and then.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NetworkComparedOut {
    /// Network, `organic`, `other` or `unknown`.
    network: String,
    #[serde(flatten)]
    compared: ComparedOut,
}

/// Figures of a campaign now and then.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CampaignComparedOut {
    /// Network, `organic`, `other` or `unknown`.
    network: String,
    /// Campaign id; null if there is none.
    campaign_id: Option<String>,
    /// Campaign name, if known.
    campaign_name: Option<String>,
    #[serde(flatten)]
    compared: ComparedOut,
}

/// Figures of replayed installs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReplayedOut {
    installs: i64,
    organic_installs: i64,
    /// Installs that are held for a review.
    held_installs: i64,
    /// Revenue of the installs so far, in US dollars.
    #[schema(value_type = f64)]
    revenue: Option<Box<RawValue>>,
    /// Refunds of the installs so far, in US dollars.
    #[schema(value_type = f64)]
    refunds: Option<Box<RawValue>>,
    /// Ad cost of the period; null with a test key.
    #[schema(value_type = Option<f64>)]
    cost: Option<Box<RawValue>>,
    /// Cost per install; null without cost or installs.
    #[schema(value_type = Option<f64>)]
    cpi: Option<Box<RawValue>>,
    /// Net revenue of the replayed installs per dollar of cost; null without cost. Use `periodRoas`
    /// to compare with other reports.
    #[schema(value_type = Option<f64>)]
    roas: Option<Box<RawValue>>,
    /// Net revenue of the period, as in other reports of these days: also of earlier installs and
    /// of websites. Null if `limitReached`, and for campaigns that count under `(other)`.
    #[schema(value_type = Option<f64>)]
    period_net_revenue: Option<Box<RawValue>>,
    /// Net revenue of the period per dollar of cost, as in other reports of these days; null without
    /// cost.
    #[schema(value_type = Option<f64>)]
    period_roas: Option<Box<RawValue>>,
}

/// Installs that would move.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MoveOut {
    from: PlaceOut,
    to: PlaceOut,
    /// Number of installs.
    installs: u64,
    /// Revenue minus refunds of these installs so far, in US dollars.
    #[schema(value_type = f64)]
    net_revenue: Option<Box<RawValue>>,
    /// Some of these installs, at most 3.
    examples: Vec<MovedInstallOut>,
}

/// Where an install counts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PlaceOut {
    /// Network, `organic`, `other` or `unknown`.
    network: &'static str,
    /// Campaign id; null if there is none.
    campaign_id: Option<String>,
    /// `held` or `rejected` if the install does not count; otherwise null.
    hold: Option<&'static str>,
}

/// An install that would move.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MovedInstallOut {
    device_id: String,
    /// First open.
    #[schema(format = DateTime)]
    installed_at: String,
    /// Explanation of the decision under the other rules; null if the new credit is not known.
    reason: Option<String>,
}

impl WhatIfOut {
    pub(super) fn new(
        (current, tried): (&AttributionRules, &AttributionRules),
        range: &DayRange,
        span: ReplaySpan,
        report: WhatIfReport,
    ) -> Self {
        let gap = |(gap, installs): (ReplayGap, u64)| GapOut {
            reason: gap.as_str(),
            installs,
            unknown: gap.loses_credit(),
        };
        let network = |row: WhatIfRow| NetworkComparedOut {
            compared: compared(&row),
            network: row.network,
        };
        let campaign = |row: WhatIfRow| CampaignComparedOut {
            compared: compared(&row),
            network: row.network,
            campaign_id: Some(row.campaign).filter(|id| !id.is_empty()),
            campaign_name: row.campaign_name,
        };
        Self {
            current_rules: rules(current),
            tried_rules: rules(tried),
            from: range.from.to_string(),
            to: range.to.to_string(),
            installs: report.installs,
            limit_reached: span.has_older,
            moved: report.moved,
            gaps: report.gaps.into_iter().map(gap).collect(),
            total: compared(&report.total),
            paid: compared(&report.paid),
            networks: report.networks.into_iter().map(network).collect(),
            campaigns: report.campaigns.into_iter().map(campaign).collect(),
            has_more_campaigns: report.has_more_campaigns,
            moves: report.moves.into_iter().map(moved).collect(),
            has_more_moves: report.has_more_moves,
        }
    }
}

const fn rules(rules: &AttributionRules) -> RulesOut {
    RulesOut {
        click_window_hours: rules.click_window_hours,
        probabilistic: TriedMatchingOut {
            ios: rules.probabilistic_ios,
            android: rules.probabilistic_android,
            window_hours: rules.probabilistic_window_hours,
        },
        fraud: rules.fraud.as_str(),
    }
}

fn compared(row: &WhatIfRow) -> ComparedOut {
    ComparedOut {
        now: figures(&row.now, row.period_net, row.period_roas()),
        then: figures(&row.then, row.period_net_then(), row.period_roas_then()),
    }
}

fn figures(
    of: &ReportFigures,
    period_net: Option<i64>,
    period_roas: Option<Amount>,
) -> ReplayedOut {
    let micros = |micros| number(Amount::from_micros(micros));
    ReplayedOut {
        installs: of.figures.installs,
        organic_installs: of.figures.organic_installs,
        held_installs: of.figures.held_installs,
        revenue: micros(of.figures.revenue_micros),
        refunds: micros(of.figures.refunded_micros),
        cost: of.cost.and_then(micros),
        cpi: of.cpi().and_then(number),
        roas: of.roas().and_then(number),
        period_net_revenue: period_net.and_then(micros),
        period_roas: period_roas.and_then(number),
    }
}

fn moved(one: ReplayMove) -> MoveOut {
    let example = |one: MovedInstall| MovedInstallOut {
        device_id: one.device.as_str().to_owned(),
        installed_at: rfc3339(one.first_open_at),
        reason: one.reason,
    };
    MoveOut {
        from: place(one.from),
        to: place(one.to),
        installs: one.installs,
        net_revenue: number(Amount::from_micros(one.net_micros)),
        examples: one.examples.into_iter().map(example).collect(),
    }
}

fn place(place: ReplayPlace) -> PlaceOut {
    PlaceOut {
        network: place.network_name(),
        campaign_id: Some(place.campaign).filter(|id| !id.is_empty()),
        hold: place.hold.map(HoldState::as_str),
    }
}

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> Value {
    let rules = |hours: i64| {
        json!({
            "clickWindowHours": hours,
            "probabilistic": {"ios": false, "android": false, "windowHours": 24},
            "fraud": "hold"
        })
    };
    let figures = |installs: i64, organic: i64, revenue: f64, cost: f64, ratios: Value| {
        json!({
            "installs": installs, "organicInstalls": organic, "heldInstalls": 0,
            "revenue": revenue, "refunds": 0, "cost": cost,
            "cpi": ratios[0], "roas": ratios[1], "periodNetRevenue": ratios[2], "periodRoas": ratios[3]
        })
    };
    let meta = json!({
        "now": figures(100, 0, 250.0, 200.0, json!([2, 1.25, 300, 1.5])),
        "then": figures(80, 0, 200.0, 200.0, json!([2.5, 1, 250, 1.25]))
    });
    let with = |of: &Value, names: Value| {
        let mut row = names;
        row["now"] = of["now"].clone();
        row["then"] = of["then"].clone();
        row
    };
    json!({
        "currentRules": rules(168),
        "triedRules": rules(24),
        "from": "2026-01-02",
        "to": "2026-01-31",
        "installs": 100,
        "limitReached": false,
        "moved": 20,
        "gaps": [],
        "total": {
            "now": figures(100, 0, 250.0, 200.0, json!([2, 1.25, 300, 1.5])),
            "then": figures(100, 20, 250.0, 200.0, json!([2, 1.25, 300, 1.5]))
        },
        "paid": meta.clone(),
        "networks": [with(&meta, json!({"network": "network_a"}))],
        "campaigns": [with(&meta, json!({
            "network": "network_a", "campaignId": "spring", "campaignName": "Spring"
        }))],
        "hasMoreCampaigns": false,
        "moves": [{
            "from": {"network": "network_a", "campaignId": "spring", "hold": null},
            "to": {"network": "organic", "campaignId": null, "hold": null},
            "installs": 20,
            "netRevenue": 50,
            "examples": [{
                "deviceId": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
                "installedAt": "2026-01-20T08:30:00.000Z",
                "reason": "The click reported by the device is older than the click window of 24 hours."
            }]
        }],
        "hasMoreMoves": false
    })
}
