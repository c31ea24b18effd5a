//! Parses Apple's JSON into the domain's type.
//!
//! Only `attribution` is mandatory. Unexpected values in other fields are left out: a record
//! without its keyword is better than no record, and Apple's next response would be the same.

use serde::Deserialize;
use serde_json::Value;
use tributary_domain::attribution::ad_services::AdServicesResponse;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum response size. Apple's responses are a few hundred bytes long.
pub(super) const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of an id or name. Apple's ids and names are at most about twenty characters long.
const TEXT_CHARS_MAX: usize = 100;

/// The response body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    attribution: bool,
    #[serde(default)]
    org_id: Value,
    #[serde(default)]
    campaign_id: Value,
    #[serde(default)]
    ad_group_id: Value,
    #[serde(default)]
    keyword_id: Value,
    #[serde(default)]
    ad_id: Value,
    #[serde(default)]
    conversion_type: Value,
    #[serde(default)]
    claim_type: Value,
    #[serde(default)]
    country_or_region: Value,
    #[serde(default)]
    click_date: Value,
    #[serde(default)]
    impression_date: Value,
    #[serde(default)]
    supply_placement: Value,
}

/// Parses a response; `None` if it is invalid.
pub(super) fn read(content: &[u8]) -> Option<AdServicesResponse> {
    let body: Body = serde_json::from_slice(content).ok()?;
    Some(AdServicesResponse {
        attribution: body.attribution,
        org_id: text(&body.org_id),
        campaign_id: text(&body.campaign_id),
        ad_group_id: text(&body.ad_group_id),
        keyword_id: text(&body.keyword_id),
        ad_id: text(&body.ad_id),
        conversion_type: text(&body.conversion_type),
        claim_type: text(&body.claim_type),
        country_or_region: country(&body.country_or_region),
        click_date: parse_time(&body.click_date),
        impression_date: parse_time(&body.impression_date),
        supply_placement: text(&body.supply_placement),
    })
}

/// Accepts ids and names as numbers or text.
fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_f64() => number.to_string(),
        _ => return None,
    };
    let fits = !text.is_empty()
        && text.chars().count() <= TEXT_CHARS_MAX
        && !text.chars().any(char::is_control);
    fits.then_some(text)
}

fn country(value: &Value) -> Option<String> {
    let text = value.as_str()?.to_ascii_uppercase();
    let is_code = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    is_code.then_some(text)
}

/// Parses `2024-10-08T17:17Z`; seconds are optional.
fn parse_time(value: &Value) -> Option<Timestamp> {
    let at: jiff::Timestamp = value.as_str()?.parse().ok()?;
    Some(Timestamp::from_millis(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::io::Write as _;
    use std::path::Path;

    fn tap() -> AdServicesResponse {
        AdServicesResponse {
            attribution: true,
            org_id: Some("1".to_owned()),
            ..AdServicesResponse::default()
        }
    }

    #[rstest]
    #[case::no_record(r#"{"attribution":false}"#, AdServicesResponse::default())]
    #[case::number(r#"{"attribution":true,"orgId":1}"#, tap())]
    #[case::number_as_text(r#"{"attribution":true,"orgId":"1"}"#, tap())]
    #[case::null_is_absent(r#"{"attribution":true,"orgId":1,"keywordId":null}"#, tap())]
    #[case::new_fields_are_ignored(r#"{"attribution":true,"orgId":1,"colour":{"a":[]}}"#, tap())]
    #[case::unexpected_types_are_left_out(
        r#"{"attribution":true,"orgId":1,"adId":[1],"campaignId":1.5,"claimType":"","clickDate":7}"#,
        tap()
    )]
    #[case::no_country(r#"{"attribution":true,"orgId":1,"countryOrRegion":"Mars"}"#, tap())]
    #[case::no_date(r#"{"attribution":true,"orgId":1,"clickDate":"yesterday"}"#, tap())]
    fn parses_valid_responses(#[case] content: &str, #[case] expected: AdServicesResponse) {
        assert_eq!(read(content.as_bytes()), Some(expected));
    }

    #[rstest]
    #[case::to_the_minute("2024-10-08T17:17Z", Some(1_728_407_820_000))]
    #[case::to_the_second("2024-10-08T17:17:05Z", Some(1_728_407_825_000))]
    #[case::elsewhere("2024-10-08T19:17+02:00", Some(1_728_407_820_000))]
    #[case::without_a_zone("2024-10-08T17:17", None)]
    #[case::a_day("2024-10-08", None)]
    fn parses_dates(#[case] text: &str, #[case] expected: Option<i64>) {
        let found = parse_time(&Value::from(text));
        assert_eq!(found.map(Timestamp::as_millis), expected);
    }

    #[rstest]
    #[case::at_the_limit(100, true)]
    #[case::past_it(101, false)]
    fn limits_the_length_of_texts(#[case] chars: usize, #[case] taken: bool) {
        assert_eq!(text(&Value::from("x".repeat(chars))).is_some(), taken);
    }

    #[rstest]
    #[case::empty("")]
    #[case::prose("not found")]
    #[case::cut_off(r#"{"attribution":tr"#)]
    #[case::silent(r#"{"orgId":1}"#)]
    #[case::no_flag(r#"{"attribution":"true"}"#)]
    #[case::list("[]")]
    fn rejects_invalid_responses(#[case] content: &str) {
        assert_eq!(read(content.as_bytes()), None);
    }

    /// Reads a third-party sample that is not part of the repository. If it is missing, a note is
    /// written directly to standard error, because the test harness would capture it.
    fn sample(name: &str) -> Option<Vec<u8>> {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/adservices");
        if !folder.is_dir() {
            let message = "NOT TESTED: Apple's sample responses are missing at";
            writeln!(std::io::stderr(), "\n{message} {}\n", folder.display()).unwrap();
            return None;
        }
        Some(std::fs::read(folder.join(name)).unwrap())
    }

    #[rstest]
    #[case::tap("click_detailed.json", true, "Click", true, false)]
    #[case::tap_without_tracking("click_standard.json", true, "Click", false, false)]
    #[case::view("impression_detailed.json", true, "Impression", false, true)]
    #[case::none("not_attributed.json", false, "", false, false)]
    fn parses_the_samples(
        #[case] name: &str,
        #[case] attribution: bool,
        #[case] claim: &str,
        #[case] has_click_date: bool,
        #[case] has_impression_date: bool,
    ) {
        let Some(content) = sample(name) else {
            return;
        };
        let response = read(&content).unwrap();
        assert_eq!(response.attribution, attribution);
        assert_eq!(response.claim_type.as_deref().unwrap_or_default(), claim);
        assert_eq!(response.click_date.is_some(), has_click_date);
        assert_eq!(response.impression_date.is_some(), has_impression_date);
        let ids = [
            response.org_id,
            response.campaign_id,
            response.ad_group_id,
            response.ad_id,
        ];
        assert!(ids.iter().all(|id| id.is_some() == attribution), "{ids:?}");
        assert_eq!(response.country_or_region.is_some(), attribution);
    }
}
