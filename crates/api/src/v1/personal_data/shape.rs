//! Description of the document for OpenAPI. `store::personal_data` writes it.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// A person's data.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the document that the store writes")]
pub(super) struct PersonalDataEnvelope {
    #[schema(inline)]
    data: PersonalDataOut,
    #[schema(inline)]
    meta: PersonalDataMeta,
}

/// Everything that is stored about a person. Fields are added over time.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the document that the store writes")]
struct PersonalDataOut {
    #[schema(inline)]
    subject: ExportedSubjectOut,
    #[schema(inline)]
    devices: PersonalDataSectionOut,
    #[schema(inline)]
    user_links: PersonalDataSectionOut,
    #[schema(inline)]
    clicks: PersonalDataSectionOut,
    #[schema(inline)]
    subscriptions: PersonalDataSectionOut,
    #[schema(inline)]
    events: PersonalDataSectionOut,
    /// What the document does not contain, and why.
    #[schema(inline)]
    not_included: Vec<NotIncludedOut>,
    /// False if the person has so many clicks or payments that some are missing.
    complete: bool,
    /// Number of events in the document.
    event_count: u64,
}

/// Whose data was exported, and when.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the document that the store writes")]
struct ExportedSubjectOut {
    app_id: String,
    /// `live` or `test`.
    environment: String,
    device_id: Option<String>,
    user_id: Option<String>,
    #[schema(format = DateTime)]
    exported_at: String,
    /// Id of the export's entry in the audit log.
    export_id: String,
    /// Number of devices that claimed the user without proof.
    other_devices: u64,
}

/// A section of the document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the document that the store writes")]
struct PersonalDataSectionOut {
    #[schema(inline)]
    about: PersonalDataAboutOut,
    items: Vec<Map<String, Value>>,
}

/// What a section contains, where it comes from, and how long it is kept. Retention periods are named
/// by their settings.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the document that the store writes")]
struct PersonalDataAboutOut {
    contents: String,
    source: String,
    retention: String,
}

/// Data that the document does not contain.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the document that the store writes")]
struct NotIncludedOut {
    what: String,
    reason: String,
}

/// Metadata for the operator.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the document that the store writes")]
struct PersonalDataMeta {
    /// Devices that claimed the user, but are not proven to be the user's. Export each by its id after
    /// you have checked whose it is.
    #[schema(inline)]
    other_devices: Vec<OtherDeviceOut>,
}

/// A device that is left out.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the document that the store writes")]
struct OtherDeviceOut {
    device_id: String,
    /// `unsigned`: several devices have the user, and this claim is not signed. `not_used`: the claim
    /// is not used.
    reason: String,
}

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> Value {
    let section = |items: Value| {
        json!({
            "about": {
                "contents": "Taps on links that led to the install or to a visit of the website.",
                "source": "The browser that followed the link.",
                "retention": "retention.click_address_days"
            },
            "items": items
        })
    };
    json!({
        "data": {
            "subject": {
                "appId": "app_01k9z3v7q8e4r9m2x5c6b7n8d0",
                "environment": "live",
                "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
                "userId": null,
                "exportedAt": "2026-01-01T00:00:00.000Z",
                "exportId": "aud_01k9z3v7q8e4r9m2x5c6b7n8d7",
                "otherDevices": 0
            },
            "devices": section(json!([{"deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff"}])),
            "userLinks": section(json!([])),
            "clicks": section(json!([])),
            "subscriptions": section(json!([])),
            "events": section(json!([{"eventId": "e1", "name": "purchase"}])),
            "notIncluded": [{
                "what": "Figures in reports",
                "reason": "They are sums over all people."
            }],
            "complete": true,
            "eventCount": 1
        },
        "meta": {"otherDevices": []}
    })
}
