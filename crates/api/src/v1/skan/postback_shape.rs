//! JSON form of a postback.

use crate::decimal::number;
use crate::page::List;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::decode::{
    DecodedValue, DocumentVersion, Interpretation, ReportedValue, decode,
};
use tributary_store::StoredPostback;
use utoipa::ToSchema;

/// A SKAdNetwork or AdAttributionKit postback.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Postback")]
pub(super) struct PostbackOut {
    id: String,
    #[schema(inline, value_type = crate::choices::ProtocolChoice)]
    protocol: &'static str,
    /// SKAdNetwork version; null for AdAttributionKit.
    version: Option<String>,
    #[schema(inline, value_type = crate::choices::SignatureChoice)]
    signature: &'static str,
    /// True if the postback counts in reports.
    counted: bool,
    /// True if an earlier postback has the same id but different content. A conflicting postback
    /// never counts.
    conflicting: bool,
    ad_network_id: String,
    /// Source identifier of two to four digits; only since SKAdNetwork 4.0.
    source_identifier: Option<String>,
    /// Campaign id; only before SKAdNetwork 4.0.
    campaign_id: Option<i64>,
    transaction_id: String,
    /// Fine value from 0 to 63. Null means that it was withheld or never set, which is not the same
    /// as 0.
    fine_value: Option<u8>,
    #[schema(inline, value_type = Option<crate::choices::CoarseChoice>)]
    coarse_value: Option<&'static str>,
    /// Number of the conversion window: 0, 1 or 2.
    sequence_index: u8,
    did_win: bool,
    redownload: Option<bool>,
    #[schema(inline, value_type = crate::choices::ConversionTypeChoice)]
    conversion_type: &'static str,
    /// App Store id of the app that showed the ad; 0 for test postbacks.
    source_app_id: Option<i64>,
    source_domain: Option<String>,
    country_code: Option<String>,
    #[schema(inline)]
    decoded: DecodedOut,
    #[schema(format = DateTime)]
    received_at: String,
}

/// What the value means in the configurations that the device may have used.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DecodedOut {
    #[schema(inline, value_type = crate::choices::DecodedChoice)]
    status: &'static str,
    /// Possible meanings, newest configuration version first. There is one if the value is decoded,
    /// and there are several if it is ambiguous.
    #[schema(inline)]
    readings: Vec<ReadingOut>,
}

/// What the value means in one version of the configuration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReadingOut {
    version: i64,
    window: u8,
    /// Names of the conversion values that use this fine or coarse value. If there are several, any
    /// of them may apply.
    names: Vec<String>,
    /// Events in the conditions of these conversion values.
    events: Vec<String>,
    /// Revenue range; null if no condition uses revenue.
    #[schema(inline)]
    revenue: Option<RevenueRangeOut>,
}

/// Revenue range: at least `min`, less than `max`.
#[derive(Debug, Serialize, ToSchema)]
struct RevenueRangeOut {
    #[schema(value_type = f64)]
    min: Option<Box<RawValue>>,
    #[schema(value_type = Option<f64>)]
    max: Option<Box<RawValue>>,
    currency: String,
}

fn reading(reading: &Interpretation) -> ReadingOut {
    let conditions = reading.values.iter().flat_map(|value| &value.conditions);
    let mut events: Vec<String> = Vec::new();
    for condition in conditions {
        if !events.contains(&condition.event) {
            events.push(condition.event.clone());
        }
    }
    ReadingOut {
        version: reading.version,
        window: reading.window,
        names: reading.names().map(str::to_owned).collect(),
        events,
        revenue: reading.revenue().map(|range| RevenueRangeOut {
            min: number(range.min),
            max: range.max.and_then(number),
            currency: reading.currency.as_str().to_owned(),
        }),
    }
}

impl DecodedOut {
    fn of(decoded: &DecodedValue) -> Self {
        let readings = match decoded {
            DecodedValue::Withheld | DecodedValue::Undecoded => Vec::new(),
            DecodedValue::Decoded(one) => vec![reading(one)],
            DecodedValue::Ambiguous(several) => several.iter().map(reading).collect(),
        };
        Self {
            status: decoded.as_str(),
            readings,
        }
    }
}

impl PostbackOut {
    /// Builds the JSON form, decoded with all versions of the configuration.
    pub(super) fn of(
        stored: StoredPostback,
        versions: &[DocumentVersion],
        accept_test_signals: bool,
    ) -> Self {
        let postback = stored.parsed.postback;
        let (reported, window) = (ReportedValue::of(&postback), postback.sequence_index);
        let decoded = decode(reported, window, stored.received_at, versions);
        Self {
            id: stored.id.to_string(),
            protocol: postback.protocol.as_str(),
            version: postback.version,
            signature: stored.parsed.signature.as_str(),
            counted: stored.counting.counts(accept_test_signals),
            conflicting: stored.conflicting,
            ad_network_id: postback.ad_network_id,
            source_identifier: postback.source_identifier,
            campaign_id: postback.campaign_id,
            transaction_id: postback.transaction_id,
            fine_value: postback.fine_value,
            coarse_value: postback.coarse_value.map(CoarseValue::as_str),
            sequence_index: postback.sequence_index,
            did_win: postback.did_win,
            redownload: postback.redownload,
            conversion_type: postback.conversion_type.as_str(),
            source_app_id: postback.source_app_id,
            source_domain: postback.source_domain,
            country_code: postback.country_code,
            decoded: DecodedOut::of(&decoded),
            received_at: rfc3339(stored.received_at),
        }
    }
}

pub(super) type PostbackListEnvelope = List<PostbackOut>;

/// Returns an example postback for the OpenAPI description.
pub(super) fn example() -> serde_json::Value {
    serde_json::json!({
        "id": "pbk_01kdvq0000e8nb2k3m4p5q6r7s", "protocol": "skadnetwork", "version": "4.0", "signature": "valid",
        "counted": true, "conflicting": false, "adNetworkId": "example123.skadnetwork", "sourceIdentifier": "5239",
        "campaignId": null, "transactionId": "6aafb7a5-0170-41b5-bbe4-fe71dedf1e28", "fineValue": 63,
        "coarseValue": null, "sequenceIndex": 0, "didWin": true, "redownload": false, "conversionType": "download",
        "sourceAppId": 1_234_567_891, "sourceDomain": null, "countryCode": "US",
        "decoded": {
            "status": "decoded",
            "readings": [{
                "version": 7, "window": 0, "names": ["Paid 50 or more"], "events": ["purchase"],
                "revenue": {"min": 50, "max": null, "currency": "USD"},
            }],
        },
        "receivedAt": "2026-01-01T00:00:00.000Z",
    })
}
