//! An authorized page request.

use super::{CurrentSession, FailedRequest, busy, proof};
use crate::analysis::kept_in_app;
use crate::failure::Failure;
use crate::query::UrlQuery;
use crate::response::{self, see_other};
use crate::shell::{Section, Shell, app_url};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::{FromRequestParts, OriginalUri, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use std::fmt::Display;
use std::ops::Deref;
use tributary_domain::access::admission::SlotHolder;
use tributary_domain::access::{
    AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment, MembersWrite, Scope,
};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::AppName;
use tributary_store::report_slots::{ReportSlot, SlotKind};

/// Query parameter that selects live or test data.
pub(crate) const ENVIRONMENT: &str = "environment";

/// A page request by a user whose role has scope `S`, with the app that the path names.
pub(crate) struct PageContext<S> {
    pub(crate) authorized: Authorized<S>,
    pub(crate) session: CurrentSession,
    pub(crate) query: UrlQuery,
    apps: Vec<AppName>,
    app: Option<AppName>,
    path: Vec<(String, String)>,
    /// Requested environment. Both environments share the settings, so settings pages look the
    /// same in each.
    environment: Environment,
    current_path: String,
    is_answer: bool,
    is_trustworthy: bool,
    form_token: String,
}

impl<S> PageContext<S> {
    /// Returns the app that the page is about.
    pub(crate) fn app(&self) -> Result<&AppName, Failure> {
        self.app.as_ref().ok_or(Failure::NotFound)
    }

    /// Returns a parameter from the page's path.
    pub(crate) fn path_parameter(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(found, _)| found == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// Returns the path and query of this request, without `notice`.
    pub(super) fn target(&self) -> String {
        let query = self.query.with(&[]);
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{mark}{query}", self.current_path)
    }

    /// Returns the URL of one of the app's pages with a message about a submitted form, in the
    /// environment of this request.
    pub(crate) fn notice_url(&self, page: impl Display, notice: &str) -> Result<String, Failure> {
        let (app, page) = (self.app()?.id, page.to_string());
        let query = format!("notice={notice}");
        Ok(app_url(app, &page, &query, self.environment))
    }

    /// Redirects to one of the app's pages after a form, in the environment of this request.
    pub(crate) fn redirect(&self, page: impl Display, notice: &str) -> Result<Response, Failure> {
        Ok(see_other(&self.notice_url(page, notice)?))
    }

    /// Returns all of the organization's apps.
    pub(crate) fn apps(&self) -> &[AppName] {
        &self.apps
    }

    /// Returns the apps in the switcher. Archived apps are left out, except the current app.
    fn switcher(&self) -> Vec<AppName> {
        let is_here = |one: &AppName| self.app.as_ref().is_some_and(|app| app.id == one.id);
        let apps = self.apps.iter();
        apps.filter(|one| !one.archived || is_here(one))
            .cloned()
            .collect()
    }

    /// Returns the page's frame: menu, app switcher and environment.
    pub(crate) fn shell(&self, section: Section) -> Shell {
        let role = self.session.user.role;
        // An event or device exists in one environment only, so the switch links to the list.
        let is_single_item = ["event", "device"]
            .iter()
            .any(|name| !self.path_parameter(name).is_empty());
        let here = match &self.app {
            Some(app) if is_single_item => &format!("/apps/{}/events", app.id),
            _ => &self.current_path,
        };
        let url = |environment: Option<&str>| {
            let query = self
                .query
                .with(&[(ENVIRONMENT, environment), ("before", None)]);
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{here}{mark}{query}")
        };
        Shell {
            live: url(None),
            test: url(Some(Environment::Test.as_str())),
            email: self.session.user.email.as_str().to_owned(),
            role,
            organization: self.session.organization.name.as_str().to_owned(),
            form_token: self.form_token.clone(),
            apps: self.switcher(),
            app: self.app.clone(),
            section,
            environment: self.environment,
            is_answer: self.is_answer,
            notice: self.query.get("notice").and_then(crate::shell::notice),
            sees_apps: role.grants(AppsRead::NAME),
            changes_apps: role.grants(AppsWrite::NAME),
            manages_members: role.grants(MembersWrite::NAME),
            kept: if section.is_report() {
                kept_in_app(&self.query)
            } else {
                UrlQuery::default()
            },
        }
    }

    /// Renders the page.
    pub(crate) fn page(&self, template: &impl Template) -> Response {
        self.page_with(StatusCode::OK, template)
    }

    /// Renders the page with this status.
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
        let session = CurrentSession::from_request_parts(parts, handles).await?;
        let query = UrlQuery::of(parts.uri.query());
        let context = Self::for_session(session, query, parts, handles).await?;
        proof::require_for_page(&context, parts, handles).await?;
        Ok(context)
    }
}

/// A page request with a slot for a report. Every page that reads many rows takes one; the slot is
/// freed when the page is rendered.
pub(crate) struct ReportContext<S> {
    context: PageContext<S>,
    _slot: ReportSlot,
}

impl<S> Deref for ReportContext<S> {
    type Target = PageContext<S>;

    fn deref(&self) -> &PageContext<S> {
        &self.context
    }
}

impl<S: Scope> FromRequestParts<DashboardHandles> for ReportContext<S> {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let (context, slot) = admitted(SlotKind::Report, parts, handles).await?;
        Ok(Self {
            context,
            _slot: slot,
        })
    }
}

/// A page request with a slot for a log page, which reads one page of rows through an index. It does
/// not wait for the user's reports.
pub(crate) struct LogContext<S> {
    context: PageContext<S>,
    _slot: ReportSlot,
}

impl<S> Deref for LogContext<S> {
    type Target = PageContext<S>;

    fn deref(&self) -> &PageContext<S> {
        &self.context
    }
}

impl<S: Scope> FromRequestParts<DashboardHandles> for LogContext<S> {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let (context, slot) = admitted(SlotKind::Log, parts, handles).await?;
        Ok(Self {
            context,
            _slot: slot,
        })
    }
}

/// A request for a file with a slot for an export, which is freed when the last byte is sent.
pub(crate) struct ExportContext<S> {
    context: PageContext<S>,
    _slot: ReportSlot,
}

impl<S> Deref for ExportContext<S> {
    type Target = PageContext<S>;

    fn deref(&self) -> &PageContext<S> {
        &self.context
    }
}

impl<S> ExportContext<S> {
    /// Returns the data for the audit log entry of an export that begins now.
    pub(crate) fn origin(&self, handles: &DashboardHandles) -> AuditContext {
        AuditContext {
            environment: self.authorized.environment(),
            ..self.session.origin(handles)
        }
    }
}

impl<S: Scope> FromRequestParts<DashboardHandles> for ExportContext<S> {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let (context, slot) = admitted(SlotKind::Export, parts, handles).await?;
        Ok(Self {
            context,
            _slot: slot,
        })
    }
}

/// Authorizes a page request and waits for its slot. Without a slot, the answer is a page with the
/// menu that tries again.
async fn admitted<S: Scope>(
    kind: SlotKind,
    parts: &mut Parts,
    handles: &DashboardHandles,
) -> Result<(PageContext<S>, ReportSlot), Failure> {
    let context = PageContext::<S>::from_request_parts(parts, handles).await?;
    let holder = SlotHolder::from(&context.authorized);
    match handles.report_slots.admit(kind, holder).await {
        Ok(slot) => Ok((context, slot)),
        Err(rejection) => Err(Failure::Busy(Box::new(busy::page(&context, rejection)))),
    }
}

impl<S: Scope> PageContext<S> {
    /// Builds the context for an authenticated session.
    pub(super) async fn for_session(
        session: CurrentSession,
        query: UrlQuery,
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        proof::lead_to_factor(&session, parts, handles).await?;
        let requested = query.get(ENVIRONMENT).and_then(Environment::parse);
        let environment = requested.unwrap_or(Environment::Live);
        let authorized = session.authorize::<S>(environment)?;
        let names = session.authorize::<AnalyticsRead>(environment)?;
        let apps = visible_apps(&session, &names, handles).await?;
        let path = path_parameters(parts, handles).await;
        // The full path in the browser; a nested router sees only part of it.
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
            form_token: handles.keyring.form_token(session.token_digest),
            session,
            query,
            apps,
            app,
            path,
            environment,
            current_path: uri.path().to_owned(),
            is_answer: !parts.method.is_safe(),
            is_trustworthy: handles.own_origin.is_trustworthy(),
        })
    }
}

impl PageContext<AnalyticsRead> {
    /// Builds the context of an error page. It is about the app in the path, if there is one that the
    /// user may see.
    pub(super) async fn for_failure(
        session: CurrentSession,
        request: &FailedRequest,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let query = UrlQuery::of(request.uri.query());
        let requested = query.get(ENVIRONMENT).and_then(Environment::parse);
        let environment = requested.unwrap_or(Environment::Live);
        let authorized = session.authorize::<AnalyticsRead>(environment)?;
        let apps = visible_apps(&session, &authorized, handles).await?;
        let mut segments = request.uri.path().split('/').skip(1);
        let named = (segments.next() == Some("apps")).then(|| segments.next());
        let id = named.flatten().and_then(|text| AppId::parse(text).ok());
        let app = apps.iter().find(|app| Some(app.id) == id).cloned();
        Ok(Self {
            authorized,
            form_token: handles.keyring.form_token(session.token_digest),
            session,
            // The address is wrong in both environments, so the switch leads to the overview.
            current_path: id.map_or_else(String::new, |id| format!("/apps/{id}")),
            query: UrlQuery::default(),
            apps,
            app,
            path: Vec::new(),
            environment,
            is_answer: !request.is_safe,
            is_trustworthy: handles.own_origin.is_trustworthy(),
        })
    }
}

/// Returns the organization's apps. A user who has to set up a second factor first sees none.
async fn visible_apps(
    session: &CurrentSession,
    caller: &Authorized<AnalyticsRead>,
    handles: &DashboardHandles,
) -> Result<Vec<AppName>, Failure> {
    if session.factors.must_set_up(session.method) {
        return Ok(Vec::new());
    }
    Ok(handles.store.app_names(caller).await?)
}

async fn path_parameters(parts: &mut Parts, handles: &DashboardHandles) -> Vec<(String, String)> {
    // A path that is not UTF-8 has no parameters.
    let path = RawPathParams::from_request_parts(parts, handles).await;
    path.map(|path| {
        path.iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    })
    .unwrap_or_default()
}
