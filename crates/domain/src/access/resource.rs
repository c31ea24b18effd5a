//! Which scope reading each resource requires, in the REST API and in the dashboard.
//!
//! Handlers and pages name the aliases in this table as their scope. A test walks all paths with
//! every role and every permission, so a resource cannot be readable in one of the two only.

use super::{AnalyticsRead, AppsRead, AppsWrite, AuditExport, PeopleExport, Scope, ScopeName};

/// A resource with the paths that show it.
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    /// Name of the alias for its scope.
    pub name: &'static str,
    /// Scope that reading it requires.
    pub scope: ScopeName,
    /// Paths of the REST API's GET endpoints.
    pub endpoints: &'static [&'static str],
    /// Paths of the dashboard's pages.
    pub pages: &'static [&'static str],
}

macro_rules! resources {
    ($(
        $(#[doc = $doc:literal])+
        $alias:ident = $scope:ident { endpoints: [$($endpoint:literal),*], pages: [$($page:literal),*] }
    )+) => {
        $(
            $(#[doc = $doc])+
            pub type $alias = $scope;
        )+

        /// All resources.
        pub const RESOURCES: &[Resource] = &[$(
            Resource {
                name: stringify!($alias),
                scope: <$scope as Scope>::NAME,
                endpoints: &[$($endpoint),*],
                pages: &[$($page),*],
            },
        )+];
    };
}

resources! {
    /// Scope for an app's key figures.
    OverviewRead = AnalyticsRead {
        endpoints: ["/api/v1/apps/{appId}/overview"],
        pages: ["/apps/{app}"]
    }
    /// Scope for reports on an app.
    StatsRead = AnalyticsRead {
        endpoints: ["/api/v1/apps/{appId}/stats", "/api/v1/apps/{appId}/skan/stats"],
        pages: ["/apps/{app}/explore", "/apps/{app}/explore.csv"]
    }
    /// Scope for the event log.
    EventsRead = AnalyticsRead {
        endpoints: ["/api/v1/apps/{appId}/events"],
        pages: ["/apps/{app}/events", "/apps/{app}/events/rows", "/apps/{app}/events/{event}"]
    }
    /// Scope for one's own account.
    AccountRead = AnalyticsRead {
        endpoints: [],
        pages: ["/account", "/account/authenticator", "/account/passkeys"]
    }
    /// Scope for the comparison of all apps.
    PortfolioRead = AppsRead { endpoints: ["/api/v1/portfolio"], pages: ["/portfolio"] }
    /// Scope for retention and revenue by install date.
    CohortsRead = AppsRead {
        endpoints: ["/api/v1/apps/{appId}/cohorts"],
        pages: ["/apps/{app}/cohorts", "/apps/{app}/cohorts.csv"]
    }
    /// Scope for single devices, which show candidate clicks and user ids.
    DevicesRead = AppsRead {
        endpoints: ["/api/v1/apps/{appId}/devices/{deviceId}"],
        pages: ["/apps/{app}/devices/{device}"]
    }
    /// Scope for everything that is stored about a person.
    PersonalDataRead = PeopleExport {
        endpoints: [
            "/api/v1/apps/{appId}/devices/{deviceId}/data",
            "/api/v1/apps/{appId}/users/{userId}/data"
        ],
        pages: ["/apps/{app}/devices/{device}/data", "/apps/{app}/users/{user}/data"]
    }
    /// Scope for whole tables.
    ExportsRead = AppsRead {
        endpoints: ["/api/v1/apps/{appId}/export"],
        pages: ["/apps/{app}/events.csv"]
    }
    /// Scope for links that share a report.
    SharesRead = AppsRead { endpoints: [], pages: ["/apps/{app}/shares"] }
    /// Scope for apps and their settings.
    SettingsRead = AppsRead {
        endpoints: ["/api/v1/apps", "/api/v1/apps/{appId}", "/api/v1/apps/{appId}/sdk-keys"],
        pages: ["/apps/{app}/settings", "/apps/{app}/settings/mapping", "/apps/{app}/start"]
    }
    /// Scope for trying other attribution rules, which shows devices.
    WhatIfRead = AppsRead { endpoints: [], pages: ["/apps/{app}/settings/what-if"] }
    /// Scope for links.
    LinksRead = AppsRead {
        endpoints: [
            "/api/v1/apps/{appId}/links",
            "/api/v1/apps/{appId}/links/{linkId}",
            "/api/v1/apps/{appId}/links/{linkId}/qr.svg",
            "/api/v1/apps/{appId}/links/{linkId}/qr.png"
        ],
        pages: [
            "/apps/{app}/links",
            "/apps/{app}/links/{link}",
            "/apps/{app}/links/{link}/qr.svg",
            "/apps/{app}/links/{link}/qr.png"
        ]
    }
    /// Scope for reports and alerts that are sent to people.
    NoticesRead = AppsRead {
        endpoints: [
            "/api/v1/apps/{appId}/notices",
            "/api/v1/apps/{appId}/notices/{noticeId}"
        ],
        pages: ["/apps/{app}/notices", "/apps/{app}/notices/{notice}"]
    }
    /// Scope for integrations with networks and billing providers.
    IntegrationsRead = AppsRead {
        endpoints: [
            "/api/v1/apps/{appId}/integrations",
            "/api/v1/apps/{appId}/integrations/{network}",
            "/api/v1/apps/{appId}/billing"
        ],
        pages: ["/apps/{app}/integrations", "/apps/{app}/integrations/{network}"]
    }
    /// Scope for deliveries.
    DeliveriesRead = AppsRead {
        endpoints: [
            "/api/v1/apps/{appId}/deliveries",
            "/api/v1/apps/{appId}/deliveries/{deliveryId}",
            "/api/v1/apps/{appId}/undelivered"
        ],
        pages: ["/apps/{app}/deliveries", "/apps/{app}/undelivered"]
    }
    /// Scope for held installs.
    HeldRead = AppsRead {
        endpoints: ["/api/v1/apps/{appId}/held"],
        pages: ["/apps/{app}/held"]
    }
    /// Scope for ad costs.
    CostsRead = AppsRead {
        endpoints: [
            "/api/v1/apps/{appId}/costs",
            "/api/v1/apps/{appId}/cost-sources",
            "/api/v1/apps/{appId}/cost-sources/{network}"
        ],
        pages: ["/apps/{app}/costs", "/apps/{app}/costs/{network}"]
    }
    /// Scope for conversion values and postbacks.
    ConversionValuesRead = AppsRead {
        endpoints: [
            "/api/v1/apps/{appId}/skan",
            "/api/v1/apps/{appId}/skan/versions",
            "/api/v1/apps/{appId}/skan/postbacks",
            "/api/v1/skan/presets"
        ],
        pages: ["/apps/{app}/conversion-values", "/apps/{app}/conversion-values/postbacks"]
    }
    /// Scope for the organization's audit log, keys and members.
    OrganizationRead = AppsRead {
        endpoints: ["/api/v1/audit-log", "/api/v1/keys", "/api/v1/keys/{keyId}"],
        pages: ["/audit-log", "/keys", "/team"]
    }
    /// Scope for the whole audit log with its chain.
    AuditLogExport = AuditExport { endpoints: ["/api/v1/audit-log/export"], pages: [] }
    /// Scope for secrets and for forms that create something.
    SecretsRead = AppsWrite {
        endpoints: ["/api/v1/apps/{appId}/alert-webhook"],
        pages: ["/apps/new", "/apps/{app}/links/new", "/apps/{app}/links/bulk", "/apps/{app}/notices/new"]
    }
}

/// Returns the scope that a dashboard page requires; `None` for an unknown page.
pub fn page_scope(page: &str) -> Option<ScopeName> {
    let mut resources = RESOURCES.iter();
    let found = resources.find(|resource| resource.pages.contains(&page));
    found.map(|resource| resource.scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Permission;
    use crate::access::person::Role;
    use std::collections::BTreeSet;

    #[test]
    fn a_path_shows_one_resource() {
        let paths = RESOURCES
            .iter()
            .flat_map(|one| one.endpoints.iter().chain(one.pages));
        let mut seen = BTreeSet::new();
        for path in paths {
            assert!(seen.insert(path), "{path} is listed twice");
        }
    }

    #[test]
    fn roles_and_permissions_read_the_same_resources() {
        let pairs = [
            (Role::Viewer, Permission::Analytics),
            (Role::Analyst, Permission::ReadOnly),
            (Role::Admin, Permission::Full),
            (Role::Owner, Permission::Full),
        ];
        for resource in RESOURCES {
            for (role, permission) in pairs {
                let name = format!("{} {role:?}", resource.name);
                let (by_role, by_key) = (
                    role.grants(resource.scope),
                    permission.grants(resource.scope),
                );
                assert_eq!(by_role, by_key, "{name}");
            }
        }
    }

    #[test]
    fn viewers_read_figures_and_events_only() {
        for (page, is_readable) in [
            ("/apps/{app}", true),
            ("/apps/{app}/events", true),
            ("/account", true),
            ("/portfolio", false),
            ("/apps/{app}/cohorts", false),
            ("/apps/{app}/devices/{device}", false),
            ("/audit-log", false),
        ] {
            let scope = page_scope(page).unwrap();
            assert_eq!(Role::Viewer.grants(scope), is_readable, "{page}");
        }
        assert_eq!(page_scope("/unknown"), None);
    }
}
