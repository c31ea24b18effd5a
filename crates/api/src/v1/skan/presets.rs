//! `GET /api/v1/skan/presets` — documents to start from.

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

/// Things in a list, at most. More than any preset takes.
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
        let message = format!("Must have at most {ITEMS_MAX}, with commas between.");
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
    /// What does not go together.
    fn check(&self) -> Result<(), ApiError> {
        let mut faults = Faults::new();
        let mut refuse = |field: &str, message: &str| {
            faults.add(field, Problem::new(FaultCode::NotAllowed, message));
        };
        if self.events.is_some() && self.kind.is_none() {
            refuse("events", "Is for one kind; name it.");
        }
        if self.bounds.is_some() && self.kind != Some(Kind::RevenueBuckets) {
            refuse("bounds", "Is for kind=revenue_buckets.");
        }
        let several = self.events.as_ref().is_some_and(|events| events.len() != 1);
        if self.kind == Some(Kind::RevenueBuckets) && several {
            refuse(
                "events",
                "Must be one event: the one whose revenue is told apart.",
            );
        }
        Ok(faults.into_result()?)
    }
}

/// A document to start from.
#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "ConversionValuePreset")]
struct PresetOut {
    #[schema(inline, value_type = crate::choices::PresetChoice)]
    kind: &'static str,
    /// As `PUT /api/v1/apps/{appId}/skan` takes it. Not switched on.
    document: SkanOut,
}

type PresetListEnvelope = List<PresetOut>;

#[utoipa::path(
    get, path = "/api/v1/skan/presets", tag = "Conversion value", operation_id = "listSkanPresets",
    summary = "Make conversion-value documents to start from",
    description = "`revenue_buckets` tells ranges of revenue of one event apart, `event_bits` which of up to six events \
                   happened, `funnel` how far a person came. Each is a document for all three windows, ready to be sent \
                   with PUT, changed or not. Without `kind` there is an example of each. Needs `apps:read`.",
    params(
        ("kind" = inline(Option<crate::choices::PresetChoice>), Query, description = "This kind only."),
        ("events" = Option<String>, Query,
            description = "The events, with commas between: one for `revenue_buckets`, the least important first for \
                           `event_bits`, in their order for `funnel`."),
        ("bounds" = Option<String>, Query,
            description = "The lower bounds of the ranges, rising, with commas between; for `revenue_buckets`."),
        ("currency" = Option<String>, Query, description = "The currency of the bounds; USD when absent."),
        ("limit" = Option<i64>, Query, description = "Items of a page; 50 when absent.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query,
            description = "`meta.cursor` of the page before, with the same other parameters."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY]))),
    responses((status = 200, description = "The documents.", body = inline(PresetListEnvelope), example = json!({
        "data": [{"kind": "revenue_buckets", "document": example()["data"]}],
        "meta": {"hasMore": false, "cursor": null},
    })))
)]
pub(crate) async fn presets(
    caller: Caller<AppsRead>,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let asked = query.read(read)?;
    asked.check()?;
    let scope = ListScope {
        list: "skan_presets",
        organization: caller.authorized.organization(),
        filters: asked.kind.map_or("", Kind::as_str).to_owned(),
    };
    let kinds = asked.kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let mut made = Vec::new();
    for kind in kinds {
        let document = document(
            &kind.preset(asked.events.clone(), asked.bounds.clone()),
            asked.currency,
        )?;
        let configuration = Configuration {
            document,
            ..Configuration::never_configured()
        };
        let preset = PresetOut {
            kind: kind.as_str(),
            document: SkanOut::of(&configuration),
        };
        made.push((row_key([kind.as_str()]), preset));
    }
    Ok(RowPage::of(made, &asked.page, &state, &scope)?.into_list())
}
