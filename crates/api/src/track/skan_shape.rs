//! JSON form of the conversion-value configuration for devices.

use crate::decimal::number;
use crate::v1::skan::shape::{ConditionOut, LockOnOut, condition, lock_on};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tributary_domain::exchange::RateValue;
use tributary_domain::skan::device::DeviceDocument;
use tributary_domain::skan::evaluate::{DOCUMENT_AGE_MAX, ServerEvents};
use tributary_domain::skan::{ConversionValue, Window};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::digest::{Digest, hex};
use utoipa::ToSchema;

/// Number of digest bytes in the ETag: enough to distinguish the documents for one device.
const TAG_BYTES: usize = 16;

/// The data that a device needs to compute its conversion value.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "DeviceConversionValues")]
pub(super) struct DeviceSkanOut {
    /// Version of the configuration; 0 if the app was never configured.
    version: i64,
    enabled: bool,
    /// Currency of all amounts in this document.
    currency: String,
    /// Maximum age of this document in seconds. The device must fetch an older document again
    /// before it evaluates events.
    max_age_seconds: u64,
    /// Exchange rates by currency code: units of `currency` per unit of that currency. Empty if no
    /// condition uses revenue.
    rates: BTreeMap<String, String>,
    /// Enabled windows.
    windows: Vec<DeviceWindowOut>,
    /// This device's events that only the server knows about, by event name. Add their counts and
    /// revenue to the device's own.
    server: BTreeMap<String, Vec<ServerEventsOut>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeviceWindowOut {
    /// Number of the conversion window: 0, 1 or 2.
    index: u8,
    lock_on: Option<LockOnOut>,
    /// Values by priority: the first value whose conditions all hold wins.
    values: Vec<DeviceValueOut>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeviceValueOut {
    /// Fine value; only in window 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    fine_value: Option<u8>,
    #[schema(inline, value_type = crate::choices::CoarseChoice)]
    coarse_value: &'static str,
    lock: bool,
    conditions: Vec<ConditionOut>,
}

/// Events with the same name in the same conversion window.
#[derive(Debug, Serialize, ToSchema)]
struct ServerEventsOut {
    count: i64,
    /// Sum of the events' revenue in `currency`.
    #[schema(value_type = f64)]
    revenue: Option<Box<RawValue>>,
    /// Number of the conversion window: 0, 1 or 2.
    window: u8,
}

fn value(value: &ConversionValue) -> DeviceValueOut {
    DeviceValueOut {
        fine_value: value.fine_value,
        coarse_value: value.coarse_value.as_str(),
        lock: value.lock,
        conditions: value.conditions.iter().map(condition).collect(),
    }
}

fn window(window: &Window) -> DeviceWindowOut {
    DeviceWindowOut {
        index: window.index,
        lock_on: window.lock_on.as_ref().map(lock_on),
        values: window.values.iter().map(value).collect(),
    }
}

fn by_name(events: &[ServerEvents]) -> BTreeMap<String, Vec<ServerEventsOut>> {
    let mut all: BTreeMap<String, Vec<ServerEventsOut>> = BTreeMap::new();
    for one in events {
        let shown = ServerEventsOut {
            count: one.count,
            revenue: number(one.revenue),
            window: one.window,
        };
        all.entry(one.event.clone()).or_default().push(shown);
    }
    all
}

impl DeviceSkanOut {
    pub(super) fn of(device: &DeviceDocument) -> Self {
        let (configuration, document) = (&device.configuration, &device.configuration.document);
        let rate = |(currency, rate): &(Currency, RateValue)| {
            (currency.as_str().to_owned(), rate.to_string())
        };
        Self {
            version: configuration.version,
            enabled: document.enabled,
            currency: document.currency.as_str().to_owned(),
            max_age_seconds: DOCUMENT_AGE_MAX.as_secs(),
            rates: device.rates.iter().map(rate).collect(),
            windows: document.windows.iter().map(window).collect(),
            server: by_name(&device.server),
        }
    }

    /// Returns an ETag for the whole content.
    pub(super) fn tag(&self) -> String {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        hex(&Digest::of(&bytes).as_bytes()[..TAG_BYTES])
    }
}

/// Returns an example document for the OpenAPI description.
pub(super) fn example() -> serde_json::Value {
    serde_json::json!({
        "version": 7,
        "enabled": true,
        "currency": "USD",
        "maxAgeSeconds": 604_800,
        "rates": {"EUR": "1.0872", "JPY": "0.0067"},
        "windows": [{
            "index": 0,
            "lockOn": null,
            "values": [
                {
                    "fineValue": 63, "coarseValue": "high", "lock": true,
                    "conditions": [{"event": "purchase", "minRevenue": 50}]
                },
                {
                    "fineValue": 0, "coarseValue": "low", "lock": false,
                    "conditions": [{"event": "install", "minCount": 1}]
                }
            ]
        }],
        "server": {"purchase": [{"count": 1, "revenue": 9.99, "window": 0}]}
    })
}
