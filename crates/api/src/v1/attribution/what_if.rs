//! `POST /api/v1/apps/{appId}/attribution/what-if` — tries other attribution rules on the installs of
//! the last 30 days.

use super::shape::WhatIfOut;
use crate::body::{Envelope, JsonBody, JsonResponse};
use crate::caller::ReportCaller;
use crate::error::{ApiError, Code};
use crate::fields::app::read_tried_rules;
use crate::fields::described_body;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::resource::WhatIfRead;
use tributary_domain::install::what_if::what_if_days;
use tributary_store::{WhatIfRequest, run_what_if};

described_body! {
    /// Attribution rules to try. Missing fields are as in the app's settings; null is the default.
    TriedRules("TriedRulesFields") = read_tried_rules
}

type WhatIfEnvelope = Envelope<WhatIfOut>;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/attribution/what-if", tag = "Analytics",
    operation_id = "tryAttributionRules",
    summary = "Try other attribution rules",
    description = "Replays the installs of the last 30 days, including today in the app's time \
                   zone, under other attribution rules. Returns which installs would count \
                   elsewhere, and the figures of each network and campaign as recorded (`now`) and \
                   under these rules (`then`). Nothing is stored. Revenue and refunds are those of \
                   the replayed installs so far; costs are those of the period. `periodNetRevenue` \
                   and `periodRoas` also count payments of earlier installs and on websites, so \
                   they can be compared with the overview of the same days.\n\nOnly stored \
                   evidence is used. `gaps` counts the installs for which evidence is missing. \
                   Installs that lose their credit, while the new one is not known, count under \
                   the network `unknown`; the others keep their credit.\n\nReplays at most the \
                   50,000 newest installs, in one request, which can take some seconds. Uses the \
                   key's environment. Requires `apps:read`.",
    params(("appId" = String, Path, description = "App id.")),
    request_body(content = inline(TriedRules), description = "The rules to try.",
        example = json!({"attribution": {"clickWindowHours": 24, "probabilistic": {"android": false}}})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The result.", body = inline(WhatIfEnvelope),
        example = json!({"data": super::shape::example()})))
)]
pub(crate) async fn what_if(
    caller: ReportCaller<WhatIfRead>,
    ids: PathIds,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let change = body.read(read_tried_rules)?;
    let reader = &caller.authorized;
    let app = state.store.app(reader, ids.app()?).await?;
    let rules = app.attribution.changed(&change);
    let range = what_if_days(state.runtime.now(), app.timezone);
    let request = WhatIfRequest {
        app: app.id,
        rules: rules.clone(),
        range: range.clone(),
        hasher: state.address_hasher().clone(),
    };
    let run = run_what_if(state.store.as_ref(), reader, request, |_, _| ());
    let (span, report) = run.await?;
    let out = WhatIfOut::new((&app.attribution, &rules), &range, span, report);
    Ok(JsonResponse::ok(out))
}
