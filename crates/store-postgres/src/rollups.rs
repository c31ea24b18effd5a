//! Roll-ups: added to in the transaction that records what is counted, last and in the order of their keys,
//! so that two transactions never wait for each other.

use crate::Failure;
use crate::params::{Param, column, marks};
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::report::{CreditKey, Figures, Increments, NameKey, PlaceKey};
use tributary_domain::vocabulary::digest::Digest;
use uuid::Uuid;

/// Rows of one statement. A device with a long history moves as many as it has quarters of an hour.
const STATEMENT_ROWS_MAX: usize = 1_000;

/// A table of roll-ups.
struct Table {
    name: &'static str,
    key: &'static str,
    /// Columns that follow from the key.
    further: &'static str,
}

const CREDITS: Table = Table {
    name: "rollup_credits",
    key: "app_id, environment, bucket, network, link_id, campaign_digest",
    further: ", campaign_id, adset_id, ad_id",
};

const NAMES: Table = Table {
    name: "rollup_names",
    key: "app_id, environment, bucket, source, name",
    further: "",
};

const PLACES: Table = Table {
    name: "rollup_places",
    key: "app_id, environment, bucket, country, platform",
    further: "",
};

/// Adds what a transaction counted.
pub(crate) async fn add(tx: &Tx, increments: &Increments) -> Result<(), Failure> {
    let credits: Vec<_> = increments.credits.iter().filter(changes).collect();
    let names: Vec<_> = increments.names.iter().filter(changes).collect();
    let places: Vec<_> = increments.places.iter().filter(changes).collect();
    if let Some(most) = [credits.len(), names.len(), places.len()].iter().max()
        && *most <= STATEMENT_ROWS_MAX
    {
        // Sent together, in this order, which is the order they are done in.
        tokio::try_join!(
            biased;
            add_credits(tx, &credits),
            add_names(tx, &names),
            add_places(tx, &places)
        )?;
        return Ok(());
    }
    for rows in credits.chunks(STATEMENT_ROWS_MAX) {
        add_credits(tx, rows).await?;
    }
    for rows in names.chunks(STATEMENT_ROWS_MAX) {
        add_names(tx, rows).await?;
    }
    for rows in places.chunks(STATEMENT_ROWS_MAX) {
        add_places(tx, rows).await?;
    }
    Ok(())
}

fn changes<K>((_, figures): &(K, &Figures)) -> bool {
    !figures.is_zero()
}

async fn add_credits(tx: &Tx, rows: &[(&CreditKey, &Figures)]) -> Result<(), Failure> {
    let digests = column(rows, |(key, _)| campaign_digest(key));
    let keys: [&dyn Param; 9] = [
        &column(rows, |(key, _)| uuid(key.app.as_bytes())),
        &column(rows, |(key, _)| key.environment.as_str()),
        &column(rows, |(key, _)| key.bucket.begins_at().as_millis()),
        &column(rows, |(key, _)| key.network),
        &column(rows, |(key, _)| {
            key.link.map_or(Uuid::nil(), |link| uuid(link.as_bytes()))
        }),
        &column(&digests, |digest| digest.as_bytes().as_slice()),
        &column(rows, |(key, _)| key.campaign.as_str()),
        &column(rows, |(key, _)| key.adset.as_str()),
        &column(rows, |(key, _)| key.ad.as_str()),
    ];
    upsert(tx, CREDITS, &keys, &column(rows, |(_, figures)| **figures)).await
}

/// What stands for the three ids in the key. No text in this database holds the character between them.
fn campaign_digest(key: &CreditKey) -> Digest {
    let CreditKey {
        campaign,
        adset,
        ad,
        ..
    } = key;
    Digest::of(format!("{campaign}\0{adset}\0{ad}").as_bytes())
}

async fn add_names(tx: &Tx, rows: &[(&NameKey, &Figures)]) -> Result<(), Failure> {
    let keys: [&dyn Param; 5] = [
        &column(rows, |(key, _)| uuid(key.app.as_bytes())),
        &column(rows, |(key, _)| key.environment.as_str()),
        &column(rows, |(key, _)| key.bucket.begins_at().as_millis()),
        &column(rows, |(key, _)| key.source.as_str()),
        &column(rows, |(key, _)| key.name.as_str()),
    ];
    upsert(tx, NAMES, &keys, &column(rows, |(_, figures)| **figures)).await
}

async fn add_places(tx: &Tx, rows: &[(&PlaceKey, &Figures)]) -> Result<(), Failure> {
    let keys: [&dyn Param; 5] = [
        &column(rows, |(key, _)| uuid(key.app.as_bytes())),
        &column(rows, |(key, _)| key.environment.as_str()),
        &column(rows, |(key, _)| key.bucket.begins_at().as_millis()),
        &column(rows, |(key, _)| key.country.as_str()),
        &column(rows, |(key, _)| key.platform),
    ];
    upsert(tx, PLACES, &keys, &column(rows, |(_, figures)| **figures)).await
}

async fn upsert(
    tx: &Tx,
    table: Table,
    keys: &[&dyn Param],
    figures: &[Figures],
) -> Result<(), Failure> {
    if figures.is_empty() {
        return Ok(());
    }
    let Table { name, key, further } = table;
    let values: Vec<Vec<i64>> = (0..Figures::COUNT)
        .map(|figure| column(figures, |figures| figures.values()[figure]))
        .collect();
    let mut params = keys.to_vec();
    params.extend(values.iter().map(|values| values as &dyn Param));
    let columns = Figures::COLUMNS.join(", ");
    let sums: Vec<String> = Figures::COLUMNS
        .iter()
        .map(|column| format!("{column} = stored.{column} + excluded.{column}"))
        .collect();
    let sql = format!(
        "insert into {name} as stored ({key}{further}, {columns})
         select * from unnest({})
         on conflict ({key}) do update set {}",
        marks(params.len()),
        sums.join(", ")
    );
    tx.execute(&sql, &params).await?;
    Ok(())
}
