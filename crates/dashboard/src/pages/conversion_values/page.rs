//! The editor's page and its forms.

use super::editor::Editor;
use super::simulation::{
    SampleEventForm, UpdateCallView, example_events, sample_events, simulate_calls,
};
use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::links::update::precondition;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::skan::presets::{PresetKind, document};
use tributary_domain::skan::{Configuration, Document, Warning, validate, warnings};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::Faults;

#[derive(Template)]
#[template(path = "conversion_values.html")]
struct EditorPage {
    shell: Shell,
    editor: Editor,
    /// Whether the form shows what is not saved.
    is_draft: bool,
    version: i64,
    tag: String,
    checked: EditorCheck,
    deeds: Vec<SampleEventForm>,
    versions: Vec<(i64, String)>,
}

/// What the rules say of what is typed, and what a person would get.
#[derive(Template)]
#[template(path = "conversion_values_checked.html")]
struct EditorCheck {
    form: FormState,
    warnings: Vec<Warning>,
    calls: Vec<UpdateCallView>,
}

impl EditorCheck {
    fn of(editor: &Editor, deeds: &[SampleEventForm]) -> (Self, Option<Document>) {
        let mut faults = Faults::new();
        let draft = editor.draft(&mut faults);
        let document = validate(draft, &mut faults).filter(|_| faults.is_empty());
        let checked = Self {
            form: FormState::default().with_faults(faults),
            warnings: document.as_ref().map(warnings).unwrap_or_default(),
            calls: document
                .as_ref()
                .map(|document| simulate_calls(document, deeds))
                .unwrap_or_default(),
        };
        (checked, document)
    }
}

impl EditorPage {
    const fn is_present(&self, version: &i64) -> bool {
        *version == self.version
    }

    async fn load(
        handles: &DashboardHandles,
        reader: &PageContext<impl Send>,
        caller: &Authorized<AppsRead>,
        typed: Option<(Editor, Vec<SampleEventForm>)>,
    ) -> Result<Self, Failure> {
        let app = reader.app()?;
        let Configuration {
            document, version, ..
        } = &handles.store.skan(caller, app.id).await?;
        let tag = handles.store.skan(caller, app.id).await?.tag();
        let versions = handles.store.skan_versions(caller, app.id).await?;
        let is_draft = typed.is_some();
        let (editor, deeds) = typed.unwrap_or_else(|| (Editor::of(document), example_events()));
        let (checked, _) = EditorCheck::of(&editor, &deeds);
        Ok(Self {
            shell: reader.shell(Section::ConversionValues),
            editor,
            is_draft,
            version: *version,
            tag,
            checked,
            deeds,
            versions: versions
                .into_iter()
                .rev()
                .map(|(number, from)| (number, text::moment(from, &app.timezone)))
                .collect(),
        })
    }
}

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = EditorPage::load(&handles, &reader, &reader.authorized, None).await?;
    Ok(reader.page(&page))
}

/// `POST …/check` — what is typed, checked and played; nothing is saved.
pub(crate) async fn check(posted: FormSubmission<AppsRead>) -> Response {
    let (checked, _) = EditorCheck::of(
        &Editor::from_form(&posted.form),
        &sample_events(&posted.form),
    );
    posted.page(&checked)
}

/// Two numbers with a dot between, as buttons name rows.
fn row(text: &str) -> Option<(usize, Option<usize>)> {
    let (window, value) = match text.split_once('.') {
        Some((window, value)) => (window, Some(value.parse().ok()?)),
        None => (text, None),
    };
    Some((window.parse().ok()?, value))
}

/// `POST …/edit` — the form with a row more, or less, or elsewhere; nothing is saved.
pub(crate) async fn edit(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let mut editor = Editor::from_form(&posted.form);
    if let Some((window, value)) = row(&posted.form.field("add")) {
        editor.add(window, value);
    }
    if let Some((window, Some(value))) = row(&posted.form.field("remove")) {
        editor.remove(window, value);
    }
    if let Some((window, Some(value))) = row(&posted.form.field("raise")) {
        editor.move_up(window, value);
    }
    render_draft(
        &handles,
        &posted,
        editor,
        sample_events(&posted.form),
        StatusCode::OK,
    )
    .await
}

/// `POST …/preset` — the form filled in for a common wish; nothing is saved.
pub(crate) async fn preset(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let asked = posted.form.field("kind");
    let kind = PresetKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == asked);
    let preset = kind.ok_or(Failure::NotFound)?.preset(None, None);
    let made = document(&preset, Currency::USD).map_err(|faults| {
        tracing::error!(%faults, "a preset of ours is at fault");
        Failure::Internal
    })?;
    let editor = Editor {
        enabled: true,
        ..Editor::of(&made)
    };
    render_draft(&handles, &posted, editor, example_events(), StatusCode::OK).await
}

async fn render_draft(
    handles: &DashboardHandles,
    posted: &FormSubmission<AppsWrite>,
    editor: Editor,
    deeds: Vec<SampleEventForm>,
    status: StatusCode,
) -> Result<Response, Failure> {
    let caller = posted.authorized.read_access();
    let typed = Some((editor, deeds));
    let page = EditorPage::load(handles, &posted.context, &caller, typed).await?;
    Ok(posted.page_with(status, &page))
}

/// Saves the document.
pub(crate) async fn save(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = posted.app()?.id;
    let (editor, deeds) = (Editor::from_form(&posted.form), sample_events(&posted.form));
    let (_, document) = EditorCheck::of(&editor, &deeds);
    let Some(document) = document else {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return render_draft(&handles, &posted, editor, deeds, status).await;
    };
    let (precondition, origin) = (precondition(&posted.form), posted.origin(&handles));
    let saved = handles
        .store
        .put_skan(&posted.authorized, app, document, precondition, origin);
    saved.await?;
    Ok(see_other(&format!(
        "/apps/{app}/conversion-values?notice=saved"
    )))
}
