//! JSON form of a conversion-value configuration.

use crate::body::JsonResponse;
use crate::decimal::number;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::skan::{
    Condition, Configuration, ConversionValue, LockOn, Warning, Window, warnings,
};
use utoipa::ToSchema;

/// An app's conversion-value configuration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "ConversionValueConfiguration")]
pub(crate) struct SkanOut {
    enabled: bool,
    /// Currency of all amounts.
    currency: String,
    /// Whether development-signed postbacks count. The same setting as the app's `skanTestSignals`.
    accept_test_signals: bool,
    /// Version of the configuration; 0 before the first PUT.
    version: i64,
    /// Time of the last change; null if the app was never configured.
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    windows: Vec<WindowOut>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WindowOut {
    /// Number of the conversion window: 0, 1 or 2.
    index: u8,
    enabled: bool,
    lock_on: Option<LockOnOut>,
    values: Vec<ValueOut>,
}

#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LockOnOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    fine_value: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<crate::choices::CoarseChoice>)]
    coarse_value: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ValueOut {
    name: String,
    /// Fine value; only in window 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    fine_value: Option<u8>,
    #[schema(inline, value_type = crate::choices::CoarseChoice)]
    coarse_value: &'static str,
    lock: bool,
    conditions: Vec<ConditionOut>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionOut {
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    min_revenue: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    max_revenue: Option<Box<RawValue>>,
}

/// Warning about a valid but probably unintended setting.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WarningOut {
    field: String,
    code: &'static str,
    message: String,
}

pub(crate) fn condition(condition: &Condition) -> ConditionOut {
    ConditionOut {
        event: condition.event.clone(),
        min_count: condition.min_count,
        max_count: condition.max_count,
        min_revenue: condition.min_revenue.and_then(number),
        max_revenue: condition.max_revenue.and_then(number),
    }
}

fn value(value: &ConversionValue) -> ValueOut {
    ValueOut {
        name: value.name.clone(),
        fine_value: value.fine_value,
        coarse_value: value.coarse_value.as_str(),
        lock: value.lock,
        conditions: value.conditions.iter().map(condition).collect(),
    }
}

pub(crate) fn lock_on(lock: &LockOn) -> LockOnOut {
    let none = LockOnOut::default();
    match lock {
        LockOn::FineValue(fine) => LockOnOut {
            fine_value: Some(*fine),
            ..none
        },
        LockOn::CoarseValue(coarse) => LockOnOut {
            coarse_value: Some(coarse.as_str()),
            ..none
        },
        LockOn::Event(event) => LockOnOut {
            event: Some(event.clone()),
            ..none
        },
    }
}

fn window(window: &Window) -> WindowOut {
    WindowOut {
        index: window.index,
        enabled: window.enabled,
        lock_on: window.lock_on.as_ref().map(lock_on),
        values: window.values.iter().map(value).collect(),
    }
}

impl SkanOut {
    pub(crate) fn of(configuration: &Configuration) -> Self {
        let document = &configuration.document;
        Self {
            enabled: document.enabled,
            currency: document.currency.as_str().to_owned(),
            accept_test_signals: document.accept_test_signals,
            version: configuration.version,
            updated_at: configuration.updated_at.map(rfc3339),
            windows: document.windows.iter().map(window).collect(),
        }
    }
}

/// Builds the response: document, ETag and warnings.
pub(crate) fn answer(configuration: &Configuration) -> JsonResponse<SkanOut> {
    let shape = SkanOut::of(configuration);
    let warning = |warning: Warning| WarningOut {
        field: warning.field,
        code: warning.code,
        message: warning.message,
    };
    let warnings: Vec<WarningOut> = warnings(&configuration.document)
        .into_iter()
        .map(warning)
        .collect();
    let meta = serde_json::json!({ "warnings": warnings });
    JsonResponse::ok(shape)
        .with_meta(meta)
        .with_etag(&configuration.tag())
}

/// The response with a configuration.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that JsonResponse writes")]
pub(crate) struct SkanEnvelope {
    data: SkanOut,
    meta: SkanMeta,
}

/// Metadata about a configuration.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that JsonResponse writes")]
struct SkanMeta {
    warnings: Vec<WarningOut>,
}

/// Returns an example configuration for the OpenAPI description.
pub(crate) fn example() -> serde_json::Value {
    serde_json::json!({
        "data": {
            "enabled": true,
            "currency": "USD",
            "acceptTestSignals": false,
            "version": 1,
            "updatedAt": "2026-01-01T00:00:00.000Z",
            "windows": [{
                "index": 0,
                "enabled": true,
                "lockOn": {"fineValue": 63},
                "values": [
                    {
                        "name": "Paid 50 or more", "fineValue": 63, "coarseValue": "high",
                        "lock": true,
                        "conditions": [{"event": "purchase", "minCount": 1, "minRevenue": 50}]
                    },
                    {
                        "name": "Install", "fineValue": 0, "coarseValue": "low", "lock": false,
                        "conditions": [{"event": "install", "minCount": 1}]
                    }
                ]
            }]
        },
        "meta": {"warnings": []}
    })
}
