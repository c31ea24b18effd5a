//! `GET /apps/{app}/devices/{device}/data` and `GET /apps/{app}/users/{user}/data` — everything that is
//! stored about a person, as a file for them.

use crate::access::ExportContext;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use http_body::Frame;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;
use tributary_domain::access::admission::SlotHolder;
use tributary_domain::access::resource::PersonalDataRead;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::personal_data::DataSubject;
use tributary_store::StoreError;
use tributary_store::personal_data::{PersonDocument, PersonExport};

/// How long the browser may take for one part. A slower one would keep the slot of the export.
const PART_IDLE_MAX: Duration = Duration::from_mins(1);
/// How long an export waits for the slot of its next part before it fails.
const PART_WAIT_MAX: Duration = Duration::from_mins(1);
/// Name of the file. It contains no id, because names of files end up in logs.
const DISPOSITION: &str = "attachment; filename=\"personal-data.json\"";

/// Returns the file about a device.
pub(crate) async fn of_device(
    State(handles): State<DashboardHandles>,
    context: ExportContext<PersonalDataRead>,
) -> Result<Response, Failure> {
    let device = DeviceKey::parse(context.path_parameter("device"));
    let device = device.map_err(|_| Failure::NotFound)?;
    file(handles, context, DataSubject::Device(device)).await
}

/// Returns the file about a user.
pub(crate) async fn of_user(
    State(handles): State<DashboardHandles>,
    context: ExportContext<PersonalDataRead>,
) -> Result<Response, Failure> {
    let user = UserKey::parse(context.path_parameter("user"));
    let user = user.map_err(|_| Failure::NotFound)?;
    file(handles, context, DataSubject::User(user)).await
}

async fn file(
    handles: DashboardHandles,
    context: ExportContext<PersonalDataRead>,
    subject: DataSubject,
) -> Result<Response, Failure> {
    let (of, origin) = ((context.app()?.id, subject), context.origin(&handles));
    let caller = &context.authorized;
    let export = PersonExport::begin(handles.store.as_ref(), caller, of, origin).await?;
    let (sender, parts) = mpsc::channel(1);
    tokio::spawn(send(handles, context, export, sender));
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CONTENT_DISPOSITION, DISPOSITION),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let body = FileInParts {
        parts,
        is_finished: false,
    };
    Ok((headers, Body::new(body)).into_response())
}

/// A part of the file; `None` marks its end.
type FilePart = Option<Vec<u8>>;

/// The body of a file that is sent in parts. Without the end marker it fails, so that the browser
/// does not take an incomplete file for a complete one.
struct FileInParts {
    parts: mpsc::Receiver<FilePart>,
    is_finished: bool,
}

impl HttpBody for FileInParts {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.is_finished {
            return Poll::Ready(None);
        }
        let part = ready!(self.parts.poll_recv(context));
        self.is_finished = !matches!(part, Some(Some(_)));
        Poll::Ready(match part {
            Some(Some(bytes)) => Some(Ok(Frame::data(Bytes::from(bytes)))),
            Some(None) => None,
            None => Some(Err("export aborted".into())),
        })
    }
}

/// Sends all parts. The context keeps the slot of the export until then.
async fn send(
    handles: DashboardHandles,
    context: ExportContext<PersonalDataRead>,
    mut export: PersonExport,
    parts: mpsc::Sender<FilePart>,
) {
    let holder = SlotHolder::from(&context.authorized);
    let mut document = PersonDocument::new(handles.click_tokens.clone());
    let mut bytes = document.begin(&export);
    loop {
        if parts
            .send_timeout(Some(bytes), PART_IDLE_MAX)
            .await
            .is_err()
        {
            tracing::info!("export of personal data aborted: the browser does not read it");
            return;
        }
        match next_part(&handles, &holder, &mut export, &mut document).await {
            Ok(Some(part)) => bytes = part,
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "export of personal data aborted");
                return;
            }
        }
    }
    // The file is for the person, so the devices of others are left out.
    for part in [Some(document.finish(&export, false)), None] {
        if parts.send_timeout(part, PART_IDLE_MAX).await.is_err() {
            return;
        }
    }
}

async fn next_part(
    handles: &DashboardHandles,
    holder: &SlotHolder,
    export: &mut PersonExport,
    document: &mut PersonDocument,
) -> Result<FilePart, StoreError> {
    let slot = handles.report_slots.admit_part(holder, PART_WAIT_MAX).await;
    let _slot = slot.map_err(|error| StoreError::unavailable("person_events", error))?;
    let part = export.next(handles.store.as_ref()).await?;
    Ok(part.map(|part| document.part(part)))
}
