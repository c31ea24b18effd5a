//! Quota usage from the response headers.

use crate::json::integer;
use crate::response::NetworkResponse;
use crate::ruling::NetworkPace;
use serde_json::Value;
use std::time::Duration;

/// Requests are slowed down from this usage upwards.
const SLOW_FROM_PERCENT: f64 = 80.0;
/// Headers that report quota usage in percent. The first header has a list of percentages for each
/// business.
const HEADERS: [&str; 3] = [
    "x-business-use-case-usage",
    "x-app-usage",
    "x-ad-account-usage",
];
const PERCENTAGES: [&str; 4] = [
    "call_count",
    "total_cputime",
    "total_time",
    "acc_id_util_pct",
];
/// Minutes until access is regained.
const REGAIN: &str = "estimated_time_to_regain_access";

pub(super) fn pace(response: &NetworkResponse) -> Option<NetworkPace> {
    let headers = HEADERS.into_iter().filter_map(|name| response.header(name));
    headers
        .filter_map(|text| serde_json::from_str::<Value>(text).ok())
        .filter_map(|usage| worst_pace(&usage))
        .max()
}

/// Returns the slowest pace found anywhere in a header's value.
fn worst_pace(usage: &Value) -> Option<NetworkPace> {
    match usage {
        Value::Array(members) => members.iter().filter_map(worst_pace).max(),
        Value::Object(fields) => {
            let used = |name: &&str| usage.get(*name).and_then(Value::as_f64);
            let much = PERCENTAGES
                .iter()
                .filter_map(used)
                .any(|percent| percent >= SLOW_FROM_PERCENT);
            let regain = integer(usage, REGAIN)
                .and_then(|minutes| u64::try_from(minutes).ok())
                .filter(|minutes| *minutes > 0)
                .map(|minutes| NetworkPace::Wait(Duration::from_secs(minutes.saturating_mul(60))));
            let here = regain.max(much.then_some(NetworkPace::Slow));
            fields.values().filter_map(worst_pace).max().max(here)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{response, with_header};
    use rstest::rstest;

    const BUSINESS: &str = HEADERS[0];

    #[rstest]
    #[case::little(BUSINESS, r#"{"1":[{"type":"x","call_count":28,"total_cputime":25,"total_time":25,"estimated_time_to_regain_access":0}]}"#, None)]
    #[case::much(BUSINESS, r#"{"1":[{"call_count":80}]}"#, Some(NetworkPace::Slow))]
    #[case::much_of_another(
        BUSINESS,
        r#"{"1":[{"call_count":8}],"2":[{"total_time":99}]}"#,
        Some(NetworkPace::Slow)
    )]
    #[case::too_much(
        BUSINESS,
        r#"{"1":[{"call_count":100,"estimated_time_to_regain_access":5}]}"#,
        Some(NetworkPace::Wait(Duration::from_mins(5)))
    )]
    #[case::the_app(
        "x-app-usage",
        r#"{"call_count":28,"total_time":25,"total_cputime":85}"#,
        Some(NetworkPace::Slow)
    )]
    #[case::the_account("x-ad-account-usage", r#"{"acc_id_util_pct":9.67}"#, None)]
    #[case::the_account_almost("x-ad-account-usage", r#"{"acc_id_util_pct":79.99}"#, None)]
    #[case::the_account_full(
        "x-ad-account-usage",
        r#"{"acc_id_util_pct":80.01}"#,
        Some(NetworkPace::Slow)
    )]
    #[case::nonsense("x-app-usage", "<html>", None)]
    #[case::negative(BUSINESS, r#"{"1":[{"estimated_time_to_regain_access":-5}]}"#, None)]
    fn reads_the_pace_from_headers(
        #[case] name: &str,
        #[case] value: &str,
        #[case] expected: Option<NetworkPace>,
    ) {
        assert_eq!(
            pace(&with_header(response(200, "{}"), name, value)),
            expected
        );
    }

    #[test]
    fn the_longest_wait_wins() {
        let one = with_header(response(200, "{}"), "x-app-usage", r#"{"call_count":99}"#);
        let wait = r#"{"1":[{"estimated_time_to_regain_access":1},{"estimated_time_to_regain_access":3}]}"#;
        let both = with_header(one, BUSINESS, wait);
        assert_eq!(pace(&both), Some(NetworkPace::Wait(Duration::from_mins(3))));
    }
}
