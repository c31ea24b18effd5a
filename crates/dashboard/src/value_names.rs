//! Names of the values in reports. Roll-ups contain ids; people read names.

use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::pages::events;
use crate::state::DashboardHandles;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::event::EventSource;
use tributary_domain::report::{APP_PLATFORMS, CampaignNames, Dimension, Period};
use tributary_domain::vocabulary::country::country_label;
use tributary_domain::vocabulary::id::{AppId, LinkId};

/// Names of links, campaigns, ad sets and ads by their ids.
#[derive(Default)]
pub(crate) struct ValueNames {
    links: BTreeMap<String, String>,
    campaigns: CampaignNames,
}

impl ValueNames {
    /// Loads the names of these values, as they were used in the period.
    pub(crate) async fn load<'a>(
        handles: &DashboardHandles,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        period: Period,
        values: impl IntoIterator<Item = (Dimension, &'a String)>,
    ) -> Result<Self, Failure> {
        let (mut links, mut has_campaigns) = (BTreeSet::new(), false);
        for (dimension, value) in values {
            match dimension {
                Dimension::Link => {
                    links.insert(value);
                }
                Dimension::Campaign | Dimension::Adset | Dimension::Ad => {
                    has_campaigns |= !value.is_empty();
                }
                _ => {}
            }
        }
        let campaigns = async {
            if !has_campaigns {
                return Ok(CampaignNames::default());
            }
            Ok(handles.store.campaign_names(caller, app, period).await?)
        };
        let links = link_names(handles, caller, app, links.into_iter());
        let (links, campaigns) = tokio::try_join!(links, campaigns)?;
        Ok(Self { links, campaigns })
    }

    /// Returns the text for a dimension's value: its name, or the value if it has none.
    pub(crate) fn label(&self, dimension: Dimension, value: &str) -> String {
        let label = match dimension {
            Dimension::Network => NetworkLabel::parse(value).map(|label| label.name),
            Dimension::Platform => Some(platform_label(value)),
            Dimension::Source => Some(source_label(value)),
            Dimension::Country => return country_label(value),
            _ => self.name(dimension, value),
        };
        if label.is_none() && !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            return nameless(dimension, value);
        }
        label.unwrap_or(value).to_owned()
    }

    /// Returns the text for a dimension's value, or for its absence.
    pub(crate) fn label_or_missing(&self, dimension: Dimension, value: &str) -> String {
        if value.is_empty() {
            return missing_label(dimension).to_owned();
        }
        self.label(dimension, value)
    }

    /// Returns the id to show beside a name; empty if the label says everything.
    pub(crate) fn id(&self, dimension: Dimension, value: &str) -> String {
        let id = match dimension {
            Dimension::Network => NetworkLabel::parse(value).map_or("", |label| label.id),
            _ => self.name(dimension, value).map_or("", |_| value),
        };
        id.to_owned()
    }

    fn name(&self, dimension: Dimension, value: &str) -> Option<&str> {
        match dimension {
            Dimension::Link => self.links.get(value).map(String::as_str),
            _ => self.campaigns.get(dimension, value),
        }
    }
}

/// Returns the name of a platform.
pub(crate) fn platform_label(platform: &str) -> &str {
    match platform {
        "ios" => "iOS",
        "android" => "Android",
        "web" => "Web",
        APP_PLATFORMS => "App (iOS and Android)",
        other => other,
    }
}

/// Returns the name of a source of events.
fn source_label(source: &str) -> &str {
    match EventSource::parse(source) {
        Some(known) => events::source_label(known),
        None => source,
    }
}

/// Returns the text for an id whose name is unknown, such as that of an Apple Ads campaign, which
/// Apple reports without a name. A number alone would look like an error.
fn nameless(dimension: Dimension, id: &str) -> String {
    match dimension {
        Dimension::Campaign => format!("Campaign {id}"),
        Dimension::Adset => format!("Ad set {id}"),
        Dimension::Ad => format!("Ad {id}"),
        _ => id.to_owned(),
    }
}

/// Returns the text for figures without a value of a dimension.
const fn missing_label(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Network => "Not attributed",
        Dimension::Link => "No link",
        Dimension::Campaign => "No campaign",
        Dimension::Adset => "No ad set",
        Dimension::Ad => "No ad",
        Dimension::Country => "Country unknown",
        Dimension::Platform => "Platform unknown",
        Dimension::Event => "No event",
        Dimension::Source => "No source",
    }
}

/// Loads the links' names by id.
pub(crate) async fn link_names(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    values: impl Iterator<Item = &String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let links: BTreeSet<LinkId> = values
        .filter_map(|value| LinkId::parse(value).ok())
        .collect();
    if links.is_empty() {
        return Ok(BTreeMap::new());
    }
    let links = links.into_iter().collect();
    let names = handles.store.link_names(caller, app, links).await?;
    Ok(names
        .into_iter()
        .map(|(link, name)| (link.to_string(), name))
        .collect())
}

/// Names of links, for pages that show single links.
pub(crate) struct LinkNames(BTreeMap<String, String>);

/// A link as a page shows it.
pub(crate) struct LinkLabel {
    pub(crate) id: String,
    /// `None` if the link is not stored any longer.
    pub(crate) name: Option<String>,
}

impl LinkNames {
    /// Loads the names of these links.
    pub(crate) async fn load(
        handles: &DashboardHandles,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        links: impl Iterator<Item = LinkId>,
    ) -> Result<Self, Failure> {
        let ids: Vec<String> = links.map(|link| link.to_string()).collect();
        let names = link_names(handles, caller, app, ids.iter()).await?;
        Ok(Self(names))
    }

    /// Returns the label of a link.
    pub(crate) fn label(&self, link: LinkId) -> LinkLabel {
        let id = link.to_string();
        LinkLabel {
            name: self.0.get(&id).cloned(),
            id,
        }
    }
}

impl LinkLabel {
    /// Returns the path of the link's page within the app.
    pub(crate) fn path(&self) -> String {
        format!("links/{}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tributary_domain::link::Campaign;

    #[rstest]
    #[case::network(Dimension::Network, "network_c", "TikTok", "network_c")]
    #[case::organic(Dimension::Network, "organic", "Organic", "")]
    #[case::platform(Dimension::Platform, "ios", "iOS", "")]
    #[case::source(Dimension::Source, "web", "Website", "")]
    #[case::link(Dimension::Link, "lnk_1", "Banner", "lnk_1")]
    #[case::campaign(Dimension::Campaign, "c1", "Spring", "c1")]
    #[case::campaign_without_name(Dimension::Campaign, "c2", "c2", "")]
    #[case::number(Dimension::Campaign, "542370540", "Campaign 542370540", "")]
    #[case::country(Dimension::Country, "DE", "Germany (DE)", "")]
    fn a_value_is_shown_by_its_name(
        #[case] dimension: Dimension,
        #[case] value: &str,
        #[case] label: &str,
        #[case] id: &str,
    ) {
        let campaign = Campaign {
            id: Some("c1".to_owned()),
            name: Some("Spring".to_owned()),
            ..Campaign::default()
        };
        let names = ValueNames {
            links: BTreeMap::from([("lnk_1".to_owned(), "Banner".to_owned())]),
            campaigns: CampaignNames::of([campaign]),
        };
        assert_eq!(names.label(dimension, value), label);
        assert_eq!(names.id(dimension, value), id);
        assert_eq!(names.label_or_missing(dimension, value), label);
        assert!(!names.label_or_missing(dimension, "").is_empty());
    }
}
