//! The frame of a dashboard page: menu, app switcher and environment.

use crate::access::ENVIRONMENT;
use crate::analysis::kept_between_apps;
use crate::query::UrlQuery;
use std::fmt::Display;
use tributary_domain::access::Environment;
use tributary_domain::access::person::Role;
use tributary_domain::vocabulary::id::AppId;
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
    pub(crate) fn item_url(&self, page: &str, id: impl Display) -> String {
        self.app_url(format!("{page}/{id}"))
    }

    /// Returns the URL of one of the app's pages in the current environment.
    pub(crate) fn app_url(&self, page: impl Display) -> String {
        self.query_url(page, "")
    }

    /// Returns the URL of one of the app's pages with a query, in the current environment.
    pub(crate) fn query_url(&self, page: impl Display, query: impl Display) -> String {
        let query = UrlQuery::of(Some(&query.to_string()));
        self.page_url(&page.to_string(), &query)
    }

    fn page_url(&self, page: &str, query: &UrlQuery) -> String {
        let query = query.with(&[(ENVIRONMENT, None)]);
        match &self.app {
            Some(app) => app_url(app.id, page, &query, self.environment),
            None => "/home".to_owned(),
        }
    }

    /// Returns the URL of one of the app's reports, with the dates and filters of this page.
    pub(crate) fn report_url(&self, page: &str) -> String {
        self.page_url(page, &self.kept)
    }

    /// Returns the URL of Explore by a dimension and sorted by a metric, with the dates and filters of
    /// this page.
    pub(crate) fn ranking_url(&self, dimension: &str, metric: &str) -> String {
        let changes = [("groupBy", Some(dimension)), ("sort", Some(metric))];
        let query = UrlQuery::of(Some(&self.kept.with(&changes)));
        self.page_url("explore", &query)
    }

    /// Returns the URL of another app's overview, with the dates and the filters that mean the same
    /// in every app.
    pub(crate) fn switch_url(&self, app: &AppName) -> String {
        let kept = kept_between_apps(&self.kept).with(&[(ENVIRONMENT, None)]);
        app_url(app.id, "", &kept, self.environment)
    }

    /// Returns the URL of the Explore page filtered by one value. The URL works even if the item
    /// was deleted.
    pub(crate) fn explore_url(&self, dimension: &str, id: impl Display) -> String {
        self.query_url("explore", format_args!("{dimension}={id}"))
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

/// Returns the URL of one of an app's pages with a query, which does not name the environment. Forms
/// and redirects use it as well, so that work on test data does not end on live data.
pub(crate) fn app_url(app: AppId, page: &str, query: &str, environment: Environment) -> String {
    let environment = match environment {
        Environment::Live => "",
        Environment::Test => "environment=test",
    };
    let slash = if page.is_empty() { "" } else { "/" };
    let parts = [query, environment].into_iter();
    let query = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("/apps/{app}{slash}{page}{mark}{}", query.join("&"))
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
