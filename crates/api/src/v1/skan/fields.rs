//! The document of a PUT: types here, rules in the domain.

use crate::fields::{Fields, amount, flag, integer, text, text_as, wrong_type};
use crate::json::Node;
use tributary_domain::skan::{
    Document, Draft, DraftCondition, DraftLockOn, DraftValue, DraftWindow, validate,
};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::given::Given;
use utoipa::ToSchema;

pub(super) fn read_document(fields: &mut Fields<'_>) -> Option<Document> {
    let draft = read_draft(fields);
    fields.check(|faults| validate(draft, faults))
}

/// The fields alone.
pub(super) fn read_draft(fields: &mut Fields<'_>) -> Draft {
    let draft = Draft {
        enabled: fields.given("enabled", flag),
        currency: fields.given("currency", text_as(Currency::parse)),
        accept_test_signals: fields.given("acceptTestSignals", flag),
        windows: fields.items("windows", |node, path, faults| {
            item(node, path, faults, window)
        }),
    };
    // Set by the service; a document that was read may be sent back as it is.
    // Ignored, as long as it could be one.
    let _ignored = fields.given("version", integer);
    let _ignored = fields.given("updatedAt", text);
    draft
}

/// An item of a list that has to be an object; null is as good as absent.
pub(super) fn item<T>(
    node: &Node,
    path: String,
    faults: &mut Faults,
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> Given<T> {
    match node {
        Node::Null => Given::Absent,
        Node::Object(_) => {
            let mut fields = Fields::of_item(node, path, faults);
            let value = read(&mut fields);
            fields.finish();
            Given::Value(value)
        }
        _ => {
            faults.add(path, wrong_type("an object"));
            Given::Faulty
        }
    }
}

fn window(fields: &mut Fields<'_>) -> DraftWindow {
    DraftWindow {
        index: fields.given("index", integer),
        enabled: fields.given("enabled", flag),
        lock_on: fields.object("lockOn", lock_on),
        values: fields.items("values", |node, path, faults| {
            item(node, path, faults, value)
        }),
    }
}

fn lock_on(fields: &mut Fields<'_>) -> DraftLockOn {
    DraftLockOn {
        fine_value: fields.given("fineValue", integer),
        coarse_value: fields.given("coarseValue", text),
        event: fields.given("event", text),
    }
}

fn value(fields: &mut Fields<'_>) -> DraftValue {
    DraftValue {
        name: fields.given("name", text),
        fine_value: fields.given("fineValue", integer),
        coarse_value: fields.given("coarseValue", text),
        lock: fields.given("lock", flag),
        conditions: fields.items("conditions", |node, path, faults| {
            item(node, path, faults, condition)
        }),
    }
}

fn condition(fields: &mut Fields<'_>) -> DraftCondition {
    DraftCondition {
        event: fields.given("event", text),
        min_count: fields.given("minCount", integer),
        max_count: fields.given("maxCount", integer),
        min_revenue: fields.given("minRevenue", amount),
        max_revenue: fields.given("maxRevenue", amount),
    }
}

/// The whole document. `version` and `updatedAt` are set by the service and ignored.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", title = "ConversionValueDocument", example = json!({
    "enabled": true,
    "currency": "USD",
    "acceptTestSignals": false,
    "windows": [
        {
            "index": 0, "enabled": true, "lockOn": {"fineValue": 63},
            "values": [
                {
                    "name": "Paid 50 and more", "fineValue": 63, "coarseValue": "high", "lock": true,
                    "conditions": [{"event": "purchase", "minCount": 1, "minRevenue": 50.00}]
                },
                {
                    "name": "Paid", "fineValue": 40, "coarseValue": "high",
                    "conditions": [{"event": "purchase", "minCount": 1}]
                },
                {
                    "name": "Install", "fineValue": 0, "coarseValue": "low",
                    "conditions": [{"event": "install", "minCount": 1}]
                }
            ]
        },
        {
            "index": 1, "enabled": true,
            "values": [{
                "name": "Paid", "coarseValue": "high",
                "conditions": [{"event": "purchase", "minCount": 1}]
            }]
        }
    ]
}))]
#[expect(
    dead_code,
    reason = "describes what read_document reads; a test compares the two"
)]
pub(super) struct SkanDocument {
    enabled: Option<bool>,
    /// A current ISO 4217 code; the default is USD.
    currency: Option<String>,
    accept_test_signals: Option<bool>,
    /// Ignored.
    version: Option<i64>,
    /// Ignored.
    updated_at: Option<String>,
    /// A missing index is a disabled window.
    #[schema(max_items = 3)]
    windows: Option<Vec<SkanWindow>>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see SkanDocument")]
struct SkanWindow {
    /// 0, 1 or 2; each at most once.
    #[schema(minimum = 0, maximum = 2)]
    index: i64,
    enabled: Option<bool>,
    lock_on: Option<SkanLockOn>,
    /// In order of priority: the first whose conditions all hold wins.
    #[schema(max_items = 128)]
    values: Option<Vec<SkanValue>>,
}

/// Exactly one of the three.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see SkanDocument")]
struct SkanLockOn {
    /// Window 0 only.
    #[schema(minimum = 0, maximum = 63)]
    fine_value: Option<i64>,
    #[schema(inline)]
    coarse_value: Option<crate::choices::CoarseChoice>,
    #[schema(min_length = 1, max_length = 100)]
    event: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see SkanDocument")]
struct SkanValue {
    /// Unique in its window.
    #[schema(min_length = 1, max_length = 50)]
    name: String,
    /// Required in window 0, forbidden in 1 and 2.
    #[schema(minimum = 0, maximum = 63)]
    fine_value: Option<i64>,
    #[schema(inline)]
    coarse_value: crate::choices::CoarseChoice,
    lock: Option<bool>,
    /// All must hold.
    #[schema(min_items = 1, max_items = 3)]
    conditions: Vec<SkanCondition>,
}

/// At least one of the four bounds.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see SkanDocument")]
struct SkanCondition {
    /// Any event name, standard (`install`, `sign_up`, `start_trial`, `subscribe`, `purchase`, …) or custom.
    #[schema(min_length = 1, max_length = 100)]
    event: String,
    /// Inclusive.
    #[schema(minimum = 0)]
    min_count: Option<i64>,
    /// Inclusive.
    #[schema(minimum = 0)]
    max_count: Option<i64>,
    /// Inclusive; a number or a decimal string with at most 6 decimals.
    #[schema(inline, value_type = Option<crate::choices::AmountChoice>)]
    min_revenue: Option<f64>,
    /// Exclusive.
    #[schema(inline, value_type = Option<crate::choices::AmountChoice>)]
    max_revenue: Option<f64>,
}
