//! Roll-ups. A transaction stores its increments (`pending_increments`); they are merged into the
//! roll-ups later, in key order to avoid deadlocks.

mod pending_increments;
mod table;
mod values;

#[cfg(test)]
pub(crate) use pending_increments::merge_all;
pub(crate) use pending_increments::{
    CountedApps, PendingApps, UNMERGED_ROWS_MAX, merge_app, start_merging, store_increments,
};

use crate::Failure;
use crate::params::{Param, column, placeholders};
use crate::rows::uuid;
use crate::tx::Tx;
use std::collections::BTreeMap;
use tributary_domain::report::cohort::{CohortFigures, CohortKey, CohortPlaceKey};
use tributary_domain::report::{
    BucketKey, CampaignKey, CreditKey, Figures, NameKey, NetworkKey, PivotKey, PlaceKey, RollupRows,
};
use tributary_domain::vocabulary::id::LinkId;
use tributary_store::transfer::campaign_digest;
use uuid::Uuid;

/// Maximum number of rows per statement. Moving a device with a long history changes one row per
/// quarter-hour.
const STATEMENT_ROWS_MAX: usize = 1_000;
/// Value of the `slot` column. All nodes use the same slot, because only one node merges at a time.
/// Rows with other slots come from older versions, in which each node had its own slot.
const SLOT: i64 = 0;

/// A roll-up table.
#[derive(Clone, Copy)]
struct Table {
    name: &'static str,
    key: &'static str,
    /// Columns that are not in the key, but whose values are determined by it.
    further: &'static str,
    figures: &'static [&'static str],
}

const NETWORKS: Table = Table {
    name: "rollup_networks",
    key: "network",
    further: "",
    figures: &Figures::COLUMNS,
};

const CAMPAIGNS: Table = Table {
    name: "rollup_campaigns",
    key: "network, link_id, campaign_digest",
    further: ", campaign_id",
    figures: &Figures::COLUMNS,
};

const CREDITS: Table = Table {
    name: "rollup_credits",
    key: "network, link_id, campaign_digest",
    further: ", campaign_id, adset_id, ad_id",
    figures: &Figures::COLUMNS,
};

const NAMES: Table = Table {
    name: "rollup_names",
    key: "source, name",
    further: "",
    figures: &Figures::COLUMNS,
};

const PLACES: Table = Table {
    name: "rollup_places",
    key: "country, platform",
    further: "",
    figures: &Figures::COLUMNS,
};

const PIVOTS: Table = Table {
    name: "rollup_pivots",
    key: "network, campaign_digest, country, platform",
    further: ", campaign_id",
    figures: &Figures::COLUMNS,
};

const COHORTS: Table = Table {
    name: "rollup_cohorts",
    key: "network, link_id, campaign_digest, age",
    further: ", campaign_id",
    figures: &CohortFigures::COLUMNS,
};

const COHORT_PLACES: Table = Table {
    name: "rollup_cohort_places",
    key: "country, age",
    further: "",
    figures: &CohortFigures::COLUMNS,
};

/// Adds a few rows with pipelined statements, in table order, which is also the order of locking.
async fn add_pipelined(tx: &Tx, rows: &RollupRows) -> Result<(), Failure> {
    let (networks, campaigns) = (listed(&rows.networks), listed(&rows.campaigns));
    let credits = listed(&rows.credits);
    let (names, places) = (listed(&rows.names), listed(&rows.places));
    let pivots = listed(&rows.pivots);
    let cohorts = listed(&rows.cohorts.credits);
    let cohort_places = listed(&rows.cohorts.places);
    tokio::try_join!(
        biased;
        add_networks(tx, &networks),
        add_campaigns(tx, &campaigns),
        add_credits(tx, &credits),
        add_names(tx, &names),
        add_places(tx, &places),
        add_pivots(tx, &pivots),
        add_cohorts(tx, &cohorts),
        add_cohort_places(tx, &cohort_places)
    )?;
    Ok(())
}

/// Adds rows, table by table and in key order.
async fn add_rows(tx: &Tx, rows: &RollupRows) -> Result<(), Failure> {
    if rows.len() <= STATEMENT_ROWS_MAX {
        // Boxed because the futures of many concurrent statements are large.
        return Box::pin(add_pipelined(tx, rows)).await;
    }
    for rows in listed(&rows.networks).chunks(STATEMENT_ROWS_MAX) {
        add_networks(tx, rows).await?;
    }
    for rows in listed(&rows.campaigns).chunks(STATEMENT_ROWS_MAX) {
        add_campaigns(tx, rows).await?;
    }
    for rows in listed(&rows.credits).chunks(STATEMENT_ROWS_MAX) {
        add_credits(tx, rows).await?;
    }
    for rows in listed(&rows.names).chunks(STATEMENT_ROWS_MAX) {
        add_names(tx, rows).await?;
    }
    for rows in listed(&rows.places).chunks(STATEMENT_ROWS_MAX) {
        add_places(tx, rows).await?;
    }
    for rows in listed(&rows.pivots).chunks(STATEMENT_ROWS_MAX) {
        add_pivots(tx, rows).await?;
    }
    for rows in listed(&rows.cohorts.credits).chunks(STATEMENT_ROWS_MAX) {
        add_cohorts(tx, rows).await?;
    }
    for rows in listed(&rows.cohorts.places).chunks(STATEMENT_ROWS_MAX) {
        add_cohort_places(tx, rows).await?;
    }
    Ok(())
}

fn listed<K, F>(rows: &BTreeMap<K, F>) -> Vec<(&K, &F)> {
    rows.iter().collect()
}

async fn add_networks(tx: &Tx, rows: &[(&NetworkKey, &Figures)]) -> Result<(), Failure> {
    let keys: [&dyn Param; 1] = [&column(rows, |(key, _)| key.network)];
    let at = column(rows, |(key, _)| key.at);
    upsert(tx, NETWORKS, &at, &keys, &numbers(rows)).await
}

async fn add_campaigns(tx: &Tx, rows: &[(&CampaignKey, &Figures)]) -> Result<(), Failure> {
    let digests = column(rows, |(key, _)| campaign_digest(&key.campaign, "", ""));
    let keys: [&dyn Param; 4] = [
        &column(rows, |(key, _)| key.network),
        &column(rows, |(key, _)| link(key.link)),
        &column(&digests, |digest| digest.as_bytes().as_slice()),
        &column(rows, |(key, _)| key.campaign.as_str()),
    ];
    let at = column(rows, |(key, _)| key.at);
    upsert(tx, CAMPAIGNS, &at, &keys, &numbers(rows)).await
}

async fn add_credits(tx: &Tx, rows: &[(&CreditKey, &Figures)]) -> Result<(), Failure> {
    let digests = column(rows, |(key, _)| {
        campaign_digest(&key.campaign, &key.adset, &key.ad)
    });
    let keys: [&dyn Param; 6] = [
        &column(rows, |(key, _)| key.network),
        &column(rows, |(key, _)| link(key.link)),
        &column(&digests, |digest| digest.as_bytes().as_slice()),
        &column(rows, |(key, _)| key.campaign.as_str()),
        &column(rows, |(key, _)| key.adset.as_str()),
        &column(rows, |(key, _)| key.ad.as_str()),
    ];
    let at = column(rows, |(key, _)| key.at);
    upsert(tx, CREDITS, &at, &keys, &numbers(rows)).await
}

/// Key columns are not nullable: the nil UUID means no link.
fn link(link: Option<LinkId>) -> Uuid {
    link.map_or(Uuid::nil(), |link| uuid(link.as_bytes()))
}

async fn add_names(tx: &Tx, rows: &[(&NameKey, &Figures)]) -> Result<(), Failure> {
    let keys: [&dyn Param; 2] = [
        &column(rows, |(key, _)| key.source.as_str()),
        &column(rows, |(key, _)| key.name.as_str()),
    ];
    let at = column(rows, |(key, _)| key.at);
    upsert(tx, NAMES, &at, &keys, &numbers(rows)).await
}

async fn add_places(tx: &Tx, rows: &[(&PlaceKey, &Figures)]) -> Result<(), Failure> {
    let keys: [&dyn Param; 2] = [
        &column(rows, |(key, _)| key.country.as_str()),
        &column(rows, |(key, _)| key.platform),
    ];
    let at = column(rows, |(key, _)| key.at);
    upsert(tx, PLACES, &at, &keys, &numbers(rows)).await
}

async fn add_pivots(tx: &Tx, rows: &[(&PivotKey, &Figures)]) -> Result<(), Failure> {
    let digests = column(rows, |(key, _)| campaign_digest(&key.campaign, "", ""));
    let keys: [&dyn Param; 5] = [
        &column(rows, |(key, _)| key.network),
        &column(&digests, |digest| digest.as_bytes().as_slice()),
        &column(rows, |(key, _)| key.country.as_str()),
        &column(rows, |(key, _)| key.platform),
        &column(rows, |(key, _)| key.campaign.as_str()),
    ];
    let at = column(rows, |(key, _)| key.at);
    upsert(tx, PIVOTS, &at, &keys, &numbers(rows)).await
}

async fn add_cohorts(tx: &Tx, rows: &[(&CohortKey, &CohortFigures)]) -> Result<(), Failure> {
    let digests = column(rows, |(key, _)| {
        campaign_digest(&key.credit.campaign, "", "")
    });
    let keys: [&dyn Param; 5] = [
        &column(rows, |(key, _)| key.credit.network),
        &column(rows, |(key, _)| link(key.credit.link)),
        &column(&digests, |digest| digest.as_bytes().as_slice()),
        &column(rows, |(key, _)| i64::from(key.age)),
        &column(rows, |(key, _)| key.credit.campaign.as_str()),
    ];
    let at = column(rows, |(key, _)| key.at);
    upsert(tx, COHORTS, &at, &keys, &cohort_numbers(rows)).await
}

async fn add_cohort_places(
    tx: &Tx,
    rows: &[(&CohortPlaceKey, &CohortFigures)],
) -> Result<(), Failure> {
    let keys: [&dyn Param; 2] = [
        &column(rows, |(key, _)| key.country.as_str()),
        &column(rows, |(key, _)| i64::from(key.age)),
    ];
    let at = column(rows, |(key, _)| key.at);
    upsert(tx, COHORT_PLACES, &at, &keys, &cohort_numbers(rows)).await
}

/// Returns one column per figure.
fn numbers<K>(rows: &[(K, &Figures)]) -> Vec<Vec<i64>> {
    (0..Figures::COUNT)
        .map(|figure| column(rows, |(_, figures)| figures.values()[figure]))
        .collect()
}

fn cohort_numbers<K>(rows: &[(K, &CohortFigures)]) -> Vec<Vec<i64>> {
    (0..CohortFigures::COUNT)
        .map(|figure| column(rows, |(_, figures)| figures.values()[figure]))
        .collect()
}

async fn upsert(
    tx: &Tx,
    table: Table,
    at: &[BucketKey],
    keys: &[&dyn Param],
    numbers: &[Vec<i64>],
) -> Result<(), Failure> {
    if at.is_empty() {
        return Ok(());
    }
    let Table {
        name,
        key,
        further,
        figures,
    } = table;
    let apps = column(at, |at| uuid(at.app.as_bytes()));
    let environments = column(at, |at| at.environment.as_str());
    let grains = column(at, |at| at.grain.minutes());
    let buckets = column(at, |at| at.bucket.begins_at().as_millis());
    let slots = vec![SLOT; at.len()];
    let mut params: Vec<&dyn Param> = vec![&apps, &environments, &grains, &buckets, &slots];
    params.extend(keys);
    params.extend(numbers.iter().map(|values| values as &dyn Param));
    let columns = figures.join(", ");
    let sums: Vec<String> = figures
        .iter()
        .map(|column| format!("{column} = stored.{column} + excluded.{column}"))
        .collect();
    let stretch = "app_id, environment, grain, bucket";
    let sql = format!(
        "insert into {name} as stored ({stretch}, slot, {key}{further}, {columns})
         select * from unnest({})
         on conflict ({stretch}, {key}, slot) do update set {}",
        placeholders(params.len()),
        sums.join(", ")
    );
    tx.execute(&sql, &params).await?;
    Ok(())
}
