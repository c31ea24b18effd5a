//! JSON form of unusual traffic.

use crate::decimal::number;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::report::anomaly::{TrafficAnomaly, TrafficFigure, TrafficSubject};
use tributary_domain::vocabulary::money::{Amount, MICROS_PER_UNIT};
use utoipa::ToSchema;

/// An hour with far more traffic than the weeks before it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnomalyOut {
    /// What the figure is about: `app`, `link` or `address` (one address range).
    subject: &'static str,
    /// Link id, or the fingerprint of the address range, which changes daily; null for the app.
    subject_id: Option<String>,
    /// `installs`, `events` or `revenue` (in US dollars).
    figure: &'static str,
    /// Start of the hour.
    #[schema(format = DateTime)]
    hour: String,
    /// Value in the hour.
    #[schema(value_type = f64)]
    value: Option<Box<RawValue>>,
    /// Usual value.
    #[schema(value_type = f64)]
    expected: Option<Box<RawValue>>,
    /// Start of the first normal hour; null while traffic is unusual.
    #[schema(format = DateTime)]
    ended_at: Option<String>,
}

impl From<TrafficAnomaly> for AnomalyOut {
    fn from(anomaly: TrafficAnomaly) -> Self {
        let written = |value: i64| match anomaly.figure {
            TrafficFigure::Revenue => number(Amount::from_micros(value)),
            TrafficFigure::Installs | TrafficFigure::Events => {
                number(Amount::from_micros(value.saturating_mul(MICROS_PER_UNIT)))
            }
        };
        let is_app = anomaly.subject == TrafficSubject::App;
        Self {
            subject: anomaly.subject.kind(),
            subject_id: (!is_app).then(|| anomaly.subject.id()),
            figure: anomaly.figure.as_str(),
            hour: rfc3339(anomaly.hour),
            value: written(anomaly.value),
            expected: written(anomaly.expected),
            ended_at: anomaly.ended_at.map(rfc3339),
        }
    }
}
