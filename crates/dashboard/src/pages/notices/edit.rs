//! `/apps/{app}/notices/new` and `/apps/{app}/notices/{notice}` — creates, changes, tests and deletes a
//! notice.

use super::NoticePage;
use super::fields::{
    Choices, empty, faults_from_refusal, filled, from_url, named, with_destination,
};
use super::list::state;
use super::preview::{PreviewPart, report_slot};
use crate::access::{FormSubmission, PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::{FormState, TypedForm};
use crate::pages::links::update::precondition;
use crate::sealing::FormSecretSealer;
use crate::shell::Section;
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::resource::NoticesRead;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::keyring::secret_scope::NOTICE_SECRET_SCOPE;
use tributary_domain::notice::{Notice, NoticeDraft};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::id::NoticeId;
use tributary_domain::vocabulary::revision::{Precondition, Revision};
use tributary_fields::notice::read_form;
use tributary_store::StoreError;

/// Result of a test, below the button.
#[derive(Template)]
#[template(path = "notice_test.html")]
struct NoticeTestResult {
    outcome: Result<(), String>,
}

/// Why a form was not saved.
enum NotSaved {
    /// Fields have errors.
    Faults(Faults),
    /// Another change was saved after the form was opened.
    Conflict,
}

/// Builds the page. The preview shows what a stored notice sends now.
async fn page<S>(
    handles: &DashboardHandles,
    context: &PageContext<S>,
    notice: Option<&Notice>,
    stored: FormState,
    typed: Option<TypedForm>,
) -> Result<NoticePage, Failure> {
    let app = context.app()?;
    let preview = match notice.filter(|_| typed.is_none()) {
        Some(notice) => {
            let organization = context.authorized.organization();
            Some((handles.notices.preview)(organization, notice.clone()).await?)
        }
        None => None,
    };
    let now = handles.runtime.now();
    let name = notice.map_or("New report or alert", |one| one.settings.name.as_str());
    let url = notice.and_then(|one| one.settings.channel.url());
    let form = TypedForm::or_stored(typed, stored);
    Ok(NoticePage {
        shell: context.shell(Section::Notices),
        id: notice.map(|one| one.id.to_string()),
        name: name.to_owned(),
        tag: form.tag(notice.map(Notice::tag).unwrap_or_default()),
        timezone: app.timezone.as_str().to_owned(),
        sends_mail: handles.notices.sends_mail,
        url_origin: url.map(|url| url.origin.clone()),
        state: notice.map(|one| state(one, handles.notices.sends_mail, now)),
        form,
        choices: Choices::all(),
        preview: PreviewPart {
            preview,
            faults: Vec::new(),
        },
    })
}

async fn load<S>(
    handles: &DashboardHandles,
    context: &PageContext<S>,
    caller: &Authorized<AppsRead>,
) -> Result<Notice, Failure> {
    let id = NoticeId::parse(context.path_parameter("notice")).map_err(|_| Failure::NotFound)?;
    Ok(handles.store.notice(caller, context.app()?.id, id).await?)
}

/// Shows the form for a new notice.
pub(crate) async fn show_new(
    State(handles): State<DashboardHandles>,
    context: PageContext<AppsWrite>,
) -> Result<Response, Failure> {
    let caller = context.authorized.read_access();
    let notices = handles.store.notices(&caller, context.app()?.id).await?;
    let form = from_url(empty(handles.notices.sends_mail), &context.query);
    let form = with_destination(form, &notices, &context.shell(Section::Notices).email);
    Ok(context.page(&page(&handles, &context, None, form, None).await?))
}

/// Shows a stored notice.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<NoticesRead>,
) -> Result<Response, Failure> {
    let notice = load(&handles, &context, &context.authorized).await?;
    Ok(context.page(&page(&handles, &context, Some(&notice), filled(&notice), None).await?))
}

/// Creates a notice.
pub(crate) async fn create(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    save(&handles, &submission, None).await
}

/// Changes a notice.
pub(crate) async fn update(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let caller = submission.authorized.read_access();
    let stored = load(&handles, &submission.context, &caller).await?;
    save(&handles, &submission, Some(&stored)).await
}

/// Stores the submitted form, or shows it again with its errors, or with what was saved meanwhile.
async fn save(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
    stored: Option<&Notice>,
) -> Result<Response, Failure> {
    let named = named(&submission.form);
    let form = named.as_ref().unwrap_or(&submission.form);
    let (draft, mut faults) = form.read(read_form);
    let mut is_conflict = false;
    if let (Some(draft), true) = (draft, faults.is_empty()) {
        match store(handles, submission, draft, stored).await? {
            Ok(notice) => {
                let word = if stored.is_some() { "saved" } else { "created" };
                return submission.redirect(format_args!("notices/{}", notice.id), word);
            }
            Err(NotSaved::Faults(found)) => faults = found,
            Err(NotSaved::Conflict) => is_conflict = true,
        }
    }
    // The URL is a secret, which no page shows.
    let form = FormState::from_form(&submission.form).with("url", "");
    let typed = TypedForm {
        form: form.with_faults(faults),
        is_conflict,
    };
    let status = typed.status();
    let current = match stored {
        Some(_) => {
            let caller = submission.authorized.read_access();
            Some(load(handles, &submission.context, &caller).await?)
        }
        None => None,
    };
    let stored = current.as_ref();
    let before = stored.map_or_else(|| empty(handles.notices.sends_mail), filled);
    let page = page(handles, &submission.context, stored, before, Some(typed)).await?;
    Ok(submission.page_with(status, &page))
}

async fn store(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
    draft: NoticeDraft,
    stored: Option<&Notice>,
) -> Result<Result<Notice, NotSaved>, Failure> {
    let (app, at) = (submission.app()?, handles.runtime.now());
    let new_id = || NoticeId::new(at, handles.runtime.random_bytes());
    let id = stored.map_or_else(new_id, |one| one.id);
    let sealer = FormSecretSealer::new(handles, submission)?;
    let field = id.to_string();
    let channel = stored.map(|one| &one.settings.channel);
    let seal = |url: &str| sealer.seal(NOTICE_SECRET_SCOPE, &field, url);
    let settings = match draft.into_settings(channel, seal) {
        Ok(settings) => settings,
        Err(faults) => return Ok(Err(NotSaved::Faults(faults))),
    };
    let (caller, origin) = (&submission.authorized, submission.origin(handles));
    let outcome = if stored.is_some() {
        let precondition = precondition(&submission.form);
        let of = (app.id, id);
        let replaced = handles
            .store
            .replace_notice(caller, of, settings, precondition, origin);
        replaced.await
    } else {
        let notice = Notice {
            id,
            app: app.id,
            progress: settings.topic.first_progress(&app.timezone, at),
            settings,
            owner: None,
            last_sent_at: None,
            last_error: None,
            created_at: at,
            updated_at: at,
            revision: Revision::FIRST,
        };
        handles.store.create_notice(caller, notice, origin).await
    };
    match outcome {
        Ok(notice) => Ok(Ok(notice)),
        Err(StoreError::Refused(Refusal::VersionConflict)) => Ok(Err(NotSaved::Conflict)),
        Err(StoreError::Refused(refusal)) => match faults_from_refusal(refusal) {
            Ok(faults) => Ok(Err(NotSaved::Faults(faults))),
            Err(refusal) => Err(StoreError::Refused(refusal).into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// `POST /apps/{app}/notices/{notice}/test` — sends the saved notice's message now.
pub(crate) async fn test(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let caller = submission.authorized.read_access();
    let notice = load(&handles, &submission.context, &caller).await?;
    let _slot = report_slot(&handles, &submission).await?;
    let outcome = (handles.notices.send_test)(caller.organization(), notice).await?;
    Ok(submission.page(&NoticeTestResult { outcome }))
}

/// `POST /apps/{app}/notices/{notice}/delete` — deletes the notice.
pub(crate) async fn delete(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let caller = submission.authorized.read_access();
    let notice = load(&handles, &submission.context, &caller).await?;
    let (app, origin) = (notice.app, submission.origin(&handles));
    let none = Precondition::None;
    let writer = &submission.authorized;
    let deleted = handles
        .store
        .delete_notice(writer, app, notice.id, none, origin);
    deleted.await?;
    submission.redirect("notices", "deleted")
}
