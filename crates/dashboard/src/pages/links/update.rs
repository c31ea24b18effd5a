//! `/apps/{app}/links/{link}` — a link: as it is, changed, archived.

use super::LinkPage;
use super::create::fault_or_failure;
use super::fields::filled;
use super::preview::Preview;
use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::response::see_other;
use crate::shell::Section;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_fields::Form;
use tributary_fields::link::read_change;

async fn page<S>(
    handles: &DashboardHandles,
    reader: &PageContext<S>,
    caller: &Authorized<AppsRead>,
    form: Option<FormState>,
) -> Result<LinkPage, Failure> {
    let app = handles.store.app(caller, reader.app()?.id).await?;
    let link = handles.store.link(caller, app.id, id(reader)?).await?;
    Ok(LinkPage {
        shell: reader.shell(Section::Links),
        id: Some(link.id.to_string()),
        name: link.name.as_str().to_owned(),
        tag: link.tag(),
        preview: Preview::of(&link, &app, &handles.base_url, Vec::new()),
        form: form.unwrap_or_else(|| filled(&link)),
    })
}

fn id<S>(reader: &PageContext<S>) -> Result<LinkId, Failure> {
    LinkId::parse(reader.path_parameter("link")).map_err(|_| Failure::NotFound)
}

/// The version that the form was made of: who changed it meanwhile is not overwritten unseen.
pub(crate) fn precondition(form: &Form) -> Precondition {
    let tag = form.field("tag");
    if tag.is_empty() {
        Precondition::None
    } else {
        Precondition::AnyOf(vec![tag])
    }
}

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = page(&handles, &reader, &reader.authorized, None).await?;
    Ok(reader.page(&page))
}

/// Changes it.
pub(crate) async fn update(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, link) = (posted.app()?.id, id(&posted)?);
    let (change, mut faults) = posted.form.read(read_change);
    if faults.is_empty() {
        let (precondition, origin) = (precondition(&posted.form), posted.origin(&handles));
        let caller = &posted.authorized;
        let stored = handles
            .store
            .update_link(caller, app, link, change, precondition, origin);
        match fault_or_failure(stored.await)? {
            Ok(_) => return Ok(see_other(&format!("/apps/{app}/links/{link}?notice=saved"))),
            Err(found) => faults = found,
        }
    }
    let form = FormState::from_form(&posted.form).with_faults(faults);
    let caller = posted.authorized.read_access();
    let page = page(&handles, &posted.context, &caller, Some(form)).await?;
    Ok(posted.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// `POST /apps/{app}/links/{link}/delete` — archives it.
pub(crate) async fn delete(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, link, origin) = (posted.app()?.id, id(&posted)?, posted.origin(&handles));
    let deleted =
        handles
            .store
            .delete_link(&posted.authorized, app, link, Precondition::None, origin);
    deleted.await?;
    Ok(see_other(&format!("/apps/{app}/links?notice=deleted")))
}
