//! Figures of postbacks as the interface shows them.

use crate::page::List;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use tributary_domain::report::postback::PostbackFigures;
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::Protocol;
use tributary_domain::vocabulary::day::Day;
use tributary_store::PostbackStats;
use utoipa::ToSchema;

/// One row: the dimensions that were asked for, and the figures.
#[derive(Debug, Serialize)]
pub(super) struct PostbackStatsOut {
    #[serde(flatten)]
    dimensions: Map<String, Value>,
    #[serde(flatten)]
    figures: PostbackFiguresOut,
}

/// What is counted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PostbackFiguresOut {
    /// All of them.
    postbacks: i64,
    /// First-time installs that the ad network won.
    installs: i64,
    /// Installs by those who had the app before.
    redownloads: i64,
    /// People who have the app and came back through an ad.
    reengagements: i64,
    /// Second and third postbacks: a value, never an install.
    later_postbacks: i64,
    /// Conversions that another ad network won.
    losses: i64,
    /// Those that won and have no value: withheld by Apple, or never set.
    withheld: i64,
}

impl PostbackFiguresOut {
    fn add(&mut self, other: &Self) {
        self.postbacks += other.postbacks;
        self.installs += other.installs;
        self.redownloads += other.redownloads;
        self.reengagements += other.reengagements;
        self.later_postbacks += other.later_postbacks;
        self.losses += other.losses;
        self.withheld += other.withheld;
    }

    fn of(figures: &PostbackFigures, withheld: i64) -> Self {
        Self {
            postbacks: figures.postbacks(),
            installs: figures.installs,
            redownloads: figures.redownloads,
            reengagements: figures.reengagements,
            later_postbacks: figures.later,
            losses: figures.losses,
            withheld,
        }
    }
}

impl PostbackStatsOut {
    /// A row. Of its dimensions those are shown that were asked for, null where there is nothing.
    pub(super) fn of(
        day: Option<Day>,
        asked: &[&'static str],
        row: PostbackStats,
        meaning: Value,
    ) -> Self {
        let mut dimensions = Map::new();
        for name in asked {
            let value = match *name {
                "day" => json!(day.map(|day| day.to_string())),
                "protocol" => json!(row.protocol.map(Protocol::as_str)),
                "adNetworkId" => json!(row.ad_network_id),
                "sourceIdentifier" => json!(row.source_identifier),
                "campaignId" => json!(row.campaign_id),
                "sequenceIndex" => json!(row.sequence_index),
                "fineValue" => json!(row.fine_value),
                "meaning" => meaning.clone(),
                _ => json!(row.coarse_value.map(CoarseValue::as_str)),
            };
            dimensions.insert((*name).to_owned(), value);
        }
        Self {
            dimensions,
            figures: PostbackFiguresOut::of(&row.figures, row.withheld),
        }
    }
}

/// Rows with the same dimensions as one, in the order of the first of them, each with a text of what it is about.
pub(super) fn merge_rows(
    rows: impl Iterator<Item = PostbackStatsOut>,
) -> Vec<(String, PostbackStatsOut)> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<(String, PostbackStatsOut)> = Vec::new();
    for row in rows {
        let about = Value::Object(row.dimensions.clone()).to_string();
        if let Some(place) = places.get(&about) {
            all[*place].1.figures.add(&row.figures);
        } else {
            places.insert(about.clone(), all.len());
            all.push((about, row));
        }
    }
    all
}

/// The sums over all rows.
pub(super) fn totals(rows: &[(String, PostbackStatsOut)]) -> PostbackFiguresOut {
    let mut totals = PostbackFiguresOut::of(&PostbackFigures::default(), 0);
    for (_, row) in rows {
        totals.add(&row.figures);
    }
    totals
}

/// A row, with every dimension there is.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", title = "PostbackFigures")]
#[expect(dead_code, reason = "describes what StatsOut writes")]
pub(super) struct PostbackStatsRowOut {
    #[schema(format = Date)]
    day: Option<String>,
    #[schema(inline)]
    protocol: Option<crate::choices::ProtocolChoice>,
    ad_network_id: Option<String>,
    source_identifier: Option<String>,
    campaign_id: Option<i64>,
    sequence_index: Option<i64>,
    fine_value: Option<i64>,
    #[schema(inline)]
    coarse_value: Option<crate::choices::CoarseChoice>,
    #[schema(inline)]
    meaning: Option<MeaningRow>,
    postbacks: i64,
    installs: i64,
    redownloads: i64,
    reengagements: i64,
    later_postbacks: i64,
    losses: i64,
    withheld: i64,
}

/// What the values of a row mean.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what StatsOut writes")]
struct MeaningRow {
    #[schema(inline)]
    status: crate::choices::DecodedChoice,
    /// The names of the values, when there is one meaning. With several names, any may be meant.
    names: Vec<String>,
}

pub(super) type PostbackStatsEnvelope = List<PostbackStatsRowOut, PostbackStatsMeta>;

/// What stands beside figures.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the envelope that List writes")]
pub(super) struct PostbackStatsMeta {
    has_more: bool,
    cursor: Option<String>,
    /// Over all pages.
    totals: PostbackFiguresOut,
}

/// Figures for the examples of the description.
pub(super) fn example() -> Value {
    let figures = json!({
        "postbacks": 130, "installs": 100, "redownloads": 10, "reengagements": 0, "laterPostbacks": 15, "losses": 5,
        "withheld": 40,
    });
    let mut row = json!({"day": "2026-01-01"});
    if let (Some(row), Some(figures)) = (row.as_object_mut(), figures.as_object()) {
        row.extend(figures.clone());
    }
    json!({"data": [row], "meta": {"hasMore": false, "cursor": null, "totals": figures}})
}
