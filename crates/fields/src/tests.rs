use super::*;
use crate::json::parse;
use proptest::prelude::*;
use rstest::rstest;

fn faults(body: &str) -> Vec<(String, &'static str)> {
    let body = parse(body).unwrap();
    let mut faults = Faults::new();
    let mut fields = Fields::of_body(&body, &mut faults);
    fields.required("name", text());
    fields.change("hours", integer_in(1..=24));
    let mut section = fields.section("sdk");
    section.change("enabled", flag());
    section.finish();
    fields.finish();
    faults
        .iter()
        .map(|fault| (fault.field.clone(), fault.code.as_str()))
        .collect()
}

#[rstest]
#[case::nothing_wrong(r#"{"name": "x", "hours": 3, "sdk": {"enabled": true}}"#, &[])]
#[case::null_is_a_change(r#"{"name": "x", "hours": null, "sdk": null}"#, &[])]
#[case::not_an_object("[]", &[("body", "wrong_type"), ("name", "required")])]
#[case::missing("{}", &[("name", "required")])]
#[case::every_fault_at_once(
    r#"{"name": 5, "hours": 25, "sdk": {"enabled": "yes", "enbaled": true}, "nmae": "x"}"#,
    &[
        ("name", "wrong_type"),
        ("hours", "out_of_range"),
        ("sdk.enabled", "wrong_type"),
        ("sdk.enbaled", "unknown_field"),
        ("nmae", "unknown_field"),
    ]
)]
#[case::twice(r#"{"name": "x", "name": "y"}"#, &[("name", "duplicate_field")])]
#[case::fraction(r#"{"name": "x", "hours": 1.5}"#, &[("hours", "wrong_type")])]
#[case::absurd_number(
    r#"{"name": "x", "hours": 99999999999999999999}"#, &[("hours", "out_of_range")]
)]
#[case::list_for_object(r#"{"name": "x", "sdk": []}"#, &[("sdk", "wrong_type")])]
fn reports_every_fault_of_a_body(#[case] body: &str, #[case] expected: &[(&str, &str)]) {
    let found = faults(body);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(field, code)| (field.as_str(), *code))
        .collect();
    assert_eq!(found, expected);
}

#[rstest]
#[case::number("49.99", Some("49.99"))]
#[case::float_noise("0.30000000000000004", Some("0.3"))]
#[case::exponent("1e2", Some("100"))]
#[case::string(r#""0.3""#, Some("0.3"))]
#[case::a_string_is_exact(r#""0.30000000000000004""#, None)]
#[case::exponent_in_a_string(r#""1e2""#, None)]
#[case::leading_zeros_in_a_string(r#""0009.90""#, Some("9.9"))]
#[case::too_large("1000000000000", None)]
#[case::another_type("true", None)]
fn reads_amounts(#[case] json: &str, #[case] expected: Option<&str>) {
    let found = (amount().read)(InputValue::Tree(&parse(json).unwrap())).ok();
    assert_eq!(found.map(|it| it.to_string()).as_deref(), expected);
}

/// Reads a PATCH to this document: the changes to `name` and `sdk.enabled`, and the faults.
fn changed(body: &str) -> (Change<String>, Change<bool>, Vec<(String, &'static str)>) {
    let document = serde_json::json!({
        "id": "app_1", "name": "x", "key": {"set": false}, "updatedAt": null, "pending": 5,
        "sdk": {"enabled": true, "liveKey": "pk_live_1"},
    });
    let (current, body) = (parse(&document.to_string()).unwrap(), parse(body).unwrap());
    let mut faults = Faults::new();
    let mut fields = Fields::of_change(&body, Some(&current), &mut faults);
    let name = fields.change("name", text());
    fields.change("key", text());
    fields.ignore("pending");
    let mut section = fields.section("sdk");
    let enabled = section.change("enabled", flag());
    section.finish();
    fields.finish();
    let faults = faults
        .iter()
        .map(|fault| (fault.field.clone(), fault.code.as_str()));
    (name, enabled, faults.collect())
}

#[rstest]
#[case::the_whole_document(
    r#"{"id": "app_1", "name": "x", "key": {"set": false}, "updatedAt": null, "pending": 6,
        "sdk": {"liveKey": "pk_live_1", "enabled": true}}"#,
    Change::Keep, Change::Keep, &[]
)]
#[case::with_changes(
    r#"{"id": "app_1", "name": "y", "key": {"set": false},
        "sdk": {"enabled": false, "liveKey": "pk_live_1"}}"#,
    Change::Set("y".to_owned()), Change::Set(false), &[]
)]
#[case::fields_that_cannot_be_changed(
    r#"{"id": "app_2", "updatedAt": "now", "key": {"set": true}, "sdk": {"liveKey": null}}"#,
    Change::Keep, Change::Keep,
    &[
        ("key", "wrong_type"),
        ("sdk.liveKey", "not_allowed"),
        ("id", "not_allowed"),
        ("updatedAt", "not_allowed"),
    ]
)]
#[case::fields_that_do_not_exist(
    r#"{"nmae": "x"}"#, Change::Keep, Change::Keep, &[("nmae", "unknown_field")]
)]
fn a_patch_may_contain_the_whole_document(
    #[case] body: &str,
    #[case] name: Change<String>,
    #[case] enabled: Change<bool>,
    #[case] expected: &[(&str, &str)],
) {
    let found = changed(body);
    assert_eq!((found.0, found.1), (name, enabled));
    let faults: Vec<(&str, &str)> = found
        .2
        .iter()
        .map(|(field, code)| (field.as_str(), *code))
        .collect();
    assert_eq!(faults, expected);
}

#[test]
fn an_unknown_field_is_answered_with_the_known_ones() {
    let body = parse(r#"{"nmae": "x"}"#).unwrap();
    let mut faults = Faults::new();
    let mut fields = Fields::of_body(&body, &mut faults);
    fields.change("name", text());
    fields.change("id", text());
    fields.finish();
    let message = &faults.iter().next().unwrap().message;
    assert_eq!(message, "Unknown field. Known fields: name, id.");
}

#[test]
fn a_fault_never_contains_the_value() {
    let body = parse(r#"{"name": {"secret": "hush"}, "sdk": {"enabled": "hush"}}"#).unwrap();
    let mut faults = Faults::new();
    let mut fields = Fields::of_body(&body, &mut faults);
    fields.required("name", text());
    fields.section("sdk").change("enabled", flag());
    fields.finish();
    assert!(!faults.to_string().contains("hush"));
}

/// Reads a body with every kind of field.
fn read_all(fields: &mut Fields<'_>) {
    fields.required("name", text().size(1..=9).pattern("^x").about("A name."));
    fields.settable("slug", text());
    fields.change("kind", choice(&["a", "b"], |word| word));
    fields.change("hours", integer_in(1..=24));
    fields.input("price", amount());
    fields.input("tags", text_list(5, |text| Ok(text.to_owned())));
    fields.required_input("map", text_map());
    let mut section = fields.section("sdk");
    section.change("key", text().write_only());
    section.finish();
    fields.items("rows", objects().required().size(1..=3), |fields| {
        fields.required("day", text().format("date"))
    });
    let mut open = fields.section_as("settings", any_object());
    open.change("hidden", flag());
    open.finish();
}

#[test]
fn a_reader_describes_what_it_reads() {
    let schema = serde_json::to_value(describe("Body", " A body.", read_all)).unwrap();
    let text_or_null = serde_json::json!(["string", "null"]);
    let expected = serde_json::json!({
        "type": "object", "title": "Body", "description": "A body.",
        "required": ["name", "map", "rows"],
        "properties": {
            "name": {"type": "string", "description": "A name.", "minLength": 1, "maxLength": 9, "pattern": "^x"},
            "slug": {"type": "string"},
            "kind": {"type": text_or_null, "enum": ["a", "b", null]},
            "hours": {"type": ["integer", "null"], "format": "int64", "minimum": 1, "maximum": 24},
            "price": {"oneOf": [
                {"type": "number"},
                {"type": "string", "pattern": r"^-?[0-9]{1,12}(\.[0-9]{1,6})?$"},
                {"type": "null"},
            ]},
            "tags": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": 5},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "sdk": {"type": ["object", "null"], "properties": {
                "key": {"type": text_or_null, "writeOnly": true},
            }},
            "rows": {"type": "array", "minItems": 1, "maxItems": 3, "items": {
                "type": "object", "required": ["day"],
                "properties": {"day": {"type": "string", "format": "date"}},
            }},
            "settings": {"type": ["object", "null"], "additionalProperties": true},
        },
    });
    assert_eq!(schema, expected);
}

fn raw(text: &str) -> InputValue<'_> {
    InputValue::Text(serde_json::from_str(text).unwrap())
}

#[rstest]
#[case::plain(r#""abc""#, Some("abc"))]
#[case::escaped(r#""a\n\u00e9""#, Some("a\né"))]
#[case::pair_of_surrogates(r#""\ud83d\ude00""#, Some("😀"))]
#[case::half_a_character(r#""a\ud83d""#, Some("a\u{fffd}\u{fffd}\u{fffd}"))]
#[case::number("5", None)]
#[case::list_of_bytes("[97]", None)]
#[case::object("{}", None)]
fn reads_text_of_browsers(#[case] json: &str, #[case] expected: Option<&str>) {
    assert_eq!(text().parse_value(raw(json)).ok().as_deref(), expected);
}

#[rstest]
#[case::zero("0", Some(0))]
#[case::negative("-5", Some(-5))]
#[case::large("9223372036854775807", Some(i64::MAX))]
#[case::too_large("99999999999999999999999", Some(i64::MAX))]
#[case::too_small("-99999999999999999999999", Some(i64::MIN))]
#[case::fraction("1.5", None)]
#[case::float("1.0", Some(1))]
#[case::exponent("1e3", Some(1_000))]
#[case::text(r#""5""#, None)]
#[case::flag("true", None)]
fn reads_integers_of_browsers(#[case] json: &str, #[case] expected: Option<i64>) {
    assert_eq!(integer().parse_value(raw(json)).ok(), expected);
}

#[test]
fn lenient_faults_have_a_path() {
    let body = raw(r#"{"screen": {"width": "x"}, "consent": 5, "new": 1, "id": null}"#);
    let mut faults = Faults::new();
    let mut fields = Fields::lenient(body, &mut faults);
    fields
        .section("screen")
        .optional("width", number_as(|_| Ok(())));
    fields.section("consent").optional("tracking", text());
    fields.section("nothing").optional("more", text());
    fields.optional("id", text());
    fields.required("deviceId", text());
    fields.finish();
    let found: Vec<(&str, &str)> = faults
        .iter()
        .map(|fault| (fault.field.as_str(), fault.code.as_str()))
        .collect();
    let expected = [
        ("screen.width", "wrong_type"),
        ("consent", "wrong_type"),
        ("deviceId", "required"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = format!(r#"{{"a": {}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let mut faults = Faults::new();
    let mut fields = Fields::lenient(raw(&deep), &mut faults);
    assert!(fields.input("a", value_as(|_| Ok(()))).is_present());
}

proptest! {
    #[test]
    fn nothing_panics(json in "[\\[\\]{}\":,a-c0-9.e\\\\ud-]*") {
        if let Ok(raw) = serde_json::from_str(&json) {
            let value = InputValue::Text(raw);
            let _any = (value.members(), value.items(), value.text(), value.digits(), value.flag());
            let _any = integer().parse_value(value);
        }
    }
}
