//! `POST /apps/{app}/views` — saves the dates and filters of a report under a name.

use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::query::UrlQuery;
use crate::response::see_other;
use crate::state::DashboardHandles;
use crate::views::{report_url, view_query};
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::view::{ReportPage, SavedView, check_view_query};
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::id::ViewId;
use tributary_domain::vocabulary::text::Name;

/// Saves a view and shows it.
pub(crate) async fn save(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let form = &submission.form;
    let page = ReportPage::parse(&form.field("page")).ok_or(Failure::NotFound)?;
    let query = view_query(&UrlQuery::of(Some(&form.field("query"))));
    let mut faults = Faults::new();
    let name = faults.check("name", Name::parse(&form.field("name")));
    faults.check("query", check_view_query(&query));
    let Some(name) = name.filter(|_| faults.is_empty()) else {
        return Err(Failure::Refused(Refusal::Invalid(faults)));
    };
    let (app, at) = (submission.app()?.id, handles.runtime.now());
    let view = SavedView {
        id: ViewId::new(at, handles.runtime.random_bytes()),
        app,
        user: submission.session.user.id,
        name,
        page,
        query: query.clone(),
        created_at: at,
    };
    handles
        .store
        .save_view(&submission.authorized, view)
        .await?;
    let query = UrlQuery::of(Some(&query));
    let query = query.with(&[("notice", Some("view"))]);
    Ok(see_other(&report_url(app, page, &query)))
}

/// `POST /apps/{app}/views/{view}/delete` — deletes one of the user's views.
pub(crate) async fn delete(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let (app, user) = (submission.app()?.id, submission.session.user.id);
    let view = ViewId::parse(submission.path_parameter("view")).map_err(|_| Failure::NotFound)?;
    let caller = &submission.authorized;
    handles.store.delete_view(caller, app, user, view).await?;
    submission.redirect("", "deleted")
}
