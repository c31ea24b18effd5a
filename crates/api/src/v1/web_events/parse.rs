//! The body of a website event, read as the door reads it and answered as the door answers it, and nothing between:
//! nobody is asked for a key, and nothing is stored. `bench` serves this to see what the rest costs; the service
//! does not.

use super::accept::Accepted;
use super::fields::read;
use crate::body::{Answer, JsonBody};
use crate::error::ApiError;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;

pub(crate) async fn parse(
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let now = state.source.now();
    let sent = body.read_whole(|fields| read(fields, now))?;
    Ok(Answer::accepted(Accepted::new(sent.given_id, false, now)))
}
