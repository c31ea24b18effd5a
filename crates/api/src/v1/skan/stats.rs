//! `GET /api/v1/apps/{appId}/skan/stats` — counts postbacks, separately from device figures.

use super::query_values::{ad_network_id, parse_choice, protocol};
use super::stats_meaning::MeaningPeriods;
use super::stats_shape::{PostbackStatsEnvelope, PostbackStatsOut, example, merge_rows, totals};
use crate::caller::{Caller, ReportCaller};
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

/// Maximum number of rows over all pages.
const ROWS_MAX: u32 = 10_000;
/// Default value of `digits`.
const DIGITS_DEFAULT: u8 = 4;

/// A dimension of the report.
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

    fn report_query(&self, periods: Vec<tributary_domain::report::Period>) -> PostbackReportQuery {
        let source = self.has(Dimension::SourceIdentifier);
        // What a value means depends on the window and the value, so grouping by meaning requires
        // both dimensions.
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
    get, path = "/api/v1/apps/{appId}/skan/stats", tag = "Conversion value",
    operation_id = "getSkanStats",
    summary = "Count postbacks",
    description = "Figures for counted postbacks by day of arrival, which is days after the \
                   install. Do not add them to device figures: most installs are in both. Sorted \
                   newest first if grouped by `day`. A dimension is null for postbacks that do not \
                   contain it. `meaning` is the decoded meaning of the values, like a postback's \
                   `decoded`. Requires `analytics:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("groupBy" = Option<String>, Query,
            description = "Comma-separated dimensions: `day`, `protocol`, `adNetworkId`, \
                           `sourceIdentifier`, `campaignId`, `sequenceIndex`, `fineValue`, \
                           `coarseValue`, `meaning`. Default: `day`."),
        ("digits" = Option<i64>, Query, minimum = 2, maximum = 4,
            description = "Number of trailing digits to group source identifiers by. Default: 4. \
                           Identifiers with fewer digits are null."),
        ("adNetworkId" = Option<String>, Query,
            description = "Filter by ad network id, case-insensitive."),
        ("protocol" = inline(Option<crate::choices::ProtocolChoice>), Query,
            description = "Filter by framework."),
        ("from" = Option<String>, Query,
            description = "First day, such as `2026-01-01`. If omitted, the range covers 30 days."),
        ("to" = Option<String>, Query, description = "Last day, inclusive. Default: today."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of figures.",
        body = inline(PostbackStatsEnvelope), example = json!(example())))
)]
pub(crate) async fn stats(
    caller: ReportCaller<AnalyticsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let request = query.read(read)?;
    if request.digits.is_some() && !request.has(Dimension::SourceIdentifier) {
        let message = "Only valid with `groupBy=sourceIdentifier`.";
        return Err(out_of_range("digits", message));
    }
    let app = ids.app()?;
    let range = request
        .range
        .for_app(&state, &caller.authorized, app)
        .await?;
    let DayRange { from, to, zone } = &range;
    let by_day = request.has(Dimension::Day);
    let mut periods = each_day(*from, *to, zone);
    if let (false, Some(first), Some(last)) = (by_day, periods.first(), periods.last()) {
        periods = vec![(first.0, last.1)];
    }
    let meanings = if request.has(Dimension::Meaning) {
        let meanings = state.store.skan_meanings(&caller.authorized, app).await?;
        Some(MeaningPeriods::new(&periods, meanings))
    } else {
        None
    };
    let periods = meanings.as_ref().map_or(periods, MeaningPeriods::periods);
    let report_query = request.report_query(periods);
    let found = state
        .store
        .postback_stats(&caller.authorized, app, report_query);
    let mut rows = found.await?;
    if rows.len() > ROWS_MAX as usize {
        let message = format!(
            "The report has more than {ROWS_MAX} rows. Request fewer days or fewer dimensions."
        );
        return Err(out_of_range("groupBy", message));
    }
    let day_of = |period: usize| {
        let days = i32::try_from(period).unwrap_or(i32::MAX);
        by_day.then(|| Day::from_days(from.as_days().saturating_add(days)))
    };
    let names = request.dimension_names();
    let scope = request.scope(&caller, app, &range);
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
    let page = RowPage::of(rows.collect(), &request.page, &state, &scope)?;
    Ok(page.into_list_with_totals(totals))
}

impl SkanStatsQuery {
    /// Returns the scope of the list. A cursor is valid only for the same scope.
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
