//! `/apps/{app}/links/new` — creates a link.

use super::LinkPage;
use super::fields::{faults_from_refusal, filled};
use super::preview::{Preview, draft};
use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::shell::Section;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::AppsWrite;
use tributary_domain::link::{Link, LinkChange, LinkCreation, Slug};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::text::{NAME_CHARS_MAX, Name};
use tributary_fields::link::read_new_form;
use tributary_store::StoreError;

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<AppsWrite>,
    form: Option<FormState>,
) -> Result<LinkPage, Failure> {
    let id = context.app()?.id;
    let app = handles
        .store
        .app(&context.authorized.read_access(), id)
        .await?;
    let mut draft = draft(&app);
    let original = match context.query.get("from").map(LinkId::parse) {
        Some(Ok(link)) => {
            let caller = context.authorized.read_access();
            Some(handles.store.link(&caller, id, link).await?)
        }
        _ => None,
    };
    let form = form.unwrap_or_else(|| prefilled(original.as_ref(), &draft));
    if let Some(original) = original {
        draft = Link {
            slug: draft.slug,
            ..original
        };
    }
    Ok(LinkPage {
        shell: context.shell(Section::Links),
        id: None,
        name: "New link".to_owned(),
        tag: String::new(),
        preview: Preview::of(&draft, &app, &handles.base_url, Vec::new()),
        form,
        analytics: None,
    })
}

/// Fills the form for a new link, from the link to duplicate if there is one. A slug belongs to one
/// link, so it is not copied.
fn prefilled(original: Option<&Link>, draft: &Link) -> FormState {
    let name = original.map(|link| copy_name(link.name.as_str()));
    filled(original.unwrap_or(draft))
        .with("name", name.unwrap_or_default())
        .with("slug", "")
}

/// Returns the name of a copy, cut to the length of a name.
fn copy_name(name: &str) -> String {
    let ending = " (copy)";
    let kept = name.chars().take(NAME_CHARS_MAX - ending.len());
    kept.collect::<String>() + ending
}

/// Shows the form.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: PageContext<AppsWrite>,
) -> Result<Response, Failure> {
    Ok(context.page(&page(&handles, &context, None).await?))
}

/// Creates the link.
pub(crate) async fn create(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (read, mut faults) = submission.form.read(read_new_form);
    if let (Some((name, slug, change)), true) = (read, faults.is_empty()) {
        match store(&handles, &submission, name, slug, change).await? {
            Ok(link) => {
                return submission.redirect(format_args!("links/{}", link.id), "created");
            }
            Err(found) => faults = found,
        }
    }
    let form = FormState::from_form(&submission.form).with_faults(faults);
    let page = page(&handles, &submission.context, Some(form)).await?;
    Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn store(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
    name: Name,
    slug: Option<Slug>,
    change: LinkChange,
) -> Result<Result<Link, Faults>, Failure> {
    let at = handles.runtime.now();
    let birth = LinkCreation {
        id: LinkId::new(at, handles.runtime.random_bytes()),
        app: submission.app()?.id,
        at,
    };
    let slug = slug.unwrap_or_else(|| Slug::random(handles.runtime.random_bytes()));
    let mut link = Link::new(&birth, name, slug);
    link.apply(change);
    if let Err(faults) = link.check() {
        return Ok(Err(faults));
    }
    let origin = submission.origin(handles);
    let stored = handles
        .store
        .create_link(&submission.authorized, link, origin);
    fault_or_failure(stored.await)
}

/// Splits a store result into the link, field errors, or a failure.
pub(super) fn fault_or_failure(
    stored: Result<Link, StoreError>,
) -> Result<Result<Link, Faults>, Failure> {
    match stored {
        Ok(link) => Ok(Ok(link)),
        Err(StoreError::Refused(refusal)) => {
            let faults: Result<Faults, Refusal> = faults_from_refusal(refusal);
            faults
                .map(Err)
                .map_err(|refusal| StoreError::Refused(refusal).into())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_copy_is_a_name() {
        assert_eq!(copy_name("Spring"), "Spring (copy)");
        let long = copy_name(&"ä".repeat(NAME_CHARS_MAX));
        assert!(Name::parse(&long).is_ok());
        assert!(long.ends_with("ä (copy)"));
    }
}
