//! `/apps/{app}/links/{link}` — shows, changes and deletes a link.

use super::LinkPage;
use super::analytics::LinkAnalytics;
use super::create::fault_or_failure;
use super::fields::filled;
use super::preview::Preview;
use crate::access::{FormSubmission, PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::{FormState, TAG, TypedForm};
use crate::shell::Section;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::app::App;
use tributary_domain::link::Link;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_fields::Form;
use tributary_fields::link::read_change_form;
use tributary_store::StoreError;

fn page<S>(
    handles: &DashboardHandles,
    context: &PageContext<S>,
    app: &App,
    link: &Link,
) -> LinkPage {
    LinkPage {
        shell: context.shell(Section::Links),
        id: Some(link.id.to_string()),
        name: link.name.as_str().to_owned(),
        tag: link.tag(),
        preview: Preview::of(link, app, &handles.base_url, Vec::new()),
        form: filled(link),
        analytics: None,
    }
}

/// Loads the link and its app.
pub(super) async fn load<S>(
    handles: &DashboardHandles,
    context: &PageContext<S>,
    caller: &Authorized<AppsRead>,
) -> Result<(App, Link), Failure> {
    let app = handles.store.app(caller, context.app()?.id).await?;
    let link = handles.store.link(caller, app.id, id(context)?).await?;
    Ok((app, link))
}

fn id<S>(context: &PageContext<S>) -> Result<LinkId, Failure> {
    LinkId::parse(context.path_parameter("link")).map_err(|_| Failure::NotFound)
}

/// Returns the version that the form was loaded with, to detect concurrent changes.
pub(crate) fn precondition(form: &Form) -> Precondition {
    let tag = form.field(TAG);
    if tag.is_empty() {
        Precondition::None
    } else {
        Precondition::AnyOf(vec![tag])
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AppsRead>,
) -> Result<Response, Failure> {
    let (app, link) = load(&handles, &context, &context.authorized).await?;
    let analytics = LinkAnalytics::load(&handles, &context, &link, &app.timezone).await?;
    let page = LinkPage {
        analytics: Some(analytics),
        ..page(&handles, &context, &app, &link)
    };
    Ok(context.page(&page))
}

/// Stores the submitted form.
pub(crate) async fn update(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, link) = (submission.app()?.id, id(&submission)?);
    let (change, mut faults) = submission.form.read(read_change_form);
    let mut is_conflict = false;
    if faults.is_empty() {
        let (precondition, origin) = (precondition(&submission.form), submission.origin(&handles));
        let caller = &submission.authorized;
        let stored = handles
            .store
            .update_link(caller, app, link, change, precondition, origin);
        match stored.await {
            Err(StoreError::Refused(Refusal::VersionConflict)) => is_conflict = true,
            stored => match fault_or_failure(stored)? {
                Ok(_) => return submission.redirect(format_args!("links/{link}"), "saved"),
                Err(found) => faults = found,
            },
        }
    }
    let typed = TypedForm {
        form: FormState::from_form(&submission.form).with_faults(faults),
        is_conflict,
    };
    let status = typed.status();
    let caller = submission.authorized.read_access();
    let (app, link) = load(&handles, &submission.context, &caller).await?;
    let form = TypedForm::or_stored(Some(typed), filled(&link));
    let page = LinkPage {
        tag: form.tag(link.tag()),
        form,
        ..page(&handles, &submission.context, &app, &link)
    };
    Ok(submission.page_with(status, &page))
}

/// `POST /apps/{app}/links/{link}/delete` — deletes the link; its history stays.
pub(crate) async fn delete(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, link, origin) = (
        submission.app()?.id,
        id(&submission)?,
        submission.origin(&handles),
    );
    let deleted = handles.store.delete_link(
        &submission.authorized,
        app,
        link,
        Precondition::None,
        origin,
    );
    deleted.await?;
    submission.redirect("links", "deleted")
}
