//! A link's clicks by country and by platform. The roll-ups do not combine links with countries, so
//! this report counts stored clicks.

use std::collections::BTreeMap;

/// Maximum number of an app's clicks that one report reads, newest first. A page reads this many in
/// some tens of milliseconds.
pub const CLICKS_SCANNED_MAX: u32 = 50_000;

/// Clicks by country and by platform, most clicks first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClickBreakdown {
    /// Number of counted clicks.
    pub clicks: i64,
    /// Two-letter country and its clicks. The country is empty if it is unknown.
    pub countries: Vec<(String, i64)>,
    /// Platform and its clicks.
    pub platforms: Vec<(String, i64)>,
}

impl ClickBreakdown {
    /// Sums up clicks per country and platform.
    pub fn of(groups: impl IntoIterator<Item = (Option<String>, String, i64)>) -> Self {
        let (mut countries, mut platforms) = (BTreeMap::new(), BTreeMap::new());
        let mut sum = 0;
        for (country, platform, clicks) in groups {
            sum += clicks;
            *countries.entry(country.unwrap_or_default()).or_default() += clicks;
            *platforms.entry(platform).or_default() += clicks;
        }
        Self {
            clicks: sum,
            countries: most_first(countries),
            platforms: most_first(platforms),
        }
    }
}

/// Sorts by clicks. Equal ones stay in alphabetical order.
fn most_first(clicks: BTreeMap<String, i64>) -> Vec<(String, i64)> {
    let mut clicks: Vec<(String, i64)> = clicks.into_iter().collect();
    clicks.sort_by_key(|(_, clicks)| std::cmp::Reverse(*clicks));
    clicks
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    type Sums<'a> = &'a [(&'a str, i64)];

    #[rstest]
    #[case::none(&[], 0, &[], &[])]
    #[case::unknown_country(&[(None, "web", 2)], 2, &[("", 2)], &[("web", 2)])]
    #[case::most_first(
        &[(Some("DE"), "ios", 1), (Some("US"), "ios", 2), (Some("DE"), "android", 2)],
        5, &[("DE", 3), ("US", 2)], &[("ios", 3), ("android", 2)]
    )]
    #[case::equal_ones_by_name(
        &[(Some("US"), "ios", 1), (Some("AT"), "web", 1)],
        2, &[("AT", 1), ("US", 1)], &[("ios", 1), ("web", 1)]
    )]
    fn sums_up(
        #[case] groups: &[(Option<&str>, &str, i64)],
        #[case] clicks: i64,
        #[case] countries: Sums<'_>,
        #[case] platforms: Sums<'_>,
    ) {
        let groups = groups.iter().map(|(country, platform, clicks)| {
            (country.map(str::to_owned), (*platform).to_owned(), *clicks)
        });
        let owned = |sums: Sums<'_>| -> Vec<(String, i64)> {
            let sums = sums.iter();
            sums.map(|(name, clicks)| ((*name).to_owned(), *clicks))
                .collect()
        };
        let expected = ClickBreakdown {
            clicks,
            countries: owned(countries),
            platforms: owned(platforms),
        };
        assert_eq!(ClickBreakdown::of(groups), expected);
    }
}
