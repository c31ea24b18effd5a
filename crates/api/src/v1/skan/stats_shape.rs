//! JSON form of postback figures.

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

/// A row with the requested dimensions and the figures.
#[derive(Debug, Serialize)]
pub(super) struct PostbackStatsOut {
    #[serde(flatten)]
    dimensions: Map<String, Value>,
    #[serde(flatten)]
    figures: PostbackFiguresOut,
}

/// Postback figures.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PostbackFiguresOut {
    /// All postbacks.
    postbacks: i64,
    /// First-time installs won by the ad network.
    installs: i64,
    /// Installs by users who had installed the app before.
    redownloads: i64,
    /// Users who had the app installed and returned through an ad.
    reengagements: i64,
    /// Second and third postbacks. They contain a value but never count as an install.
    later_postbacks: i64,
    /// Conversions won by another ad network.
    losses: i64,
    /// Won postbacks without a conversion value, because Apple withheld it or the app never set it.
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
    /// Builds a row with the requested dimensions; a missing value is null.
    pub(super) fn of(
        day: Option<Day>,
        requested: &[&'static str],
        row: PostbackStats,
        meaning: Value,
    ) -> Self {
        let mut dimensions = Map::new();
        for name in requested {
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

/// Merges rows with the same dimensions and keeps their order. Returns each row with a text that
/// represents its dimensions.
pub(super) fn merge_rows(
    rows: impl Iterator<Item = PostbackStatsOut>,
) -> Vec<(String, PostbackStatsOut)> {
    let mut indexes: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<(String, PostbackStatsOut)> = Vec::new();
    for row in rows {
        let about = Value::Object(row.dimensions.clone()).to_string();
        if let Some(index) = indexes.get(&about) {
            all[*index].1.figures.add(&row.figures);
        } else {
            indexes.insert(about.clone(), all.len());
            all.push((about, row));
        }
    }
    all
}

/// Returns the totals of all rows.
pub(super) fn totals(rows: &[(String, PostbackStatsOut)]) -> PostbackFiguresOut {
    let mut totals = PostbackFiguresOut::of(&PostbackFigures::default(), 0);
    for (_, row) in rows {
        totals.add(&row.figures);
    }
    totals
}

/// A row with all possible dimensions.
#[derive(ToSchema)]
#[schema(as = StatsRow, rename_all = "camelCase", title = "PostbackFigures")]
#[expect(dead_code, reason = "describes what PostbackStatsOut writes")]
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

/// What the values in a row mean.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what PostbackStatsOut writes")]
struct MeaningRow {
    #[schema(inline)]
    status: crate::choices::DecodedChoice,
    /// Names of the conversion values, if decoded. If there are several, any of them may apply.
    names: Vec<String>,
}

pub(super) type PostbackStatsEnvelope = List<PostbackStatsRowOut, PostbackStatsMeta>;

/// Metadata about a page of figures.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the envelope that List writes")]
pub(super) struct PostbackStatsMeta {
    has_more: bool,
    cursor: Option<String>,
    /// Totals over all pages.
    totals: PostbackFiguresOut,
}

/// Returns example figures for the OpenAPI description.
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
