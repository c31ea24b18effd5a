//! Names of campaigns, ad sets and ads. Roll-ups contain ids only, because a network may rename a
//! campaign at any time.

use crate::link::Campaign;
use crate::report::Dimension;
use std::collections::BTreeMap;

/// Maximum number of an app's links, of installs and of clicks that one lookup of names reads, newest
/// first. The lookup is a small part of a page, so it takes a few milliseconds at most.
pub const NAME_SOURCES_MAX: u32 = 1_000;

/// Names by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CampaignNames {
    campaigns: BTreeMap<String, String>,
    adsets: BTreeMap<String, String>,
    ads: BTreeMap<String, String>,
}

impl CampaignNames {
    /// Collects the names that a member of the organization wrote. If an id has several names, the
    /// first one wins.
    pub fn of(campaigns: impl IntoIterator<Item = Campaign>) -> Self {
        let mut names = Self::default();
        for one in campaigns {
            add(&mut names.campaigns, one.id, one.name);
            add(&mut names.adsets, one.adset_id, one.adset_name);
            add(&mut names.ads, one.ad_id, one.ad_name);
        }
        names
    }

    /// Adds names for ids without one, as installs or clicks reported them. Anyone can send a click
    /// with any name, so the most frequent name of an id wins; of equally frequent ones, the first.
    #[must_use]
    pub fn with_reported(mut self, campaigns: impl IntoIterator<Item = Campaign>) -> Self {
        let (mut campaign_votes, mut adset_votes, mut ad_votes) =
            <(Votes, Votes, Votes)>::default();
        for one in campaigns {
            vote(&mut campaign_votes, one.id, one.name);
            vote(&mut adset_votes, one.adset_id, one.adset_name);
            vote(&mut ad_votes, one.ad_id, one.ad_name);
        }
        elect(&mut self.campaigns, campaign_votes);
        elect(&mut self.adsets, adset_votes);
        elect(&mut self.ads, ad_votes);
        self
    }

    /// Returns the name of a campaign, an ad set or an ad; `None` if it is unknown or if the
    /// dimension is another one.
    pub fn get(&self, dimension: Dimension, id: &str) -> Option<&str> {
        let names = match dimension {
            Dimension::Campaign => &self.campaigns,
            Dimension::Adset => &self.adsets,
            Dimension::Ad => &self.ads,
            _ => return None,
        };
        names.get(id).map(String::as_str)
    }
}

fn add(names: &mut BTreeMap<String, String>, id: Option<String>, name: Option<String>) {
    if let (Some(id), Some(name)) = (id, name.filter(|name| !name.is_empty())) {
        names.entry(id).or_insert(name);
    }
}

/// Names of each id in the order of their first report, with the number of reports.
type Votes = BTreeMap<String, Vec<(String, u64)>>;

fn vote(votes: &mut Votes, id: Option<String>, name: Option<String>) {
    if let (Some(id), Some(name)) = (id, name.filter(|name| !name.is_empty())) {
        let names = votes.entry(id).or_default();
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
}

fn elect(names: &mut BTreeMap<String, String>, votes: Votes) {
    for (id, candidates) in votes {
        // `max_by_key` returns the last of equal candidates, so the order is reversed.
        let elected = candidates.into_iter().rev().max_by_key(|(_, count)| *count);
        if let Some((name, _)) = elected {
            names.entry(id).or_insert(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn campaign(id: Option<&str>, name: Option<&str>) -> Campaign {
        Campaign {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            adset_id: Some("s1".to_owned()),
            adset_name: Some("Parents".to_owned()),
            ..Campaign::default()
        }
    }

    #[rstest]
    #[case::named(Dimension::Campaign, "c1", Some("Spring"))]
    #[case::adset(Dimension::Adset, "s1", Some("Parents"))]
    #[case::empty_name(Dimension::Campaign, "c2", Some("Autumn"))]
    #[case::without_name(Dimension::Campaign, "c3", None)]
    #[case::id_of_another_level(Dimension::Ad, "c1", None)]
    #[case::other_dimension(Dimension::Country, "c1", None)]
    fn the_first_name_of_an_id_wins(
        #[case] dimension: Dimension,
        #[case] id: &str,
        #[case] expected: Option<&str>,
    ) {
        let names = CampaignNames::of([
            campaign(Some("c1"), Some("Spring")),
            campaign(Some("c1"), Some("Spring, renamed")),
            campaign(Some("c2"), Some("")),
            campaign(Some("c2"), Some("Autumn")),
            campaign(Some("c3"), None),
            campaign(None, Some("Nameless")),
        ]);
        assert_eq!(names.get(dimension, id), expected);
    }

    #[rstest]
    #[case::link_wins("c1", "Link")]
    #[case::most_frequent("c2", "Real")]
    #[case::first_of_equals("c3", "Newer")]
    fn a_stranger_cannot_rename_a_campaign(#[case] id: &str, #[case] expected: &str) {
        let reported = [
            ("c1", "Real"),
            ("c2", "Forged"),
            ("c2", "Real"),
            ("c2", "Real"),
            ("c3", "Newer"),
            ("c3", "Older"),
        ];
        let reported = reported.map(|(id, name)| campaign(Some(id), Some(name)));
        let names = CampaignNames::of([campaign(Some("c1"), Some("Link"))]);
        let names = names.with_reported(reported);
        assert_eq!(names.get(Dimension::Campaign, id), Some(expected));
    }
}
