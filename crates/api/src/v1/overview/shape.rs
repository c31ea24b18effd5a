//! JSON form of an overview.

use super::anomaly::AnomalyOut;
use crate::body::Envelope;
use crate::decimal::number;
use crate::report::figures::FiguresOut;
use crate::report::kpis::{self, KpisOut};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tributary_domain::access::Environment;
use tributary_domain::integration::Network;
use tributary_domain::report::anomaly::TrafficAnomaly;
use tributary_domain::report::cohort::InstallStage;
use tributary_domain::report::range::DayRange;
use tributary_domain::report::{ReportFigures, share};
use tributary_store::{BillingFigures, IntegrationHealth};
use utoipa::ToSchema;

/// Overview of an app.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Overview")]
pub(super) struct OverviewOut {
    #[schema(format = Date)]
    from: String,
    #[schema(format = Date)]
    to: String,
    timezone: String,
    /// Key figures, compared with the previous period of the same length.
    kpis: KpisOut,
    /// Figures by day, oldest first.
    series: Vec<DayOut>,
    /// Top ten links by net revenue.
    top_links: Vec<TopOut>,
    top_campaigns: Vec<TopOut>,
    top_networks: Vec<TopOut>,
    /// Counts of the period from click to payment. The steps count different things: an install of
    /// this period may follow a click of an earlier one, and a device may start several trials. So
    /// they have no rates; `installFunnel` has.
    funnel: Vec<StepOut>,
    /// What the devices that were installed in the period did later. Without the step `paid` while
    /// payers of earlier installs are still being counted.
    install_funnel: Vec<InstallStepOut>,
    /// Delivery figures by network; live data only.
    delivery_health: Vec<NetworkHealthOut>,
    /// Billing events by day of arrival in UTC.
    billing: JoinedOut,
    /// Unusual traffic of the last seven days, newest first; live data only.
    anomalies: Vec<AnomalyOut>,
}

/// Figures for one day.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DayOut {
    #[schema(format = Date)]
    day: String,
    #[serde(flatten)]
    figures: FiguresOut,
}

/// A row of a top list: a link, a campaign or a network.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TopOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    link_id: Option<String>,
    /// The link's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    /// Campaign id.
    #[serde(skip_serializing_if = "Option::is_none")]
    campaign: Option<String>,
    #[serde(flatten)]
    figures: FiguresOut,
}

impl TopOut {
    fn new(measured: &ReportFigures) -> Self {
        Self {
            link_id: None,
            name: None,
            network: None,
            campaign: None,
            figures: FiguresOut::of(measured),
        }
    }

    pub(super) fn link(id: &str, name: Option<String>, measured: &ReportFigures) -> Self {
        Self {
            link_id: Some(id.to_owned()),
            name,
            ..Self::new(measured)
        }
    }

    pub(super) fn campaign(network: &str, campaign: &str, measured: &ReportFigures) -> Self {
        Self {
            network: Some(network.to_owned()),
            campaign: Some(campaign.to_owned()),
            ..Self::new(measured)
        }
    }

    pub(super) fn network(network: &str, measured: &ReportFigures) -> Self {
        Self {
            network: Some(network.to_owned()),
            ..Self::new(measured)
        }
    }
}

/// A step of the funnel.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StepOut {
    /// `clicks`, `installs`, `signUps`, `trials`, `payingDevices`.
    step: &'static str,
    count: i64,
    /// Always null, because the steps do not count the same devices. Use `installFunnel`, or
    /// `kpis.conversionRate` for installs per click.
    #[schema(value_type = Option<f64>)]
    rate: Option<()>,
}

/// A step of the installs' funnel. Every step counts devices that were installed in the period.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstallStepOut {
    /// `installed`, `active` on the day, or `paid` up to and including the day.
    step: &'static str,
    /// Days since the install.
    day: u8,
    /// Installs of the period whose day of this number is over.
    installs: i64,
    /// Devices of these installs that reached the step.
    devices: i64,
    /// `devices` divided by `installs`; null if there are no installs.
    #[schema(value_type = Option<f64>)]
    rate: Option<Box<RawValue>>,
}

impl From<&InstallStage> for InstallStepOut {
    fn from(stage: &InstallStage) -> Self {
        Self {
            step: stage.step.as_str(),
            day: stage.age,
            installs: stage.installs,
            devices: stage.devices,
            rate: share(stage.devices, stage.installs).and_then(number),
        }
    }
}

/// Delivery figures for a network.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NetworkHealthOut {
    #[schema(inline, value_type = crate::choices::NetworkChoice)]
    network: &'static str,
    /// Number of pending deliveries.
    pending: u64,
    delivered24h: u64,
    failed24h: u64,
}

/// How many billing events were matched to a device.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JoinedOut {
    /// Number of events reported by billing providers.
    events: i64,
    /// Number of events matched to a device.
    matched: i64,
    /// `matched` divided by `events`; null if there are no events.
    #[schema(value_type = Option<f64>)]
    join_rate: Option<Box<RawValue>>,
}

impl OverviewOut {
    pub(super) fn of(
        range: &DayRange,
        now: &ReportFigures,
        before: &ReportFigures,
        series: &[(String, ReportFigures)],
    ) -> Self {
        let day = |(day, measured): &(String, ReportFigures)| DayOut {
            day: day.clone(),
            figures: FiguresOut::of(measured),
        };
        Self {
            from: range.from.to_string(),
            to: range.to.to_string(),
            timezone: range.zone.as_str().to_owned(),
            kpis: KpisOut::of(now, before),
            series: series.iter().map(day).collect(),
            top_links: Vec::new(),
            top_campaigns: Vec::new(),
            top_networks: Vec::new(),
            funnel: funnel(now),
            install_funnel: Vec::new(),
            delivery_health: Vec::new(),
            billing: JoinedOut::default(),
            anomalies: Vec::new(),
        }
    }

    pub(super) fn with_install_funnel(self, stages: &[InstallStage]) -> Self {
        Self {
            install_funnel: stages.iter().map(InstallStepOut::from).collect(),
            ..self
        }
    }

    pub(super) fn with_links(self, top_links: Vec<TopOut>) -> Self {
        Self { top_links, ..self }
    }

    pub(super) fn with_campaigns(self, top_campaigns: Vec<TopOut>) -> Self {
        Self {
            top_campaigns,
            ..self
        }
    }

    pub(super) fn with_networks(self, top_networks: Vec<TopOut>) -> Self {
        Self {
            top_networks,
            ..self
        }
    }

    pub(super) fn with_health(self, health: Vec<(Network, IntegrationHealth)>) -> Self {
        let shown = |(network, health): (Network, IntegrationHealth)| NetworkHealthOut {
            network: network.as_str(),
            pending: health.pending,
            delivered24h: health.delivered,
            failed24h: health.failed,
        };
        Self {
            delivery_health: health.into_iter().map(shown).collect(),
            ..self
        }
    }

    pub(super) fn with_billing(self, environment: Environment, all: &[BillingFigures]) -> Self {
        let of_environment = |one: &&BillingFigures| one.environment == environment;
        let found = all.iter().filter(of_environment);
        let (events, matched) = found.fold((0, 0), |(events, matched), one| {
            (events + one.events, matched + one.matched)
        });
        let billing = JoinedOut {
            events,
            matched,
            join_rate: share(matched, events).and_then(number),
        };
        Self { billing, ..self }
    }
}

impl OverviewOut {
    pub(super) fn with_anomalies(self, found: Vec<TrafficAnomaly>) -> Self {
        Self {
            anomalies: found.into_iter().map(AnomalyOut::from).collect(),
            ..self
        }
    }
}

fn funnel(measured: &ReportFigures) -> Vec<StepOut> {
    let figures = &measured.figures;
    let steps = [
        ("clicks", figures.clicks),
        ("installs", figures.installs),
        ("signUps", figures.sign_ups),
        ("trials", figures.trials),
        ("payingDevices", figures.paying_devices),
    ];
    let step = |(step, count)| StepOut {
        step,
        count,
        rate: None,
    };
    steps.into_iter().map(step).collect()
}

pub(super) type OverviewEnvelope = Envelope<OverviewOut>;

/// Returns an example overview for the OpenAPI description.
pub(super) fn example() -> Value {
    let figures = crate::report::figures::example();
    let with = |mut row: Value| {
        if let (Some(row), Some(figures)) = (row.as_object_mut(), figures.as_object()) {
            row.extend(figures.clone());
        }
        row
    };
    json!({"data": {
        "from": "2026-01-01", "to": "2026-01-30", "timezone": "Europe/Berlin",
        "kpis": kpis::example(),
        "series": [with(json!({"day": "2026-01-01"}))],
        "topLinks": [with(json!({"linkId": "lnk_01k9z3v7q8e4r9m2x5c6b7n8d5", "name": "Spring – social"}))],
        "topCampaigns": [with(json!({"network": "network_a", "campaign": "120210"}))],
        "topNetworks": [with(json!({"network": "network_a"}))],
        "funnel": [{"step": "clicks", "count": 1200, "rate": null}, {"step": "installs", "count": 300, "rate": null}],
        "installFunnel": [
            {"step": "installed", "day": 0, "installs": 300, "devices": 300, "rate": 1},
            {"step": "active", "day": 1, "installs": 280, "devices": 84, "rate": 0.3},
            {"step": "paid", "day": 7, "installs": 200, "devices": 12, "rate": 0.06}
        ],
        "deliveryHealth": [{"network": "network_a", "pending": 0, "delivered24h": 210, "failed24h": 1}],
        "billing": {"events": 1000, "matched": 980, "joinRate": 0.98},
        "anomalies": [{
            "subject": "link", "subjectId": "lnk_01k9z3v7q8e4r9m2x5c6b7n8d5", "figure": "installs",
            "hour": "2026-01-30T13:00:00.000Z", "value": 812, "expected": 14, "endedAt": null
        }]
    }})
}
