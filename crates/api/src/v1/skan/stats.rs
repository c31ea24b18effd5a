//! `GET /api/v1/apps/{appId}/skan/stats` — what postbacks count. Beside the figures of devices, never among them.

use super::query_values::{ad_network_id, parse_choice, protocol};
use super::stats_meaning::MeaningPeriods;
use super::stats_shape::{PostbackStatsEnvelope, PostbackStatsOut, example, merge_rows, totals};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::PageQuery;
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString};
use crate::report::range::RangeQuery;
use crate::report::{RowPage, out_of_range, row_key};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::Value;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::keywords;
use tributary_domain::report::range::DayRange;
use tributary_domain::skan::postback::Protocol;
use tributary_domain::vocabulary::calendar::each_day;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;
use tributary_store::{PostbackDimensions, PostbackReportQuery};

/// Rows of all pages. A year by day and source identifier has more, and nobody reads it.
const ROWS_MAX: u32 = 10_000;
/// Digits of a source identifier that are told apart when nobody says.
const DIGITS_DEFAULT: u8 = 4;

/// What figures can be told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Day,
    Protocol,
    AdNetworkId,
    SourceIdentifier,
    CampaignId,
    SequenceIndex,
    FineValue,
    CoarseValue,
    Meaning,
}

keywords! {
    Dimension {
        Day => "day",
        Protocol => "protocol",
        AdNetworkId => "adNetworkId",
        SourceIdentifier => "sourceIdentifier",
        CampaignId => "campaignId",
        SequenceIndex => "sequenceIndex",
        FineValue => "fineValue",
        CoarseValue => "coarseValue",
        Meaning => "meaning",
    }
}

struct SkanStatsQuery {
    dimensions: Vec<Dimension>,
    digits: Option<u8>,
    ad_network_id: Option<String>,
    protocol: Option<Protocol>,
    range: RangeQuery,
    page: PageQuery,
}

fn dimensions(text: &str) -> Result<Vec<Dimension>, Problem> {
    let mut all = Vec::new();
    for word in text.split(',') {
        let one = parse_choice(word.trim(), Dimension::ALL, Dimension::as_str)?;
        if !all.contains(&one) {
            all.push(one);
        }
    }
    Ok(all)
}

fn read(parameters: &mut QueryParameters<'_>) -> SkanStatsQuery {
    let digits = |text: &str| parse_choice(text, &["2", "3", "4"], |word| word);
    SkanStatsQuery {
        dimensions: parameters
            .optional("groupBy", dimensions)
            .unwrap_or_else(|| vec![Dimension::Day]),
        digits: parameters
            .optional("digits", digits)
            .and_then(|word| word.parse().ok()),
        ad_network_id: parameters.optional("adNetworkId", ad_network_id),
        protocol: parameters.optional("protocol", protocol),
        range: RangeQuery::read(parameters),
        page: PageQuery::read(parameters),
    }
}

impl SkanStatsQuery {
    fn has(&self, dimension: Dimension) -> bool {
        self.dimensions.contains(&dimension)
    }

    fn question(&self, periods: Vec<tributary_domain::report::Period>) -> PostbackReportQuery {
        let source = self.has(Dimension::SourceIdentifier);
        // A meaning is that of a value in a window.
        let has = |dimension| self.has(dimension) || self.has(Dimension::Meaning);
        PostbackReportQuery {
            periods,
            group_by: PostbackDimensions {
                protocol: self.has(Dimension::Protocol),
                ad_network_id: self.has(Dimension::AdNetworkId),
                source_digits: source.then(|| self.digits.unwrap_or(DIGITS_DEFAULT)),
                campaign_id: self.has(Dimension::CampaignId),
                sequence_index: has(Dimension::SequenceIndex),
                fine_value: has(Dimension::FineValue),
                coarse_value: has(Dimension::CoarseValue),
            },
            ad_network_id: self.ad_network_id.clone(),
            protocol: self.protocol,
            rows_max: ROWS_MAX + 1,
        }
    }
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/skan/stats", tag = "Conversion value", operation_id = "getSkanStats",
    summary = "Count postbacks",
    description = "What the postbacks that count now come to, by the day of their arrival, which is days after the install. \
                   They stand beside the figures of devices and must not be added to them: the same install is usually in \
                   both. Newest first where days are told apart. A dimension is null where the postbacks do not say it. `meaning` is what the configuration \
                   says of the values, as `decoded` of a postback. Needs `analytics:read`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("groupBy" = Option<String>, Query,
            description = "Any of `day`, `protocol`, `adNetworkId`, `sourceIdentifier`, `campaignId`, `sequenceIndex`, \
                           `fineValue`, `coarseValue`, `meaning`, with commas between; `day` when absent."),
        ("digits" = Option<i64>, Query, minimum = 2, maximum = 4,
            description = "How many of the last digits of a source identifier are told apart; 4 when absent. Where Apple told \
                           fewer it is null."),
        ("adNetworkId" = Option<String>, Query, description = "Of this ad network only; its case does not matter."),
        ("protocol" = inline(Option<crate::choices::ProtocolChoice>), Query, description = "Of this framework only."),
        ("from" = Option<String>, Query, description = "The first day, such as `2026-01-01`; 30 days when absent."),
        ("to" = Option<String>, Query, description = "The last day, inclusive; today when absent."),
        ("timezone" = Option<String>, Query, description = "In which zone the days begin; the app's when absent."),
        ("limit" = Option<i64>, Query, description = "Items of a page; 50 when absent.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` of the page before."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The figures.", body = inline(PostbackStatsEnvelope), example = json!(example())))
)]
pub(crate) async fn stats(
    caller: Caller<AnalyticsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let asked = query.read(read)?;
    if asked.digits.is_some() && !asked.has(Dimension::SourceIdentifier) {
        let message = "Is for groupBy=sourceIdentifier.";
        return Err(out_of_range("digits", message));
    }
    let app = ids.app()?;
    let range = asked.range.for_app(&state, &caller.authorized, app).await?;
    let DayRange { from, to, zone } = &range;
    let by_day = asked.has(Dimension::Day);
    let mut periods = each_day(*from, *to, zone);
    if let (false, Some(first), Some(last)) = (by_day, periods.first(), periods.last()) {
        periods = vec![(first.0, last.1)];
    }
    let meanings = if asked.has(Dimension::Meaning) {
        let meanings = state.store.skan_meanings(&caller.authorized, app).await?;
        Some(MeaningPeriods::new(&periods, meanings))
    } else {
        None
    };
    let periods = meanings.as_ref().map_or(periods, MeaningPeriods::periods);
    let question = asked.question(periods);
    let found = state
        .store
        .postback_stats(&caller.authorized, app, question);
    let mut rows = found.await?;
    if rows.len() > ROWS_MAX as usize {
        let message = format!("Comes to more than {ROWS_MAX} rows; ask for fewer days or groups.");
        return Err(out_of_range("groupBy", message));
    }
    let day_of = |period: usize| {
        let days = i32::try_from(period).unwrap_or(i32::MAX);
        by_day.then(|| Day::from_days(from.as_days().saturating_add(days)))
    };
    let names = asked.dimension_names();
    let scope = asked.scope(&caller, app, &range);
    rows.sort_by_key(|row| std::cmp::Reverse(row.period));
    let rows = rows.into_iter().map(|row| {
        let (row, meaning) = match &meanings {
            Some(meanings) => meanings.decode_row(row),
            None => (row, Value::Null),
        };
        PostbackStatsOut::of(day_of(row.period), &names, row, meaning)
    });
    let rows = merge_rows(rows);
    let totals = totals(&rows);
    let rows = rows
        .into_iter()
        .map(|(about, row)| (row_key([about.as_str()]), row));
    let page = RowPage::of(rows.collect(), &asked.page, &state, &scope)?;
    Ok(page.into_list_with_totals(totals))
}

impl SkanStatsQuery {
    /// Everything that makes this another list.
    fn scope(&self, caller: &Caller<AnalyticsRead>, app: AppId, range: &DayRange) -> ListScope {
        let narrowed_by = serde_json::json!([
            app.to_string(),
            caller.authorized.environment().as_str(),
            self.dimension_names(),
            self.digits,
            self.ad_network_id,
            self.protocol.map(Protocol::as_str),
            range.from.to_string(),
            range.to.to_string(),
            range.zone.as_str()
        ]);
        ListScope {
            list: "skan_stats",
            organization: caller.authorized.organization(),
            filters: narrowed_by.to_string(),
        }
    }

    fn dimension_names(&self) -> Vec<&'static str> {
        self.dimensions.iter().map(|one| one.as_str()).collect()
    }
}
