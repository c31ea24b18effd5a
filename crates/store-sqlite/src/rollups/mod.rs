//! Roll-ups. A transaction stores its increments (`pending_increments`); they are merged into the
//! roll-ups later, in key order.

mod pending_increments;
mod table;
mod values;

pub(crate) use pending_increments::{merge_or_discard, store_increments};

use crate::Failure;
use rusqlite::{CachedStatement, Connection, ToSql, params_from_iter};
use std::sync::LazyLock;
use tributary_domain::report::cohort::CohortFigures;
use tributary_domain::report::{BucketKey, Figures, RollupRows};
use tributary_domain::vocabulary::id::LinkId;

/// Value of the `slot` column. There is only one writer, so one slot is enough.
const SLOT: i64 = 0;

static NETWORKS: LazyLock<String> =
    LazyLock::new(|| upsert::<Figures>("rollup_networks", &["network"]));
static CAMPAIGNS: LazyLock<String> =
    LazyLock::new(|| upsert::<Figures>("rollup_campaigns", &["network", "link_id", "campaign_id"]));
static CREDITS: LazyLock<String> = LazyLock::new(|| {
    let key = ["network", "link_id", "campaign_id", "adset_id", "ad_id"];
    upsert::<Figures>("rollup_credits", &key)
});
static NAMES: LazyLock<String> =
    LazyLock::new(|| upsert::<Figures>("rollup_names", &["source", "name"]));
static PLACES: LazyLock<String> =
    LazyLock::new(|| upsert::<Figures>("rollup_places", &["country", "platform"]));
static PIVOTS: LazyLock<String> = LazyLock::new(|| {
    let key = ["network", "campaign_id", "country", "platform"];
    upsert::<Figures>("rollup_pivots", &key)
});
static COHORTS: LazyLock<String> = LazyLock::new(|| {
    let key = ["network", "link_id", "campaign_id", "age"];
    upsert::<CohortFigures>("rollup_cohorts", &key)
});
static COHORT_PLACES: LazyLock<String> =
    LazyLock::new(|| upsert::<CohortFigures>("rollup_cohort_places", &["country", "age"]));

/// Adds rows to the roll-ups.
fn add_rows(connection: &Connection, rows: &RollupRows) -> Result<(), Failure> {
    let mut networks = Upsert::new(connection, &NETWORKS)?;
    for (key, figures) in &rows.networks {
        networks.add(&key.at, &[&key.network], &figures.values())?;
    }
    let mut campaigns = Upsert::new(connection, &CAMPAIGNS)?;
    for (key, figures) in &rows.campaigns {
        let link = link(key.link.as_ref());
        let values: [&dyn ToSql; 3] = [&key.network, &link, &key.campaign];
        campaigns.add(&key.at, &values, &figures.values())?;
    }
    let mut credits = Upsert::new(connection, &CREDITS)?;
    for (key, figures) in &rows.credits {
        let link = link(key.link.as_ref());
        let values: [&dyn ToSql; 5] = [&key.network, &link, &key.campaign, &key.adset, &key.ad];
        credits.add(&key.at, &values, &figures.values())?;
    }
    let mut names = Upsert::new(connection, &NAMES)?;
    for (key, figures) in &rows.names {
        let values: [&dyn ToSql; 2] = [&key.source.as_str(), &key.name];
        names.add(&key.at, &values, &figures.values())?;
    }
    let mut places = Upsert::new(connection, &PLACES)?;
    for (key, figures) in &rows.places {
        places.add(&key.at, &[&key.country, &key.platform], &figures.values())?;
    }
    let mut pivots = Upsert::new(connection, &PIVOTS)?;
    for (key, figures) in &rows.pivots {
        let values: [&dyn ToSql; 4] = [&key.network, &key.campaign, &key.country, &key.platform];
        pivots.add(&key.at, &values, &figures.values())?;
    }
    let mut cohorts = Upsert::new(connection, &COHORTS)?;
    for (key, figures) in &rows.cohorts.credits {
        let (credit, link) = (&key.credit, link(key.credit.link.as_ref()));
        let values: [&dyn ToSql; 4] = [&credit.network, &link, &credit.campaign, &key.age];
        cohorts.add(&key.at, &values, &figures.values())?;
    }
    let mut places = Upsert::new(connection, &COHORT_PLACES)?;
    for (key, figures) in &rows.cohorts.places {
        places.add(&key.at, &[&key.country, &key.age], &figures.values())?;
    }
    Ok(())
}

/// Key columns are not nullable: empty bytes mean no link.
fn link(link: Option<&LinkId>) -> &[u8] {
    link.map_or(&[], |link| link.as_bytes())
}

/// The columns of a set of figures.
trait FigureColumns {
    const COLUMNS: &'static [&'static str];
}

impl FigureColumns for Figures {
    const COLUMNS: &'static [&'static str] = &Self::COLUMNS;
}

impl FigureColumns for CohortFigures {
    const COLUMNS: &'static [&'static str] = &Self::COLUMNS;
}

/// Builds the statement that adds figures to a table's rows.
fn upsert<F: FigureColumns>(table: &str, key: &[&str]) -> String {
    let names = format!(
        "app_id, environment, grain, bucket, {}, slot",
        key.join(", ")
    );
    let marks = vec!["?"; key.len() + F::COLUMNS.len() + 5].join(", ");
    let sum = |column: &&str| format!("{column} = {column} + excluded.{column}");
    let sums: Vec<String> = F::COLUMNS.iter().map(sum).collect();
    format!(
        "insert into {table} ({names}, {}) values ({marks}) on conflict ({names}) do update set {}",
        F::COLUMNS.join(", "),
        sums.join(", ")
    )
}

struct Upsert<'c>(CachedStatement<'c>);

impl<'c> Upsert<'c> {
    fn new(connection: &'c Connection, sql: &str) -> Result<Self, Failure> {
        Ok(Self(connection.prepare_cached(sql)?))
    }

    fn add(&mut self, at: &BucketKey, key: &[&dyn ToSql], numbers: &[i64]) -> Result<(), Failure> {
        let environment = at.environment.as_str();
        let (grain, bucket) = (at.grain.minutes(), at.bucket.begins_at().as_millis());
        let head: [&dyn ToSql; 4] = [at.app.as_bytes(), &environment, &grain, &bucket];
        let all = head
            .into_iter()
            .chain(key.iter().copied())
            .chain([&SLOT as &dyn ToSql])
            .chain(numbers.iter().map(|number| number as &dyn ToSql));
        self.0.execute(params_from_iter(all))?;
        Ok(())
    }
}
