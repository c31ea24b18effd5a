//! `/apps/new` — creates an app with its SDK keys.

use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::{AppsWrite, Environment};
use tributary_domain::app::{App, AppChange, AppCreation};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::text::Name;
use tributary_fields::Fields;
use tributary_fields::app::read_new;
use tributary_store::StoreError;

#[derive(Template)]
#[template(path = "app_new.html")]
struct NewAppPage {
    shell: Shell,
    form: FormState,
}

/// Shows the form.
pub(crate) async fn show(context: PageContext<AppsWrite>) -> Response {
    context.page(&NewAppPage {
        shell: context.shell(Section::Portfolio),
        form: FormState::default().with("timezone", "UTC"),
    })
}

/// Creates the app.
pub(crate) async fn create(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let read = |fields: &mut Fields<'_>| read_new(fields, &handles.base_url);
    let (read, mut faults) = submission.form.read(read);
    if let (Some((name, read, _)), true) = (read, faults.is_empty()) {
        // Use only the fields that this form has. Checkboxes that it does not have would be read as
        // unchecked.
        let change = AppChange {
            timezone: read.timezone,
            ios_bundle_id: read.ios_bundle_id,
            ios_app_store_id: read.ios_app_store_id,
            android_package_name: read.android_package_name,
            ..AppChange::default()
        };
        match store(&handles, &submission, name, change).await {
            Ok(app) => return Ok(see_other(&format!("/apps/{app}/start?notice=created"))),
            Err(StoreError::Refused(taken @ Refusal::StoreIdTaken)) => {
                let problem = Problem::new(FaultCode::NotAllowed, taken.to_string());
                faults.add("ios.appStoreId", problem);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let page = NewAppPage {
        shell: submission.shell(Section::Portfolio),
        form: FormState::from_form(&submission.form).with_faults(faults),
    };
    Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn store(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
    name: Name,
    change: AppChange,
) -> Result<AppId, StoreError> {
    let at = handles.runtime.now();
    let key = |environment| {
        let key = handles.runtime.new_key(KeyKind::Sdk, environment);
        key.reveal().to_owned()
    };
    let birth = AppCreation {
        id: AppId::new(at, handles.runtime.random_bytes()),
        organization: submission.authorized.organization(),
        live_key: key(Environment::Live),
        test_key: key(Environment::Test),
        at,
    };
    let mut app = App::new(birth, name);
    app.apply(change);
    let origin = submission.origin(handles);
    let stored = handles
        .store
        .create_app(&submission.authorized, app, Vec::new(), origin);
    stored.await.map(|app| app.id)
}
