//! Postbacks, as the API and the dashboard list them.

use crate::Failure;
use crate::rows::{Conditions, read_row, uuid};
use crate::skan;
use crate::tx::Tx;
use tributary_domain::app::App;
use tributary_domain::report::postback::PostbackCounting;
use tributary_domain::skan::postback::{ConversionType, Protocol, Signature};
use tributary_domain::vocabulary::id::PostbackId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, PostbackReadRow, StatsSql};
use tributary_store::{PostbackFilter, PostbackPage, StoredPostback};

/// Finds a page of an app's postbacks. Callers with a test key get an empty page, because postbacks
/// are live data.
pub(super) async fn find_page(
    tx: &Tx,
    app: &App,
    filter: &PostbackFilter,
    page: PageRequest,
    is_live: bool,
) -> Result<PostbackPage, Failure> {
    let rows = if is_live {
        find(tx, app, filter, page).await?
    } else {
        Vec::new()
    };
    Ok(PostbackPage {
        page: Page::from_rows(rows, page.limit),
        versions: skan::find_versions(tx, app).await?,
        accept_test_signals: app.skan_test_signals,
    })
}

async fn find(
    tx: &Tx,
    app: &App,
    filter: &PostbackFilter,
    page: PageRequest,
) -> Result<Vec<StoredPostback>, Failure> {
    let first_at = |at: Timestamp| uuid(PostbackId::first_at(at).as_bytes());
    let (app_id, before) = (uuid(app.id.as_bytes()), page.before.as_ref().map(uuid));
    let (from, until) = (filter.from.map(first_at), filter.until.map(first_at));
    let protocol = filter.protocol.map(Protocol::as_str);
    let signature = filter.signature.map(Signature::as_str);
    let ending = filter
        .source_identifier
        .as_ref()
        .map(|digits| format!("%{digits}"));
    let sequence_index = filter.sequence_index.map(i64::from);
    let conversion_type = filter.conversion_type.map(ConversionType::as_str);
    let now = StatsSql::counting(app.skan_test_signals);
    let counting: Option<Vec<&str>> = filter.counted.map(|counted| {
        let all = PostbackCounting::ALL.map(PostbackCounting::as_str);
        all.into_iter()
            .filter(|one| now.contains(one) == counted)
            .collect()
    });
    let rows = page.limit.rows();
    let (conditions, params) = Conditions::new("app_id", &app_id)
        .and("postback_id <", before.as_ref())
        .and("postback_id >=", from.as_ref())
        .and("postback_id <", until.as_ref())
        .and("ad_network_id =", filter.ad_network_id.as_ref())
        .and("protocol =", protocol.as_ref())
        .and("signature =", signature.as_ref())
        .and("source_identifier like", ending.as_ref())
        .and("sequence_index =", sequence_index.as_ref())
        .and("did_win =", filter.did_win.as_ref())
        .and("conversion_type =", conversion_type.as_ref())
        .and_any("counting", counting.as_ref())
        .newest("postback_id", &rows);
    let columns = PostbackReadRow::COLUMNS;
    let sql = format!("select {columns} from postbacks where {conditions}");
    let rows = tx.query(&sql, &params).await?;
    rows.iter()
        .map(|row| Ok(read_row::<PostbackReadRow>(row)?.read()?))
        .collect()
}
