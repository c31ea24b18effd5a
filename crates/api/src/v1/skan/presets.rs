//! `GET /api/v1/skan/presets` — returns preset documents.

use super::query_values::parse_choice;
use super::shape::{SkanOut, example};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::query::{QueryParameters, QueryString};
use crate::report::{RowPage, row_key};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsRead;
use tributary_domain::skan::Configuration;
use tributary_domain::skan::presets::{PresetKind as Kind, document};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::page::ListScope;
use utoipa::ToSchema;

/// Maximum number of items in a list parameter. No preset accepts more.
const ITEMS_MAX: usize = 100;

struct PresetsQuery {
    kind: Option<Kind>,
    events: Option<Vec<String>>,
    bounds: Option<Vec<Amount>>,
    currency: Currency,
    page: PageQuery,
}

fn items(text: &str) -> Result<Vec<&str>, Problem> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.len() > ITEMS_MAX {
        let message = format!("Must have at most {ITEMS_MAX} comma-separated items.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(items)
}

fn read(parameters: &mut QueryParameters<'_>) -> PresetsQuery {
    let kind = |text: &str| parse_choice(text, &Kind::ALL, Kind::as_str);
    let events = |text: &str| Ok(items(text)?.into_iter().map(str::to_owned).collect());
    let bounds = |text: &str| items(text)?.into_iter().map(Amount::parse_text).collect();
    PresetsQuery {
        kind: parameters.optional("kind", kind),
        events: parameters.optional("events", events),
        bounds: parameters.optional("bounds", bounds),
        currency: parameters
            .optional("currency", Currency::parse)
            .unwrap_or(Currency::USD),
        page: PageQuery::read(parameters),
    }
}

impl PresetsQuery {
    /// Rejects parameters that are not valid for the kind.
    fn check(&self) -> Result<(), ApiError> {
        let mut faults = Faults::new();
        let mut reject = |field: &str, message: &str| {
            faults.add(field, Problem::new(FaultCode::NotAllowed, message));
        };
        if self.events.is_some() && self.kind.is_none() {
            reject("events", "Only valid with `kind`.");
        }
        if self.bounds.is_some() && self.kind != Some(Kind::RevenueBuckets) {
            reject("bounds", "Only valid with `kind=revenue_buckets`.");
        }
        let several = self.events.as_ref().is_some_and(|events| events.len() != 1);
        if self.kind == Some(Kind::RevenueBuckets) && several {
            reject(
                "events",
                "Must be exactly one event: the event whose revenue is bucketed.",
            );
        }
        Ok(faults.into_result()?)
    }
}

/// A preset document.
#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "ConversionValuePreset")]
struct PresetOut {
    #[schema(inline, value_type = crate::choices::PresetChoice)]
    kind: &'static str,
    /// Document to send with `PUT /api/v1/apps/{appId}/skan`. Its `enabled` is false.
    document: SkanOut,
}

type PresetListEnvelope = List<PresetOut>;

#[utoipa::path(
    get, path = "/api/v1/skan/presets", tag = "Conversion value", operation_id = "listSkanPresets",
    summary = "List conversion-value presets",
    description = "`revenue_buckets` encodes the revenue range of one event, `event_bits` which of \
                   up to six events happened, and `funnel` the furthest step reached in a \
                   sequence. Each preset is a document for all three windows that you can send \
                   with PUT, changed or unchanged. Without `kind`, returns an example of each \
                   kind. Requires `apps:read`.",
    params(
        ("kind" = inline(Option<crate::choices::PresetChoice>), Query,
            description = "Filter by kind."),
        ("events" = Option<String>, Query,
            description = "Comma-separated events: one event for `revenue_buckets`, least \
                           important first for `event_bits`, in funnel order for `funnel`."),
        ("bounds" = Option<String>, Query,
            description = "Comma-separated lower bounds in ascending order, for \
                           `revenue_buckets`."),
        ("currency" = Option<String>, Query, description = "Currency of the bounds. Default: USD."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query,
            description = "`meta.cursor` from the previous page. Keep the other parameters."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY]))),
    responses((status = 200, description = "The presets.",
        body = inline(PresetListEnvelope), example = json!({
        "data": [{"kind": "revenue_buckets", "document": example()["data"]}],
        "meta": {"hasMore": false, "cursor": null},
    })))
)]
pub(crate) async fn presets(
    caller: Caller<AppsRead>,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let request = query.read(read)?;
    request.check()?;
    let scope = ListScope {
        list: "skan_presets",
        organization: caller.authorized.organization(),
        filters: request.kind.map_or("", Kind::as_str).to_owned(),
    };
    let kinds = request.kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let mut presets = Vec::new();
    for kind in kinds {
        let document = document(
            &kind.preset(request.events.clone(), request.bounds.clone()),
            request.currency,
        )?;
        let configuration = Configuration {
            document,
            ..Configuration::never_configured()
        };
        let preset = PresetOut {
            kind: kind.as_str(),
            document: SkanOut::of(&configuration),
        };
        presets.push((row_key([kind.as_str()]), preset));
    }
    Ok(RowPage::of(presets, &request.page, &state, &scope)?.into_list())
}
