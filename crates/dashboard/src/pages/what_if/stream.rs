//! Sends the page in pieces: the form, the progress of the replay, and the result. The browser shows
//! each piece when it arrives, without a script.

use super::WhatIfPage;
use super::result::{FailedReplay, WhatIfResult};
use crate::access::ReportContext;
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tributary_domain::access::resource::WhatIfRead;
use tributary_store::{WhatIfRequest, run_what_if};

/// Place of the result in the page's template.
const RESULT_MARK: &str = "<!-- result -->";
/// Maximum number of pieces that wait for a slow browser. Further reports of progress are dropped.
const PIECES_WAITING_MAX: usize = 8;

/// The body of a page that is sent in pieces.
struct PageInPieces(mpsc::Receiver<String>);

impl HttpBody for PageInPieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|text| Ok(Frame::data(Bytes::from(text)))))
    }
}

/// Starts the replay and returns the page, whose result is sent when the replay ends. The report
/// slot is kept until then.
pub(super) async fn stream_result(
    handles: DashboardHandles,
    context: ReportContext<WhatIfRead>,
    page: &WhatIfPage,
    request: WhatIfRequest,
) -> Response {
    let response = context.page(page);
    let text = page.render().unwrap_or_default();
    let Some((head, tail)) = text.split_once(RESULT_MARK) else {
        return response;
    };
    let (pieces, body) = mpsc::channel(PIECES_WAITING_MAX);
    // The channel is empty, so this never waits.
    if pieces.send(head.to_owned()).await.is_err() {
        return response;
    }
    let tail = tail.to_owned();
    tokio::spawn(async move {
        tokio::select! {
            result = replay(&handles, &context, request, &pieces) => {
                if pieces.send(result + &tail).await.is_err() {
                    tracing::info!("result dropped: the browser has disconnected");
                }
            }
            () = pieces.closed() => {
                tracing::info!("replay stopped: the browser has disconnected");
            }
        }
    });
    let (parts, _) = response.into_parts();
    Response::from_parts(parts, Body::new(PageInPieces(body)))
}

async fn replay(
    handles: &DashboardHandles,
    context: &ReportContext<WhatIfRead>,
    request: WhatIfRequest,
    pieces: &mpsc::Sender<String>,
) -> String {
    let progress = |done: u64, all: u64| {
        let count = |number| text::count(i64::try_from(number).unwrap_or(i64::MAX));
        let (done, all) = (count(done), count(all));
        let piece = format!("<p class=\"replay-progress\">{done} of {all} installs replayed …</p>");
        // A slow browser misses some steps, but never the result.
        if pieces.try_send(piece).is_err() {
            tracing::trace!("progress dropped: the browser reads too slowly");
        }
    };
    let (range, rules) = (request.range.clone(), request.rules.clone());
    let run = run_what_if(
        handles.store.as_ref(),
        &context.authorized,
        request,
        progress,
    );
    let rendered = match run.await {
        Ok((span, report)) => WhatIfResult::new(context, &range, &rules, span, report).render(),
        Err(error) => {
            tracing::error!(%error, "failed to replay installs");
            FailedReplay.render()
        }
    };
    rendered.unwrap_or_default()
}
