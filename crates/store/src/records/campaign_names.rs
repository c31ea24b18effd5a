//! Names of campaigns, ad sets and ads in stored links, events and clicks.

use super::click::captured_campaign;
use super::event::campaign_from_json;
use super::link::link_campaign;
use std::collections::HashSet;
use tributary_domain::report::CampaignNames;

/// Columns that contain names, newest first.
#[derive(Debug, Default)]
pub struct NameSources {
    /// Settings of links.
    pub links: Vec<String>,
    /// Campaigns of installs.
    pub installs: Vec<String>,
    /// Captured parameters of clicks.
    pub clicks: Vec<String>,
}

impl NameSources {
    /// Reads the names. Unreadable texts are skipped, because a report is useful without names.
    pub fn names(&self) -> CampaignNames {
        let links = distinct(&self.links).filter_map(link_campaign);
        let installs = self.installs.iter();
        let installs = installs.filter_map(|text| campaign_from_json(text));
        let clicks = self.clicks.iter();
        let clicks = clicks.filter_map(|text| captured_campaign(text));
        CampaignNames::of(links)
            .with_reported(installs)
            .with_reported(clicks)
    }
}

/// Leaves repeated texts out. Many links have the same campaign.
fn distinct(texts: &[String]) -> impl Iterator<Item = &str> {
    let mut seen = HashSet::new();
    let texts = texts.iter().map(String::as_str);
    texts.filter(move |text| seen.insert(*text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::report::Dimension;

    #[test]
    fn links_come_before_installs_and_clicks_and_unreadable_texts_are_skipped() {
        let texts = |texts: &[&str]| texts.iter().map(|one| (*one).to_owned()).collect();
        let sources = NameSources {
            links: texts(&["{", r#"{"campaign_id": "1", "campaign_name": "Link"}"#]),
            installs: texts(&[
                r#"{"id": "1", "name": "Install"}"#,
                r#"{"id": "2", "name": "Install"}"#,
            ]),
            clicks: texts(&[
                r#"{"campaign": {"id": "2", "name": "Click"}, "named": {"fbclid": "x"}}"#,
                r#"{"campaign": {"id": "3", "name": "Click"}}"#,
            ]),
        };
        let names = sources.names();
        let name = |id| names.get(Dimension::Campaign, id);
        let expected = [Some("Link"), Some("Install"), Some("Click"), None];
        assert_eq!(["1", "2", "3", "4"].map(name), expected);
    }
}
