//! The result of a replay in people's words.

use crate::access::ReportContext;
use crate::network_label::NetworkLabel;
use crate::range::days_label;
use crate::shell::{Section, Shell};
use crate::text;
use askama::Template;
use std::collections::BTreeMap;
use tributary_domain::access::resource::WhatIfRead;
use tributary_domain::app::{AttributionRules, FraudPolicy};
use tributary_domain::attribution::HoldState;
use tributary_domain::install::what_if::{
    ReplayGap, ReplayMove, ReplayPlace, WHAT_IF_INSTALLS_MAX, WhatIfReport, WhatIfRow,
};
use tributary_domain::report::ReportFigures;
use tributary_domain::report::range::DayRange;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::ReplaySpan;

/// Maximum number of campaigns on the page: those with most installs. The REST API returns more.
const CAMPAIGNS_SHOWN_MAX: usize = 100;
/// Maximum number of moves on the page.
const MOVES_SHOWN_MAX: usize = 50;
/// Names of campaigns by network and id.
type CampaignNames = BTreeMap<(String, String), String>;
/// Shown for a figure without a value.
const NONE: &str = "–";

/// The part of the page below the form.
#[derive(Template)]
#[template(path = "what_if_result.html")]
pub(super) struct WhatIfResult {
    shell: Shell,
    days: String,
    /// Time zone of the days.
    zone: String,
    installs: String,
    /// Maximum number of installs, if the period has more.
    limit: Option<String>,
    moved: String,
    moves: Vec<MoveView>,
    has_more_moves: bool,
    gaps: Vec<(String, &'static str)>,
    /// Number of installs that could not be replayed and keep their credit, if any.
    kept: Option<String>,
    networks: Vec<ComparedView>,
    campaigns: Vec<ComparedView>,
    has_more_campaigns: bool,
    /// The tried rules.
    rules: String,
    /// Query of the overview of the same days.
    overview: String,
}

/// Shown if the database fails during the replay.
#[derive(Template)]
#[template(path = "what_if_failed.html")]
pub(super) struct FailedReplay;

struct MoveView {
    from: String,
    to: String,
    installs: String,
    net: String,
    examples: Vec<ExampleView>,
}

struct ExampleView {
    device: String,
    first_open: String,
    reason: String,
}

/// A row of a table.
struct ComparedView {
    name: String,
    id: String,
    figures: Vec<FigureView>,
}

/// A figure now and then.
struct FigureView {
    now: String,
    then: String,
    /// The difference; empty if nothing changes.
    difference: String,
}

impl WhatIfResult {
    pub(super) fn new(
        context: &ReportContext<WhatIfRead>,
        range: &DayRange,
        rules: &AttributionRules,
        span: ReplaySpan,
        report: WhatIfReport,
    ) -> Self {
        let mut networks: Vec<_> = report.networks.iter().map(network_row).collect();
        let sums = [
            ("Ads and links (paid)", &report.paid),
            ("Total (blended)", &report.total),
        ];
        networks.extend(sums.map(|(name, row)| ComparedView {
            name: name.to_owned(),
            id: String::new(),
            figures: figures(row),
        }));
        let changed = report
            .campaigns
            .iter()
            .filter(|row| !row.campaign.is_empty());
        let changed: Vec<_> = changed.collect();
        let names = campaign_names(&report);
        let moves = report.moves.iter().take(MOVES_SHOWN_MAX);
        let gaps = report.gaps.iter();
        let limit = span
            .has_older
            .then(|| text::count(i64::from(WHAT_IF_INSTALLS_MAX)));
        Self {
            shell: context.shell(Section::Settings),
            days: days_label(range),
            zone: range.zone.as_str().to_owned(),
            installs: counted(report.installs, "install"),
            limit,
            moved: counted(report.moved, "install"),
            moves: moves
                .map(|one| move_view(one, &names, &range.zone))
                .collect(),
            has_more_moves: report.moves.len() > MOVES_SHOWN_MAX || report.has_more_moves,
            kept: (report.kept() > 0).then(|| counted(report.kept(), "install")),
            gaps: gaps
                .map(|(gap, count)| (counted(*count, "install"), gap_text(*gap)))
                .collect(),
            networks,
            has_more_campaigns: changed.len() > CAMPAIGNS_SHOWN_MAX || report.has_more_campaigns,
            campaigns: changed
                .into_iter()
                .take(CAMPAIGNS_SHOWN_MAX)
                .map(campaign_row)
                .collect(),
            rules: rules_text(rules),
            overview: context.query.only(&["environment"]).with(&[
                ("from", Some(&range.from.to_string())),
                ("to", Some(&range.to.to_string())),
            ]),
        }
    }

    /// Returns each table's id, title and rows.
    fn tables(&self) -> Vec<(&'static str, &'static str, &[ComparedView])> {
        let networks = ("by-network", "By network", self.networks.as_slice());
        let campaigns = ("by-campaign", "By campaign", self.campaigns.as_slice());
        let tables = [networks, campaigns].into_iter();
        tables.filter(|(_, _, rows)| !rows.is_empty()).collect()
    }

    /// Returns the heads of the columns with their units.
    const fn heads(&self) -> [(&'static str, &'static str); 8] {
        [
            ("Installs", "installs"),
            ("Held", "installs"),
            ("Spend", "US dollars"),
            ("CPI", "US dollars per install"),
            ("Net revenue", "US dollars, as on the overview"),
            ("ROAS", "as on the overview"),
            ("Net revenue of these installs", "US dollars so far"),
            ("ROAS of these installs", "so far"),
        ]
    }
}

/// Returns the rules in a few words.
fn rules_text(rules: &AttributionRules) -> String {
    let on = |is_on: bool| if is_on { "on" } else { "off" };
    format!(
        "click window {}, probabilistic matching on Android {}, on iOS {}, within {}, \
         suspicious installs: {}",
        text::hours_or_days(rules.click_window_hours),
        on(rules.probabilistic_android),
        on(rules.probabilistic_ios),
        text::hours_or_days(rules.probabilistic_window_hours),
        match rules.fraud {
            FraudPolicy::Flag => "flag",
            FraudPolicy::Hold => "flag and hold for a review",
            FraudPolicy::Refuse => "flag, and reject clicks with impossible times",
        }
    )
}

fn counted(count: u64, noun: &str) -> String {
    let number = text::count(i64::try_from(count).unwrap_or(i64::MAX));
    let ending = if count == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

fn label(network: &str) -> NetworkLabel {
    NetworkLabel::parse(network).unwrap_or(NetworkLabel {
        name: "Not known",
        id: "",
    })
}

fn network_row(row: &WhatIfRow) -> ComparedView {
    let label = label(&row.network);
    ComparedView {
        name: label.name.to_owned(),
        id: label.id.to_owned(),
        figures: figures(row),
    }
}

fn campaign_row(row: &WhatIfRow) -> ComparedView {
    let name = row.campaign_name.as_ref().unwrap_or(&row.campaign);
    ComparedView {
        name: format!("{} · {name}", label(&row.network).name),
        id: row.campaign.clone(),
        figures: figures(row),
    }
}

fn text_of_usd(micros: i64) -> String {
    text::usd(Amount::from_micros(micros))
}

fn figures(row: &WhatIfRow) -> Vec<FigureView> {
    let (now, then) = (&row.now, &row.then);
    let count =
        |pick: fn(&ReportFigures) -> i64| figure(Some(pick(now)), Some(pick(then)), text::count);
    let money =
        |pick: fn(&ReportFigures) -> Option<i64>| figure(pick(now), pick(then), text_of_usd);
    let ratio = |now: Option<Amount>, then: Option<Amount>| {
        figure(
            now.map(Amount::micros),
            then.map(Amount::micros),
            |micros| text::ratio(Amount::from_micros(micros)),
        )
    };
    vec![
        count(|of| of.figures.installs),
        count(|of| of.figures.held_installs),
        money(|of| of.cost),
        money(|of| of.cpi().map(Amount::micros)),
        figure(row.period_net, row.period_net_then(), text_of_usd),
        ratio(row.period_roas(), row.period_roas_then()),
        money(|of| Some(of.figures.net_micros())),
        ratio(now.roas(), then.roas()),
    ]
}

fn figure(now: Option<i64>, then: Option<i64>, format: impl Fn(i64) -> String) -> FigureView {
    let shown = |value: Option<i64>| value.map_or_else(|| NONE.to_owned(), &format);
    let difference = now.zip(then).map(|(now, then)| then.saturating_sub(now));
    let difference = match difference {
        Some(0) => String::new(),
        Some(more @ 1..) => format!("+{}", format(more)),
        Some(less) => format(less),
        None if now == then => String::new(),
        None => NONE.to_owned(),
    };
    FigureView {
        now: shown(now),
        then: shown(then),
        difference,
    }
}

/// Returns the names of the campaigns by network and id.
fn campaign_names(report: &WhatIfReport) -> CampaignNames {
    let name = |row: &WhatIfRow| {
        let key = (row.network.clone(), row.campaign.clone());
        Some((key, row.campaign_name.clone()?))
    };
    report.campaigns.iter().filter_map(name).collect()
}

fn place_text(place: &ReplayPlace, names: &CampaignNames) -> String {
    let mut words = label(place.network_name()).name.to_owned();
    if !place.campaign.is_empty() {
        let key = (place.network_name().to_owned(), place.campaign.clone());
        words = format!("{words} · {}", names.get(&key).unwrap_or(&place.campaign));
    }
    match place.hold {
        Some(HoldState::Held) => format!("{words} (held)"),
        Some(HoldState::Rejected) => format!("{words} (rejected)"),
        Some(HoldState::Released) | None => words,
    }
}

fn move_view(one: &ReplayMove, names: &CampaignNames, zone: &Timezone) -> MoveView {
    let examples = one.examples.iter().map(|example| ExampleView {
        device: example.device.as_str().to_owned(),
        first_open: text::moment(example.first_open_at, zone),
        reason: example.reason.clone().unwrap_or_default(),
    });
    MoveView {
        from: place_text(&one.from, names),
        to: place_text(&one.to, names),
        installs: counted(one.installs, "install"),
        net: text::usd(Amount::from_micros(one.net_micros)),
        examples: examples.collect(),
    }
}

const fn gap_text(gap: ReplayGap) -> &'static str {
    match gap {
        ReplayGap::EvidenceRemoved => {
            "The evidence was erased, removed by retention or never imported. They keep their credit."
        }
        ReplayGap::ClickRemoved => "A click was deleted by retention. They keep their credit.",
        ReplayGap::CandidatesCut => {
            "Too many clicks came from the same address to store all. They keep their credit."
        }
        ReplayGap::NotReproduced => {
            "The stored evidence no longer leads to the stored decision, for example because the \
             device's OS version has changed. They keep their credit."
        }
        ReplayGap::LateEvidence => {
            "Better evidence arrived after the end of a click window, and is not stored well enough \
             to decide again. They keep their credit."
        }
        ReplayGap::AddressUnknown => {
            "They lose their credit. Another click from their address may match, but these clicks \
             were not compared at the install. They count as not known."
        }
        ReplayGap::AppleAdUnknown => {
            "They lose their credit. Apple reported an ad, which is not stored. They count as not \
             known."
        }
        ReplayGap::StoreAdUnknown => {
            "The Play Store named an ad that would count, but it is not stored. They count as not \
             known."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::equal(Some(5), Some(5), "5", "5", "")]
    #[case::more(Some(5), Some(1_005), "5", "1,005", "+1,000")]
    #[case::less(Some(5), Some(2), "5", "2", "−3")]
    #[case::unknown_then(Some(5), None, "5", "–", "–")]
    #[case::never_known(None, None, "–", "–", "")]
    fn differences_have_a_sign(
        #[case] now: Option<i64>,
        #[case] then: Option<i64>,
        #[case] shown_now: &str,
        #[case] shown_then: &str,
        #[case] difference: &str,
    ) {
        let view = figure(now, then, text::count);
        assert_eq!(
            (&*view.now, &*view.then, &*view.difference),
            (shown_now, shown_then, difference)
        );
    }
}
