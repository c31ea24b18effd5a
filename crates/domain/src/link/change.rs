//! Changes to a link.

use super::{Campaign, Link, LinkKind, Slug, fields};
use crate::app::AuditedChange;
use crate::audit::{Changes, FieldChange};
use crate::integration::Network;
use crate::refusal::Refusal;
use crate::vocabulary::change::Change;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::revision::Precondition;
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::web_url::{DeepLink, HttpsUrl, PageUrl};
use std::collections::BTreeMap;

/// A change to a link. Name and slug have no default, so they cannot be reset. Only a new link may
/// become a test link.
#[derive(Debug, Clone, Default)]
#[expect(
    missing_docs,
    reason = "each field is the field of Link that it changes"
)]
pub struct LinkChange {
    pub name: Option<Name>,
    pub slug: Option<Slug>,
    pub kind: Change<LinkKind>,
    pub network: Change<Network>,
    pub active: Change<bool>,
    pub is_test: Change<bool>,
    pub ios_url: Change<HttpsUrl>,
    pub android_url: Change<HttpsUrl>,
    pub fallback_url: Change<HttpsUrl>,
    pub destination_url: Change<PageUrl>,
    pub pass_params: Change<Vec<String>>,
    pub deep_link: Change<DeepLink>,
    pub custom_data: Change<BTreeMap<String, String>>,
    pub campaign_id: Change<String>,
    pub campaign_name: Change<String>,
    pub adset_id: Change<String>,
    pub adset_name: Change<String>,
    pub ad_id: Change<String>,
    pub ad_name: Change<String>,
    pub tags: Change<Vec<String>>,
    pub folder: Change<String>,
}

impl Link {
    /// Returns the entity tag for `If-Match`.
    pub fn tag(&self) -> String {
        self.revision.number().to_string()
    }

    /// Rejects a change that is based on another version.
    pub fn admit(&self, precondition: &Precondition) -> Result<(), Refusal> {
        if precondition.admits(&self.tag()) {
            Ok(())
        } else {
            Err(Refusal::VersionConflict)
        }
    }

    /// Returns the audit entries for a new link.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        for (field, value) in audit_values(self) {
            changes.initial(field, value);
        }
        changes.into_vec()
    }

    /// Applies and validates a change. Returns the new link with its audit entries.
    pub fn changed(
        &self,
        change: LinkChange,
        precondition: &Precondition,
        now: Timestamp,
    ) -> Result<AuditedChange<Self>, Refusal> {
        self.admit(precondition)?;
        let mut after = self.clone();
        after.apply(change);
        if after.is_test != self.is_test {
            let message = "Cannot be changed. Create another link.";
            let mut faults = Faults::new();
            faults.add("test", Problem::new(FaultCode::NotAllowed, message));
            return Err(Refusal::Invalid(faults));
        }
        after.check().map_err(Refusal::Invalid)?;
        let changes = differences(self, &after);
        if !changes.is_empty() {
            after.revision = self.revision.next();
            after.updated_at = now;
        }
        Ok(AuditedChange { after, changes })
    }

    /// Applies a change without validation.
    pub fn apply(&mut self, change: LinkChange) {
        if let Some(name) = change.name {
            self.name = name;
        }
        if let Some(slug) = change.slug {
            self.slug = slug;
        }
        change.kind.apply(&mut self.kind, LinkKind::AppInstall);
        change.network.apply_optional(&mut self.network);
        change.active.apply(&mut self.active, true);
        change.is_test.apply(&mut self.is_test, false);
        change.ios_url.apply_optional(&mut self.ios_url);
        change.android_url.apply_optional(&mut self.android_url);
        change.fallback_url.apply_optional(&mut self.fallback_url);
        change
            .destination_url
            .apply_optional(&mut self.destination_url);
        change
            .pass_params
            .apply(&mut self.pass_params, fields::default_pass_params());
        change.deep_link.apply_optional(&mut self.deep_link);
        change
            .custom_data
            .apply(&mut self.custom_data, BTreeMap::new());
        change.campaign_id.apply_optional(&mut self.campaign.id);
        change.campaign_name.apply_optional(&mut self.campaign.name);
        change.adset_id.apply_optional(&mut self.campaign.adset_id);
        change
            .adset_name
            .apply_optional(&mut self.campaign.adset_name);
        change.ad_id.apply_optional(&mut self.campaign.ad_id);
        change.ad_name.apply_optional(&mut self.campaign.ad_name);
        change.tags.apply(&mut self.tags, Vec::new());
        change.folder.apply_optional(&mut self.folder);
    }
}

/// Returns the fields' names and values for the audit log.
fn audit_values(link: &Link) -> Vec<(&'static str, Option<String>)> {
    let url = |url: &Option<HttpsUrl>| url.as_ref().map(|url| url.as_str().to_owned());
    let destination = link.destination_url.as_ref();
    let Campaign {
        id,
        name,
        adset_id,
        adset_name,
        ad_id,
        ad_name,
    } = &link.campaign;
    let custom_data: Vec<String> = link
        .custom_data
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    vec![
        ("name", Some(link.name.as_str().to_owned())),
        ("slug", Some(link.slug.as_str().to_owned())),
        ("type", Some(link.kind.as_str().to_owned())),
        (
            "network",
            link.network.map(|network| network.as_str().to_owned()),
        ),
        ("active", Some(link.active.to_string())),
        ("test", link.is_test.then(|| link.is_test.to_string())),
        ("iosUrl", url(&link.ios_url)),
        ("androidUrl", url(&link.android_url)),
        ("fallbackUrl", url(&link.fallback_url)),
        (
            "destinationUrl",
            destination.map(|url| url.as_str().to_owned()),
        ),
        ("passParams", Some(link.pass_params.join(", "))),
        (
            "deepLink",
            link.deep_link.as_ref().map(|link| link.as_str().to_owned()),
        ),
        ("customData", Some(custom_data.join(", "))),
        ("campaign.id", id.clone()),
        ("campaign.name", name.clone()),
        ("campaign.adsetId", adset_id.clone()),
        ("campaign.adsetName", adset_name.clone()),
        ("campaign.adId", ad_id.clone()),
        ("campaign.adName", ad_name.clone()),
        ("tags", Some(link.tags.join(", "))),
        ("folder", link.folder.clone()),
    ]
}

fn differences(before: &Link, after: &Link) -> Vec<FieldChange> {
    let mut changes = Changes::new();
    for ((field, before), (_, after)) in audit_values(before).into_iter().zip(audit_values(after)) {
        changes.compare(field, before, after);
    }
    changes.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::tests::any_link;

    const LATER: Timestamp = Timestamp::from_millis(2);

    #[test]
    fn a_change_is_validated_with_the_stored_fields() {
        let change = LinkChange {
            kind: Change::Set(LinkKind::WebFunnel),
            ..LinkChange::default()
        };
        let refused = any_link().changed(change.clone(), &Precondition::None, LATER);
        assert!(matches!(refused, Err(Refusal::Invalid(_))));

        let destination = PageUrl::parse("https://example.com/").unwrap();
        let change = LinkChange {
            destination_url: Change::Set(destination),
            ..change
        };
        let changed = any_link()
            .changed(change, &Precondition::None, LATER)
            .unwrap();
        assert_eq!(changed.after.kind, LinkKind::WebFunnel);
        assert_eq!(changed.changes.len(), 2);
        assert_eq!(changed.after.tag(), "2");
    }

    #[test]
    fn a_link_never_becomes_or_stops_being_a_test_link() {
        for is_test in [false, true] {
            let link = Link {
                is_test,
                ..any_link()
            };
            let change = |is_test| LinkChange {
                is_test: Change::Set(is_test),
                ..LinkChange::default()
            };
            let unchanged = link.changed(change(is_test), &Precondition::None, LATER);
            assert_eq!(unchanged.unwrap().after, link);
            let refused = link.changed(change(!is_test), &Precondition::None, LATER);
            let Err(Refusal::Invalid(faults)) = refused else {
                panic!("the change is refused");
            };
            assert_eq!(faults.iter().next().unwrap().field, "test");
        }
    }

    #[test]
    fn null_restores_the_default_parameters() {
        let link = Link {
            pass_params: Vec::new(),
            ..any_link()
        };
        let change = LinkChange {
            pass_params: Change::Reset,
            ..LinkChange::default()
        };
        let after = link
            .changed(change, &Precondition::None, LATER)
            .unwrap()
            .after;
        assert_eq!(after.pass_params, fields::default_pass_params());
    }

    #[test]
    fn rejects_a_change_of_an_old_version() {
        let old = Precondition::AnyOf(vec!["9".to_owned()]);
        let refused = any_link().changed(LinkChange::default(), &old, LATER);
        assert_eq!(refused.map(|_| ()), Err(Refusal::VersionConflict));
    }
}
