//! Request body of PUT. Types are checked here; the domain checks the rules.

use crate::fields::{
    FieldKind, Fields, InputValue, amount, described_body, flag, integer, objects, text, text_as,
};
use tributary_domain::skan::{
    CONDITIONS_PER_VALUE_MAX, CONDITIONS_PER_VALUE_MIN, CoarseValue, Document, Draft,
    DraftCondition, DraftLockOn, DraftValue, DraftWindow, EVENT_CHARS_MAX, FINE_VALUE_MAX,
    VALUE_NAME_CHARS_MAX, VALUES_PER_WINDOW_MAX, WINDOW_INDEX_MAX, WINDOWS_MAX, validate,
};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::Problem;

described_body! {
    /// The complete document. The service sets `version` and `updatedAt` and ignores them in
    /// requests.
    pub(super) SkanDocument("ConversionValueDocument") = read_draft
}

pub(super) fn read_document(fields: &mut Fields<'_>) -> Option<Document> {
    let draft = read_draft(fields);
    fields.check(|faults| validate(draft, faults))
}

/// Reads the fields without validating the document.
pub(super) fn read_draft(fields: &mut Fields<'_>) -> Draft {
    let currency = text_as(Currency::parse);
    let windows = objects()
        .size(0..=WINDOWS_MAX)
        .about("Windows. A window whose index is missing is disabled.");
    let draft = Draft {
        enabled: fields.input("enabled", flag()),
        currency: fields.input(
            "currency",
            currency.about("Current ISO 4217 code. Default: USD."),
        ),
        accept_test_signals: fields.input("acceptTestSignals", flag()),
        windows: fields.items("windows", windows, window),
    };
    // Set by the service. Accepted here, so that clients can send a document back unchanged.
    let _ignored = fields.input("version", integer().about("Ignored."));
    let _ignored = fields.input("updatedAt", text().about("Ignored."));
    draft
}

fn window(fields: &mut Fields<'_>) -> DraftWindow {
    let index = integer()
        .within(0..=i64::from(WINDOW_INDEX_MAX))
        .about("0, 1 or 2, each at most once.");
    let values = objects()
        .size(0..=VALUES_PER_WINDOW_MAX)
        .about("Values by priority: the first value whose conditions all hold wins.");
    DraftWindow {
        index: fields.required_input("index", index),
        enabled: fields.input("enabled", flag()),
        lock_on: fields.object(
            "lockOn",
            "Condition that locks the window: exactly one of the three fields.",
            lock_on,
        ),
        values: fields.items("values", values, value),
    }
}

fn fine() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<i64, Problem>> {
    integer().within(0..=i64::from(FINE_VALUE_MAX))
}

fn coarse() -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    let words = CoarseValue::ALL.iter().map(|one| one.as_str());
    text().words(words).about("A coarse conversion value.")
}

fn lock_on(fields: &mut Fields<'_>) -> DraftLockOn {
    DraftLockOn {
        fine_value: fields.input("fineValue", fine().about("Only in window 0.")),
        coarse_value: fields.input("coarseValue", coarse()),
        event: fields.input("event", text().size(1..=EVENT_CHARS_MAX)),
    }
}

fn value(fields: &mut Fields<'_>) -> DraftValue {
    let name = text().size(1..=VALUE_NAME_CHARS_MAX);
    let conditions = objects()
        .required()
        .size(CONDITIONS_PER_VALUE_MIN..=CONDITIONS_PER_VALUE_MAX);
    DraftValue {
        name: fields.required_input("name", name.about("Unique in its window.")),
        fine_value: fields.input(
            "fineValue",
            fine().about("Required in window 0, forbidden in 1 and 2."),
        ),
        coarse_value: fields.required_input("coarseValue", coarse()),
        lock: fields.input("lock", flag()),
        conditions: fields.items(
            "conditions",
            conditions.about(
                "Conditions that must all hold. Each condition needs at least one of the four \
                              bounds.",
            ),
            condition,
        ),
    }
}

fn condition(fields: &mut Fields<'_>) -> DraftCondition {
    let event = text().size(1..=EVENT_CHARS_MAX).about(
        "Event name: standard (`install`, `sign_up`, `start_trial`, `subscribe`, `purchase`, …) or \
         custom.",
    );
    let count = || integer().at_least(0).about("Inclusive.");
    DraftCondition {
        event: fields.required_input("event", event),
        min_count: fields.input("minCount", count()),
        max_count: fields.input("maxCount", count()),
        min_revenue: fields.input(
            "minRevenue",
            amount().about("Inclusive; a number or a decimal string with at most 6 decimals."),
        ),
        max_revenue: fields.input(
            "maxRevenue",
            amount().about("Exclusive; a number or a decimal string with at most 6 decimals."),
        ),
    }
}
