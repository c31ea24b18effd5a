//! Figures told apart by what their values mean. A value means the same as long as the same versions may have made it, so
//! the figures are asked for in stretches of time, and what means the same is put together again.

use serde_json::{Value, json};
use tributary_domain::report::Period;
use tributary_domain::skan::decode::{
    DecodedValue, Interpretation, ReportedValue, Version, decode, split_by_versions,
};
use tributary_store::PostbackStats;

/// Stretches that are asked for instead of the periods.
pub(super) struct MeaningPeriods {
    versions: Vec<Version>,
    /// Each with the number of its period.
    segments: Vec<(usize, Period)>,
}

impl MeaningPeriods {
    /// Of these periods, by the versions there have been.
    pub(super) fn new(periods: &[Period], versions: Vec<Version>) -> Self {
        let all = periods.iter().enumerate().flat_map(|(number, period)| {
            let parts = split_by_versions(*period, &versions).into_iter();
            parts.map(move |stretch| (number, stretch))
        });
        let stretches = all.collect();
        Self {
            versions,
            segments: stretches,
        }
    }

    /// What is asked for.
    pub(super) fn periods(&self) -> Vec<Period> {
        self.segments.iter().map(|(_, stretch)| *stretch).collect()
    }

    /// The row with the number of its period, and what its value means.
    pub(super) fn decode_row(&self, row: PostbackStats) -> (PostbackStats, Value) {
        let Some((period, (begins, _))) = self.segments.get(row.period) else {
            return (row, Value::Null);
        };
        let reported = match (row.fine_value, row.coarse_value) {
            (Some(fine), _) => ReportedValue::Fine(fine),
            (None, Some(coarse)) => ReportedValue::Coarse(coarse),
            (None, None) => ReportedValue::Nothing,
        };
        let window = row.sequence_index.unwrap_or(0);
        let decoded = decode(reported, window, *begins, &self.versions);
        let row = PostbackStats {
            period: *period,
            ..row
        };
        (row, meaning_json(&decoded))
    }
}

/// Names where there is one meaning. What may be several is credited to none of them.
fn meaning_json(decoded: &DecodedValue) -> Value {
    let names: Vec<&str> = match decoded {
        DecodedValue::Decoded(reading) => Interpretation::names(reading).collect(),
        DecodedValue::Withheld | DecodedValue::Undecoded | DecodedValue::Ambiguous(_) => Vec::new(),
    };
    json!({"status": decoded.as_str(), "names": names})
}
