//! What surrounds a page of somebody who is signed in: the menu, the app, the world that is looked at.

use tributary_domain::access::Environment;
use tributary_domain::access::person::Role;
use tributary_store::AppName;

/// Where in the menu a page is.
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
    ConversionValues,
    Costs,
    Start,
    Settings,
    Keys,
    Team,
    AuditLog,
    Account,
}

/// What surrounds a page.
pub(crate) struct Shell {
    pub(crate) email: String,
    pub(crate) role: Role,
    pub(crate) organization: String,
    /// What every form carries.
    pub(crate) form_token: String,
    pub(crate) apps: Vec<AppName>,
    pub(crate) app: Option<AppName>,
    pub(crate) section: Section,
    pub(crate) environment: Environment,
    /// This page with live data, and with test data.
    pub(crate) live: String,
    pub(crate) test: String,
    /// What the last form came to.
    pub(crate) notice: Option<&'static str>,
    /// Whether the person sees links, integrations and settings.
    pub(crate) sees_apps: bool,
    /// Whether the person may change them.
    pub(crate) changes_apps: bool,
    pub(crate) manages_members: bool,
}

impl Shell {
    /// The address of a thing of the app, by its id.
    pub(crate) fn item(&self, page: &str, id: impl std::fmt::Display) -> String {
        self.of_app(format!("{page}/{id}"))
    }

    /// The address of a page of the app, in the same world.
    pub(crate) fn of_app(&self, page: impl AsRef<str>) -> String {
        let page = page.as_ref();
        let Some(app) = &self.app else {
            return "/portfolio".to_owned();
        };
        let slash = if page.is_empty() { "" } else { "/" };
        format!("/apps/{}{slash}{page}{}", app.id, self.world())
    }

    /// The address of the figures of one value of a dimension, which are there when the thing itself is gone.
    pub(crate) fn figures_of(&self, dimension: &str, id: impl std::fmt::Display) -> String {
        let page = self.of_app("explore");
        let mark = if page.contains('?') { '&' } else { '?' };
        format!("{page}{mark}{dimension}={id}")
    }

    /// What keeps an address in the world that is looked at.
    pub(crate) const fn world(&self) -> &'static str {
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

    /// The app's id, as text.
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

/// What the last form came to, by the word that its redirect carries. Words of others say nothing.
pub(crate) fn notice(word: &str) -> Option<&'static str> {
    Some(match word {
        "saved" => "Saved.",
        "created" => "Created.",
        "deleted" => "Deleted.",
        "removed" => "Removed.",
        "revoked" => "Revoked.",
        "retried" => "On its way again.",
        "resumed" => "Resumed: what waited is sent now.",
        "unchanged" => "Nothing was changed.",
        "password" => "Your password is changed. Every other session of yours has ended.",
        _ => return None,
    })
}
