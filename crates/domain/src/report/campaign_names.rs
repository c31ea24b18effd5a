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
    /// Collects the names. If an id has several names, the first one wins.
    pub fn of(campaigns: impl IntoIterator<Item = Campaign>) -> Self {
        let mut names = Self::default();
        for one in campaigns {
            add(&mut names.campaigns, one.id, one.name);
            add(&mut names.adsets, one.adset_id, one.adset_name);
            add(&mut names.ads, one.ad_id, one.ad_name);
        }
        names
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
}
