//! Rows of conversion-value configurations.

use super::columns::row;
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use tributary_domain::event::EventSource;
use tributary_domain::skan::decode::DocumentVersion;
use tributary_domain::skan::device::EventSum;
use tributary_domain::skan::{
    CoarseValue, Condition, Configuration, ConversionValue, Document, LockOn, Window,
};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `skan_configurations`: the current state. Earlier versions are in `skan_versions`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct SkanRow {
        pub app_id: [u8; 16],
        pub version: i64,
        pub revision: i64,
        pub document: String,
        pub updated_at: i64,
    }
}

row! {
    /// Count and revenue of a device's events by source, name and window.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct EventSumRow {
        pub source: String,
        pub name: String,
        pub window: i64,
        pub count: i64,
        pub usd_micros: i64,
    }
}

impl EventSumRow {
    /// Reads the sum.
    pub fn read(self, app: AppId) -> Result<EventSum, StoreError> {
        let corrupt = |column| StoreError::corrupt("events", column, app);
        Ok(EventSum {
            source: EventSource::parse(&self.source).ok_or_else(|| corrupt("source"))?,
            name: self.name,
            window: u8::try_from(self.window).map_err(|_| corrupt("event_id"))?,
            count: self.count,
            usd: Amount::from_micros(self.usd_micros),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct StoredDocument {
    enabled: bool,
    currency: String,
    windows: Vec<StoredWindow>,
}

#[derive(Serialize, Deserialize)]
struct StoredWindow {
    index: u8,
    enabled: bool,
    lock_on: Option<StoredLockOn>,
    values: Vec<StoredValue>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredLockOn {
    FineValue(u8),
    CoarseValue(String),
    Event(String),
}

#[derive(Serialize, Deserialize)]
struct StoredValue {
    name: String,
    fine_value: Option<u8>,
    coarse_value: String,
    lock: bool,
    conditions: Vec<StoredCondition>,
}

#[derive(Serialize, Deserialize)]
struct StoredCondition {
    event: String,
    min_count: Option<i64>,
    max_count: Option<i64>,
    min_revenue_micros: Option<i64>,
    max_revenue_micros: Option<i64>,
}

/// Converts a document to JSON, without `acceptTestSignals`, which is stored on the app.
pub fn document_to_json(document: &Document) -> String {
    let condition = |condition: &Condition| StoredCondition {
        event: condition.event.clone(),
        min_count: condition.min_count,
        max_count: condition.max_count,
        min_revenue_micros: condition.min_revenue.map(Amount::micros),
        max_revenue_micros: condition.max_revenue.map(Amount::micros),
    };
    let value = |value: &ConversionValue| StoredValue {
        name: value.name.clone(),
        fine_value: value.fine_value,
        coarse_value: value.coarse_value.as_str().to_owned(),
        lock: value.lock,
        conditions: value.conditions.iter().map(condition).collect(),
    };
    let lock_on = |lock: &LockOn| match lock {
        LockOn::FineValue(fine) => StoredLockOn::FineValue(*fine),
        LockOn::CoarseValue(coarse) => StoredLockOn::CoarseValue(coarse.as_str().to_owned()),
        LockOn::Event(event) => StoredLockOn::Event(event.clone()),
    };
    let window = |window: &Window| StoredWindow {
        index: window.index,
        enabled: window.enabled,
        lock_on: window.lock_on.as_ref().map(lock_on),
        values: window.values.iter().map(value).collect(),
    };
    to_json(&StoredDocument {
        enabled: document.enabled,
        currency: document.currency.as_str().to_owned(),
        windows: document.windows.iter().map(window).collect(),
    })
}

/// Reads the JSON of a document. `accept_test_signals` comes from the app.
fn document_from_json(
    app: AppId,
    text: &str,
    accept_test_signals: bool,
) -> Result<Document, StoreError> {
    const TABLE: &str = "skan_configurations";
    let corrupt = || StoreError::corrupt(TABLE, "document", app);
    let stored: StoredDocument = from_json(TABLE, "document", app, text)?;
    let coarse = |text: &str| CoarseValue::parse(text).ok_or_else(corrupt);
    let condition = |stored: StoredCondition| Condition {
        event: stored.event,
        min_count: stored.min_count,
        max_count: stored.max_count,
        min_revenue: stored.min_revenue_micros.map(Amount::from_micros),
        max_revenue: stored.max_revenue_micros.map(Amount::from_micros),
    };
    let value = |stored: StoredValue| {
        Ok::<_, StoreError>(ConversionValue {
            name: stored.name,
            fine_value: stored.fine_value,
            coarse_value: coarse(&stored.coarse_value)?,
            lock: stored.lock,
            conditions: stored.conditions.into_iter().map(condition).collect(),
        })
    };
    let lock_on = |stored| match stored {
        StoredLockOn::FineValue(fine) => Ok(LockOn::FineValue(fine)),
        StoredLockOn::CoarseValue(text) => coarse(&text).map(LockOn::CoarseValue),
        StoredLockOn::Event(event) => Ok(LockOn::Event(event)),
    };
    let window = |stored: StoredWindow| {
        Ok::<_, StoreError>(Window {
            index: stored.index,
            enabled: stored.enabled,
            lock_on: stored.lock_on.map(lock_on).transpose()?,
            values: stored
                .values
                .into_iter()
                .map(value)
                .collect::<Result<_, _>>()?,
        })
    };
    Ok(Document {
        enabled: stored.enabled,
        currency: Currency::from_stored(&stored.currency).ok_or_else(corrupt)?,
        accept_test_signals,
        windows: stored
            .windows
            .into_iter()
            .map(window)
            .collect::<Result<_, _>>()?,
    })
}

impl SkanRow {
    /// Converts a configuration to columns.
    pub fn write(app: AppId, configuration: &Configuration) -> Self {
        Self {
            app_id: *app.as_bytes(),
            version: configuration.version,
            revision: configuration.revision,
            document: document_to_json(&configuration.document),
            updated_at: configuration.updated_at.map_or(0, Timestamp::as_millis),
        }
    }

    /// Reads the configuration. If there is no row, returns the configuration of an app that was
    /// never configured.
    pub fn read(
        row: Option<Self>,
        app: AppId,
        accept_test_signals: bool,
    ) -> Result<Configuration, StoreError> {
        let Some(row) = row else {
            let mut configuration = Configuration::never_configured();
            configuration.document.accept_test_signals = accept_test_signals;
            return Ok(configuration);
        };
        Ok(Configuration {
            document: document_from_json(app, &row.document, accept_test_signals)?,
            version: row.version,
            revision: row.revision,
            updated_at: Some(Timestamp::from_millis(row.updated_at)),
        })
    }
}

row! {
    /// A row of `skan_versions`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct SkanVersionRow {
        pub version: i64,
        pub applies_from: i64,
        pub document: String,
    }
}

impl SkanVersionRow {
    /// Reads all versions. The current version gets its current names, because renaming creates no
    /// new version.
    pub fn read_all(
        rows: Vec<Self>,
        app: AppId,
        present: &Configuration,
    ) -> Result<Vec<DocumentVersion>, StoreError> {
        let read = |row: Self| {
            let document = if row.version == present.version {
                present.document.clone()
            } else {
                document_from_json(app, &row.document, false)?
            };
            Ok(DocumentVersion {
                number: row.version,
                applies_from: Timestamp::from_millis(row.applies_from),
                document,
            })
        };
        rows.into_iter().map(read).collect()
    }
}
