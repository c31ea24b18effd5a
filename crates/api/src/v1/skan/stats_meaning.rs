//! Groups postback figures by what their conversion values mean. The meaning changes with the
//! configuration version, so each period is split into segments in which the same versions apply.
//! Afterwards, rows with the same meaning are merged.

use serde_json::{Value, json};
use tributary_domain::report::Period;
use tributary_domain::skan::decode::{
    DecodedValue, DocumentVersion, Interpretation, ReportedValue, decode, split_by_versions,
};
use tributary_store::PostbackStats;

/// Segments that are queried instead of the periods.
pub(super) struct MeaningPeriods {
    versions: Vec<DocumentVersion>,
    /// Segments, each with the index of its period.
    segments: Vec<(usize, Period)>,
}

impl MeaningPeriods {
    /// Splits the periods at version changes.
    pub(super) fn new(periods: &[Period], versions: Vec<DocumentVersion>) -> Self {
        let all = periods.iter().enumerate().flat_map(|(number, period)| {
            let parts = split_by_versions(*period, &versions).into_iter();
            parts.map(move |segment| (number, segment))
        });
        let segments = all.collect();
        Self { versions, segments }
    }

    /// Returns the segments to query.
    pub(super) fn periods(&self) -> Vec<Period> {
        self.segments.iter().map(|(_, segment)| *segment).collect()
    }

    /// Returns the row with the index of its period, and what its value means.
    pub(super) fn decode_row(&self, row: PostbackStats) -> (PostbackStats, Value) {
        let Some((period, (start, _))) = self.segments.get(row.period) else {
            return (row, Value::Null);
        };
        let reported = match (row.fine_value, row.coarse_value) {
            (Some(fine), _) => ReportedValue::Fine(fine),
            (None, Some(coarse)) => ReportedValue::Coarse(coarse),
            (None, None) => ReportedValue::Nothing,
        };
        let window = row.sequence_index.unwrap_or(0);
        let decoded = decode(reported, window, *start, &self.versions);
        let row = PostbackStats {
            period: *period,
            ..row
        };
        (row, meaning_json(&decoded))
    }
}

/// Returns the status and the names. Ambiguous values have no names.
fn meaning_json(decoded: &DecodedValue) -> Value {
    let names: Vec<&str> = match decoded {
        DecodedValue::Decoded(reading) => Interpretation::names(reading).collect(),
        DecodedValue::Withheld | DecodedValue::Undecoded | DecodedValue::Ambiguous(_) => Vec::new(),
    };
    json!({"status": decoded.as_str(), "names": names})
}
