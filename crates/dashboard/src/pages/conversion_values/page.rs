//! The editor page and its forms.

use super::editor::Editor;
use super::simulation::{
    SampleEventForm, UpdateCallView, example_events, sample_events, simulate_calls,
};
use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::{FormState, TAG};
use crate::pages::links::update::precondition;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::refusal::Refusal;
use tributary_domain::skan::presets::{PresetKind, document};
use tributary_domain::skan::{Configuration, Document, Warning, validate, warnings};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::Faults;
use tributary_fields::Form;
use tributary_store::StoreError;

#[derive(Template)]
#[template(path = "conversion_values.html")]
struct EditorPage {
    shell: Shell,
    editor: Editor,
    /// Whether the form has unsaved changes.
    is_draft: bool,
    /// Whether another version was saved after the form was opened.
    is_conflict: bool,
    version: i64,
    tag: String,
    checked: EditorCheck,
    sample_events: Vec<SampleEventForm>,
    versions: Vec<(i64, String)>,
}

/// Validation and simulation results for the current form.
#[derive(Template)]
#[template(path = "conversion_values_checked.html")]
struct EditorCheck {
    form: FormState,
    warnings: Vec<Warning>,
    calls: Vec<UpdateCallView>,
}

impl EditorCheck {
    fn of(editor: &Editor, sample_events: &[SampleEventForm]) -> (Self, Option<Document>) {
        let mut faults = Faults::new();
        let draft = editor.draft(&mut faults);
        let document = validate(draft, &mut faults).filter(|_| faults.is_empty());
        let checked = Self {
            form: FormState::default().with_faults(faults),
            warnings: document.as_ref().map(warnings).unwrap_or_default(),
            calls: document
                .as_ref()
                .map(|document| simulate_calls(document, sample_events))
                .unwrap_or_default(),
        };
        (checked, document)
    }
}

/// A form that is not saved yet.
struct Draft {
    editor: Editor,
    sample_events: Vec<SampleEventForm>,
    /// Version that the form was opened with.
    tag: String,
    /// Whether another version was saved after the form was opened.
    is_conflict: bool,
}

impl Draft {
    fn of(document: &Document) -> Self {
        Self {
            editor: Editor::of(document),
            sample_events: example_events(),
            tag: String::new(),
            is_conflict: false,
        }
    }

    fn submitted(form: &Form) -> Self {
        Self {
            editor: Editor::from_form(form),
            sample_events: sample_events(form),
            tag: form.field(TAG),
            is_conflict: false,
        }
    }
}

impl EditorPage {
    const fn is_present(&self, version: &i64) -> bool {
        *version == self.version
    }

    async fn load(
        handles: &DashboardHandles,
        context: &PageContext<impl Send>,
        caller: &Authorized<AppsRead>,
        typed: Option<Draft>,
    ) -> Result<Self, Failure> {
        let app = context.app()?;
        let configuration = handles.store.skan(caller, app.id).await?;
        let Configuration {
            document, version, ..
        } = &configuration;
        let versions = handles.store.skan_versions(caller, app.id).await?;
        let is_draft = typed.is_some();
        let is_conflict = typed.as_ref().is_some_and(|draft| draft.is_conflict);
        let Draft {
            editor,
            sample_events,
            tag,
            ..
        } = typed.unwrap_or_else(|| Draft::of(document));
        let (checked, _) = EditorCheck::of(&editor, &sample_events);
        Ok(Self {
            shell: context.shell(Section::ConversionValues),
            editor,
            is_draft,
            is_conflict,
            version: *version,
            tag: if is_conflict || tag.is_empty() {
                configuration.tag()
            } else {
                tag
            },
            checked,
            sample_events,
            versions: versions
                .into_iter()
                .rev()
                .map(|(number, from)| (number, text::moment(from, &app.timezone)))
                .collect(),
        })
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = EditorPage::load(&handles, &context, &context.authorized, None).await?;
    Ok(context.page(&page))
}

/// `POST …/check` — validates and simulates the form without saving it.
pub(crate) async fn check(submission: FormSubmission<AppsRead>) -> Response {
    let (checked, _) = EditorCheck::of(
        &Editor::from_form(&submission.form),
        &sample_events(&submission.form),
    );
    submission.page(&checked)
}

/// Parses the row that a button refers to: a window, or a window and a value separated by a dot.
fn row(text: &str) -> Option<(usize, Option<usize>)> {
    let (window, value) = match text.split_once('.') {
        Some((window, value)) => (window, Some(value.parse().ok()?)),
        None => (text, None),
    };
    Some((window.parse().ok()?, value))
}

/// `POST …/edit` — adds, removes or moves a row without saving.
pub(crate) async fn edit(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let mut editor = Editor::from_form(&submission.form);
    if let Some((window, value)) = row(&submission.form.field("add")) {
        editor.add(window, value);
    }
    if let Some((window, Some(value))) = row(&submission.form.field("remove")) {
        editor.remove(window, value);
    }
    if let Some((window, Some(value))) = row(&submission.form.field("raise")) {
        editor.move_up(window, value);
    }
    let draft = Draft {
        editor,
        ..Draft::submitted(&submission.form)
    };
    render_draft(&handles, &submission, draft, StatusCode::OK).await
}

/// `POST …/preset` — fills in the form from a preset without saving.
pub(crate) async fn preset(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let requested = submission.form.field("kind");
    let kind = PresetKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == requested);
    let preset = kind.ok_or(Failure::NotFound)?.preset(None, None);
    let preset = document(&preset, Currency::USD).map_err(|faults| {
        tracing::error!(%faults, "invalid conversion value preset");
        Failure::Internal
    })?;
    let editor = Editor {
        enabled: true,
        ..Editor::of(&preset)
    };
    let draft = Draft {
        editor,
        ..Draft::of(&preset)
    };
    render_draft(&handles, &submission, draft, StatusCode::OK).await
}

async fn render_draft(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
    draft: Draft,
    status: StatusCode,
) -> Result<Response, Failure> {
    let caller = submission.authorized.read_access();
    let page = EditorPage::load(handles, &submission.context, &caller, Some(draft)).await?;
    Ok(submission.page_with(status, &page))
}

/// Saves the configuration.
pub(crate) async fn save(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let mut draft = Draft::submitted(&submission.form);
    let (_, document) = EditorCheck::of(&draft.editor, &draft.sample_events);
    let Some(document) = document else {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return render_draft(&handles, &submission, draft, status).await;
    };
    let (precondition, origin) = (precondition(&submission.form), submission.origin(&handles));
    let saved = handles
        .store
        .put_skan(&submission.authorized, app, document, precondition, origin);
    match saved.await {
        Ok(_) => submission.redirect("conversion-values", "saved"),
        Err(StoreError::Refused(Refusal::VersionConflict)) => {
            draft.is_conflict = true;
            render_draft(&handles, &submission, draft, StatusCode::CONFLICT).await
        }
        Err(error) => Err(error.into()),
    }
}
