//! Rows of traffic checks.

use super::columns::row;
use crate::StoreError;
use tributary_domain::report::anomaly::{TrafficAnomaly, TrafficFigure, TrafficSubject};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `traffic_anomalies`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct AnomalyRow {
        pub app_id: [u8; 16],
        pub kind: String,
        pub subject: String,
        pub figure: String,
        pub hour: i64,
        pub value: i64,
        pub expected: i64,
        pub ended_at: Option<i64>,
    }
}

impl AnomalyRow {
    /// Converts an anomaly to columns.
    pub fn write(app: AppId, anomaly: &TrafficAnomaly) -> Self {
        Self {
            app_id: *app.as_bytes(),
            kind: anomaly.subject.kind().to_owned(),
            subject: anomaly.subject.id(),
            figure: anomaly.figure.as_str().to_owned(),
            hour: anomaly.hour.as_millis(),
            value: anomaly.value,
            expected: anomaly.expected,
            ended_at: anomaly.ended_at.map(Timestamp::as_millis),
        }
    }

    /// Reads the anomaly.
    pub fn read(self) -> Result<TrafficAnomaly, StoreError> {
        let id = AppId::from_bytes(self.app_id);
        let corrupt = |column| StoreError::corrupt("traffic_anomalies", column, id);
        Ok(TrafficAnomaly {
            subject: TrafficSubject::parse(&self.kind, &self.subject)
                .ok_or_else(|| corrupt("subject"))?,
            figure: TrafficFigure::parse(&self.figure).ok_or_else(|| corrupt("figure"))?,
            hour: Timestamp::from_millis(self.hour),
            value: self.value,
            expected: self.expected,
            ended_at: self.ended_at.map(Timestamp::from_millis),
        })
    }
}
