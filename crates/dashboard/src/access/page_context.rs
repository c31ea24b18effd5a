//! Somebody who looks at a page.

use super::CurrentSession;
use crate::failure::Failure;
use crate::query::UrlQuery;
use crate::response;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::{FromRequestParts, OriginalUri, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use tributary_domain::access::{
    AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment, MembersWrite, Scope,
};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::AppName;

/// The parameter that chooses between live and test data.
pub(crate) const ENVIRONMENT: &str = "environment";

/// Somebody whose role carries scope `S`, and the app of the page, where its path names one.
pub(crate) struct PageContext<S> {
    pub(crate) authorized: Authorized<S>,
    pub(crate) session: CurrentSession,
    pub(crate) query: UrlQuery,
    apps: Vec<AppName>,
    app: Option<AppName>,
    path: Vec<(String, String)>,
    /// As it was asked for. What can only be changed with live data is shown in both.
    environment: Environment,
    current_path: String,
    is_trustworthy: bool,
    form_token: String,
}

impl<S> PageContext<S> {
    /// The app of the page.
    pub(crate) fn app(&self) -> Result<&AppName, Failure> {
        self.app.as_ref().ok_or(Failure::NotFound)
    }

    /// A part of the page's path.
    pub(crate) fn path_parameter(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(found, _)| found == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// Every app of the organization.
    pub(crate) fn apps(&self) -> &[AppName] {
        &self.apps
    }

    /// The apps that the switcher offers: archived ones only while they are looked at.
    fn switcher(&self) -> Vec<AppName> {
        let is_here = |one: &AppName| self.app.as_ref().is_some_and(|app| app.id == one.id);
        let apps = self.apps.iter();
        apps.filter(|one| !one.archived || is_here(one))
            .cloned()
            .collect()
    }

    /// What surrounds the page.
    pub(crate) fn shell(&self, section: Section) -> Shell {
        let role = self.session.user.role;
        // An event or a device is of one of them; the list is there in both.
        let is_of_one = ["event", "device"]
            .iter()
            .any(|name| !self.path_parameter(name).is_empty());
        let here = match &self.app {
            Some(app) if is_of_one => &format!("/apps/{}/events", app.id),
            _ => &self.current_path,
        };
        let world = |environment: Option<&str>| {
            let query = self
                .query
                .with(&[(ENVIRONMENT, environment), ("before", None)]);
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{here}{mark}{query}")
        };
        Shell {
            live: world(None),
            test: world(Some(Environment::Test.as_str())),
            email: self.session.user.email.as_str().to_owned(),
            role,
            organization: self.session.organization.name.as_str().to_owned(),
            form_token: self.form_token.clone(),
            apps: self.switcher(),
            app: self.app.clone(),
            section,
            environment: self.environment,
            notice: self.query.get("notice").and_then(crate::shell::notice),
            sees_apps: role.grants(AppsRead::NAME),
            changes_apps: role.grants(AppsWrite::NAME),
            manages_members: role.grants(MembersWrite::NAME),
        }
    }

    /// The page, as an answer.
    pub(crate) fn page(&self, template: &impl Template) -> Response {
        self.page_with(StatusCode::OK, template)
    }

    /// The page, as an answer with this status.
    pub(crate) fn page_with(&self, status: StatusCode, template: &impl Template) -> Response {
        response::app_page(status, template, self.is_trustworthy)
    }
}

impl<S: Scope> FromRequestParts<DashboardHandles> for PageContext<S> {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let visitor = CurrentSession::from_request_parts(parts, handles).await?;
        let query = UrlQuery::of(parts.uri.query());
        Self::for_session(visitor, query, parts, handles).await
    }
}

impl<S: Scope> PageContext<S> {
    /// For a visitor who is known already.
    pub(super) async fn for_session(
        visitor: CurrentSession,
        query: UrlQuery,
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let asked = query.get(ENVIRONMENT).and_then(Environment::parse);
        let environment = asked.unwrap_or(Environment::Live);
        let authorized = visitor.authorize::<S>(environment)?;
        let names = visitor.authorize::<AnalyticsRead>(environment)?;
        let apps = handles.store.app_names(&names).await?;
        let path = path_parameters(parts, handles).await;
        // The path of the browser: that of a page of an app has lost its beginning on the way here.
        let OriginalUri(uri) = OriginalUri::from_request_parts(parts, handles)
            .await
            .unwrap_or_else(|never| match never {});
        let app = match path.iter().find(|(name, _)| name == "app") {
            None => None,
            Some((_, text)) => {
                let id = AppId::parse(text).map_err(|_| Failure::NotFound)?;
                let found = apps.iter().find(|app| app.id == id).cloned();
                Some(found.ok_or(Failure::NotFound)?)
            }
        };
        Ok(Self {
            authorized,
            form_token: handles.keyring.form_token(visitor.token_digest),
            session: visitor,
            query,
            apps,
            app,
            path,
            environment,
            current_path: uri.path().to_owned(),
            is_trustworthy: handles.own_origin.is_trustworthy(),
        })
    }
}

async fn path_parameters(parts: &mut Parts, handles: &DashboardHandles) -> Vec<(String, String)> {
    // A path that is no text names nothing.
    let path = RawPathParams::from_request_parts(parts, handles).await;
    path.map(|path| {
        path.iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    })
    .unwrap_or_default()
}
