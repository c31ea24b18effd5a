//! The frame of a dashboard page: menu, app switcher and environment.

use crate::analysis::kept_between_apps;
use crate::query::UrlQuery;
use tributary_domain::access::Environment;
use tributary_domain::access::person::Role;
use tributary_store::AppName;

/// Menu entry of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Portfolio,
    Overview,
    Explore,
    Cohorts,
    Events,
    Links,
    Integrations,
    Deliveries,
    Held,
    ConversionValues,
    Costs,
    Notices,
    Start,
    Settings,
    Keys,
    Team,
    AuditLog,
    Account,
    /// A page without a menu entry: it waits for its data, or shows an error.
    Unlisted,
}

/// The pages of an app's settings: path and label. All belong to [`Section::Settings`].
pub(crate) static SETTINGS_PAGES: [(&str, &str); 3] = [
    ("settings", "Settings"),
    ("settings/mapping", "Event mapping"),
    ("settings/what-if", "What if"),
];

/// Data for the frame around a page.
pub(crate) struct Shell {
    pub(crate) email: String,
    pub(crate) role: Role,
    pub(crate) organization: String,
    /// CSRF token for forms.
    pub(crate) form_token: String,
    pub(crate) apps: Vec<AppName>,
    pub(crate) app: Option<AppName>,
    pub(crate) section: Section,
    pub(crate) environment: Environment,
    /// URLs of this page with live and with test data.
    pub(crate) live: String,
    pub(crate) test: String,
    /// Message about the last submitted form.
    pub(crate) notice: Option<&'static str>,
    /// Whether the user may see links, integrations and settings.
    pub(crate) sees_apps: bool,
    /// Whether the user may change links, integrations and settings.
    pub(crate) changes_apps: bool,
    pub(crate) manages_members: bool,
    /// Whether the page is the answer to a form.
    pub(crate) is_answer: bool,
    /// Dates and filters that stay when the user goes to another report.
    pub(crate) kept: UrlQuery,
}

impl Section {
    /// Returns whether the page is a report with dates and filters in its URL.
    pub(crate) const fn is_report(self) -> bool {
        matches!(self, Self::Overview | Self::Explore | Self::Cohorts)
    }
}

impl Shell {
    /// Returns the URL of one of the app's items, by id.
    pub(crate) fn item_url(&self, page: &str, id: impl std::fmt::Display) -> String {
        self.app_url(format!("{page}/{id}"))
    }

    /// Returns the URL of one of the app's pages in the current environment.
    pub(crate) fn app_url(&self, page: impl AsRef<str>) -> String {
        let page = page.as_ref();
        let Some(app) = &self.app else {
            return "/home".to_owned();
        };
        let slash = if page.is_empty() { "" } else { "/" };
        format!("/apps/{}{slash}{page}{}", app.id, self.environment_query())
    }

    /// Returns the URL of one of the app's reports, with the dates and filters of this page.
    pub(crate) fn report_url(&self, page: &str) -> String {
        let slash = if page.is_empty() { "" } else { "/" };
        let path = format!("/apps/{}{slash}{page}", self.app_id());
        self.with_environment(&path, &self.kept)
    }

    /// Returns the URL of Explore by a dimension and sorted by a metric, with the dates and filters of
    /// this page.
    pub(crate) fn ranking_url(&self, dimension: &str, metric: &str) -> String {
        let changes = [("groupBy", Some(dimension)), ("sort", Some(metric))];
        let query = UrlQuery::of(Some(&self.kept.with(&changes)));
        self.with_environment(&format!("/apps/{}/explore", self.app_id()), &query)
    }

    /// Returns the URL of another app's overview, with the dates and the filters that mean the same
    /// in every app.
    pub(crate) fn switch_url(&self, app: &AppName) -> String {
        let path = format!("/apps/{}", app.id);
        self.with_environment(&path, &kept_between_apps(&self.kept))
    }

    fn with_environment(&self, path: &str, query: &UrlQuery) -> String {
        let environment = match self.environment {
            Environment::Live => None,
            Environment::Test => Some(Environment::Test.as_str()),
        };
        let query = query.with(&[("environment", environment)]);
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{path}{mark}{query}")
    }

    /// Returns the URL of the Explore page filtered by one value. The URL works even if the item
    /// was deleted.
    pub(crate) fn explore_url(&self, dimension: &str, id: impl std::fmt::Display) -> String {
        let page = self.app_url("explore");
        let mark = if page.contains('?') { '&' } else { '?' };
        format!("{page}{mark}{dimension}={id}")
    }

    /// Returns the query string that keeps the current environment.
    pub(crate) const fn environment_query(&self) -> &'static str {
        match self.environment {
            Environment::Live => "",
            Environment::Test => "?environment=test",
        }
    }

    pub(crate) fn is_test(&self) -> bool {
        self.environment == Environment::Test
    }

    pub(crate) fn is(&self, section: &Section) -> bool {
        self.section == *section
    }

    /// Returns the app's id as text.
    pub(crate) fn app_id(&self) -> String {
        self.app
            .as_ref()
            .map(|app| app.id.to_string())
            .unwrap_or_default()
    }

    pub(crate) fn app_name(&self) -> &str {
        self.app.as_ref().map_or("", |app| app.name.as_str())
    }

    pub(crate) fn is_app(&self, app: &AppName) -> bool {
        self.app.as_ref().is_some_and(|one| one.id == app.id)
    }
}

/// Returns the message for the `notice` parameter of a redirect. Unknown values are ignored.
pub(crate) fn notice(word: &str) -> Option<&'static str> {
    Some(match word {
        "saved" => "Saved.",
        "view" => "View saved.",
        "verified" => "Verified. Links now use this domain.",
        "created" => "Created.",
        "deleted" => "Deleted.",
        "removed" => "Removed.",
        "erased" => "Erased. Figures stay the same; the events continue under a pseudonym.",
        "revoked" => "Revoked.",
        "taken-over" => "Taken over. If another person knows the key, rotate it.",
        "retried" => "Queued for delivery again.",
        "released" => "Released. The figures change within seconds.",
        "rejected" => "Rejected.",
        "more" => "Decided about 100 installs. More match the filter: decide again to continue.",
        "resumed" => "Resumed. Pending deliveries are sent now.",
        "pulling" => "The import starts within seconds. Reload the page to see the result.",
        "not-pulling" => {
            "No import was started: one is running, one ended less than five minutes ago, or the \
             network asked for a wait. “Next import” shows the time of the next one."
        }
        "unchanged" => "Nothing was changed.",
        "connected" => "Your account is connected. You can sign in at the provider from now on.",
        "sessions" => "Signed out there.",
        "password" => "Password changed. All your other sessions were signed out.",
        _ => return None,
    })
}
