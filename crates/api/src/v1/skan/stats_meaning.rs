//! Figures told apart by what their values mean. A value means the same as long as the same versions may have made it, so
//! the figures are asked for in stretches of time, and what means the same is put together again.

use serde_json::{Value, json};
use tributary_domain::report::Period;
use tributary_domain::skan::decode::{Decoded, Reading, Reported, Version, decode, stretches};
use tributary_store::PostbackStats;

/// Stretches that are asked for instead of the periods.
pub(super) struct Meanings {
    versions: Vec<Version>,
    /// Each with the number of its period.
    stretches: Vec<(usize, Period)>,
}

impl Meanings {
    /// Of these periods, by the versions there have been.
    pub(super) fn new(periods: &[Period], versions: Vec<Version>) -> Self {
        let all = periods.iter().enumerate().flat_map(|(number, period)| {
            let parts = stretches(*period, &versions).into_iter();
            parts.map(move |stretch| (number, stretch))
        });
        let stretches = all.collect();
        Self {
            versions,
            stretches,
        }
    }

    /// What is asked for.
    pub(super) fn periods(&self) -> Vec<Period> {
        self.stretches.iter().map(|(_, stretch)| *stretch).collect()
    }

    /// The row with the number of its period, and what its value means.
    pub(super) fn read(&self, row: PostbackStats) -> (PostbackStats, Value) {
        let Some((period, (begins, _))) = self.stretches.get(row.period) else {
            return (row, Value::Null);
        };
        let reported = match (row.fine_value, row.coarse_value) {
            (Some(fine), _) => Reported::Fine(fine),
            (None, Some(coarse)) => Reported::Coarse(coarse),
            (None, None) => Reported::Nothing,
        };
        let window = row.sequence_index.unwrap_or(0);
        let decoded = decode(reported, window, *begins, &self.versions);
        let row = PostbackStats {
            period: *period,
            ..row
        };
        (row, shown(&decoded))
    }
}

/// Names where there is one meaning. What may be several is credited to none of them.
fn shown(decoded: &Decoded) -> Value {
    let names: Vec<&str> = match decoded {
        Decoded::Decoded(reading) => Reading::names(reading).collect(),
        Decoded::Withheld | Decoded::Undecoded | Decoded::Ambiguous(_) => Vec::new(),
    };
    json!({"status": decoded.as_str(), "names": names})
}
