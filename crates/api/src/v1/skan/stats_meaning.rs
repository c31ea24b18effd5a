//! Grouping of figures by the meaning of their values. The meaning changes with the configuration
//! version, so each period is split into segments with the same versions. Rows with the same
//! meaning are merged again.

use serde_json::{Value, json};
use tributary_domain::report::Period;
use tributary_domain::skan::decode::{
    DecodedValue, Interpretation, ReportedValue, Version, decode, split_by_versions,
};
use tributary_store::PostbackStats;

/// Segments that are queried in place of the periods.
pub(super) struct MeaningPeriods {
    versions: Vec<Version>,
    /// Segments with the index of their period.
    segments: Vec<(usize, Period)>,
}

impl MeaningPeriods {
    /// Splits the periods at version changes.
    pub(super) fn new(periods: &[Period], versions: Vec<Version>) -> Self {
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

    /// Returns the row with the index of its period, and the meaning of its value.
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

/// Returns status and names. Ambiguous values have no names.
fn meaning_json(decoded: &DecodedValue) -> Value {
    let names: Vec<&str> = match decoded {
        DecodedValue::Decoded(reading) => Interpretation::names(reading).collect(),
        DecodedValue::Withheld | DecodedValue::Undecoded | DecodedValue::Ambiguous(_) => Vec::new(),
    };
    json!({"status": decoded.as_str(), "names": names})
}
