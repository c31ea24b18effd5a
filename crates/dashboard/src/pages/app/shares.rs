//! `/apps/{app}/shares` — links that show an overview to people without an account.

use crate::access::{FormSubmission, PageContext};
use crate::analysis::{AnalysisBar, ReportKind};
use crate::failure::Failure;
use crate::form_state::{FormState, TypedForm};
use crate::query::UrlQuery;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use crate::views::{report_url, view_query};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::resource::SharesRead;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::report::view::{
    ReportPage, SHARE_DAYS_DEFAULT, SHARE_DAYS_MAX, ShareLink, check_view_query, parse_share_days,
    share_expiry,
};
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::id::ShareId;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::NewShareLink;

#[derive(Template)]
#[template(path = "shares.html")]
struct SharesPage {
    shell: Shell,
    form: FormState,
    /// Dates and filters of the overview to share.
    bar: AnalysisBar,
    shares: Vec<ShareRow>,
    /// URL of a new link, shown once.
    new_url: Option<String>,
}

struct ShareRow {
    id: String,
    name: String,
    /// URL of the overview that the link shows.
    url: String,
    created: String,
    expires: String,
    is_open: bool,
}

impl ShareRow {
    fn of(share: ShareLink, now: Timestamp, zone: &Timezone) -> Self {
        Self {
            id: share.id.to_string(),
            created: text::date(share.created_at, zone),
            expires: text::date(share.expires_at, zone),
            is_open: share.is_open(now),
            name: share.name.as_str().to_owned(),
            url: report_url(share.app, ReportPage::Overview, &share.query),
        }
    }
}

impl SharesPage {
    fn days_hint(&self) -> String {
        format!("From 1 to {SHARE_DAYS_MAX}. After that, the link shows nothing.")
    }
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    query: UrlQuery,
    typed: Option<TypedForm>,
) -> Result<SharesPage, Failure> {
    let app = context.app()?;
    let stored = FormState::default()
        .with("days", SHARE_DAYS_DEFAULT.to_string())
        .with("query", view_query(&query));
    let bar = AnalysisBar::for_app(
        ReportKind::Figures,
        handles,
        &caller.analytics_access(),
        app,
        query,
    )
    .await?;
    let shares = handles.store.shares(caller, app.id).await?;
    let now = handles.runtime.now();
    let row = |share| ShareRow::of(share, now, &app.timezone);
    Ok(SharesPage {
        shell: context.shell(Section::Overview),
        form: TypedForm::or_stored(typed, stored),
        bar,
        shares: shares.into_iter().map(row).collect(),
        new_url: None,
    })
}

/// Shows the links, and a form to share the overview with the dates and filters of the URL.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: PageContext<SharesRead>,
) -> Result<Response, Failure> {
    let query = context.query.clone();
    let page = page(&handles, &context, &context.authorized, query, None).await?;
    Ok(context.page(&page))
}

/// Creates a link and shows its URL once.
pub(crate) async fn create(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let form = &submission.form;
    let query = UrlQuery::of(Some(&form.field("query")));
    let mut faults = Faults::new();
    let name = faults.check("name", Name::parse(&form.field("name")));
    let days = faults.check("days", parse_share_days(&form.field("days")));
    faults.check("query", check_view_query(&view_query(&query)));
    let caller = submission.authorized.read_access();
    let (Some(name), Some(days), true) = (name, days, faults.is_empty()) else {
        let form = FormState::from_form(form).with_faults(faults);
        let typed = TypedForm {
            form,
            is_conflict: false,
        };
        let status = typed.status();
        let page = page(&handles, &submission.context, &caller, query, Some(typed)).await?;
        return Ok(submission.page_with(status, &page));
    };
    let at = handles.runtime.now();
    let environment = query.get("environment").and_then(Environment::parse);
    let share = ShareLink {
        id: ShareId::new(at, handles.runtime.random_bytes()),
        organization: submission.authorized.organization(),
        app: submission.app()?.id,
        environment: environment.unwrap_or(Environment::Live),
        name,
        query: view_query(&query),
        created_by: submission.session.user.id,
        created_at: at,
        expires_at: share_expiry(at, days),
        revoked_at: None,
    };
    let token = handles.runtime.new_key(KeyKind::Share, Environment::Live);
    let new = NewShareLink {
        share,
        digest: token.digest(),
    };
    let origin = submission.origin(&handles);
    let created = handles
        .store
        .create_share(&submission.authorized, new, origin);
    created.await?;
    let mut page = page(&handles, &submission.context, &caller, query, None).await?;
    page.new_url = Some(format!("{}/shared/{}", handles.base_url, token.reveal()));
    Ok(submission.page(&page))
}

/// `POST /apps/{app}/shares/{share}/revoke` — revokes a link.
pub(crate) async fn revoke(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, origin) = (submission.app()?.id, submission.origin(&handles));
    let share =
        ShareId::parse(submission.path_parameter("share")).map_err(|_| Failure::NotFound)?;
    let caller = &submission.authorized;
    let revoked = handles.store.revoke_share(caller, app, share, origin);
    revoked.await?;
    submission.redirect("shares", "revoked")
}
