//! Imported exchange rates.

use crate::params::column;
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tributary_domain::exchange::{ImportedRates, Rate, RateBase, RateQuery, RateValue};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Rates, StoreError, StoreResult};

/// Maximum number of rates per statement. A file with all rates since 1999 has hundreds of
/// thousands.
const STATEMENT_RATES_MAX: usize = 5_000;

/// Reads the rates for converting amounts in these currencies on these days. Each round sends all
/// independent queries at once: at most three statements in total, and none for US dollars.
pub(crate) async fn imported_rates(
    tx: &Tx,
    wanted: &[(Currency, Day)],
) -> Result<ImportedRates, Failure> {
    let mut rates = ImportedRates::default();
    loop {
        let mut questions: Vec<RateQuery> = Vec::new();
        for (currency, day) in wanted {
            let next = rates.next_query(*currency, *day);
            questions.extend(next.filter(|question| !questions.contains(question)));
        }
        if questions.is_empty() {
            return Ok(rates);
        }
        let mut answers = latest_rates(tx, &questions).await?;
        for (number, question) in (1..).zip(questions) {
            rates.record_result(question, answers.remove(&number));
        }
    }
}

/// Finds the latest imported rate on or before each day, by query number.
async fn latest_rates(tx: &Tx, questions: &[RateQuery]) -> Result<BTreeMap<i64, Rate>, Failure> {
    let currencies = column(questions, |question| question.currency.as_str());
    let days = column(questions, |question| question.day.as_days());
    let rows = tx
        .query(
            "select wanted.number, wanted.currency, latest.day, latest.base, latest.nanos, latest.source
             from unnest($1, $2) with ordinality as wanted (currency, day, number)
             cross join lateral (
                 select day, base, nanos, source from exchange_rates
                 where exchange_rates.currency = wanted.currency and exchange_rates.day <= wanted.day
                 order by exchange_rates.day desc limit 1
             ) as latest",
            &[&currencies, &days],
        )
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, rate(row)?)))
        .collect()
}

fn rate(row: &Row) -> Result<Rate, Failure> {
    let currency: &str = row.try_get(1)?;
    let corrupt = |column| StoreError::corrupt("exchange_rates", column, currency);
    Ok(Rate {
        currency: Currency::from_stored(currency).ok_or_else(|| corrupt("currency"))?,
        day: Day::from_days(row.try_get(2)?),
        base: RateBase::parse(row.try_get(3)?).ok_or_else(|| corrupt("base"))?,
        units: RateValue::from_nanos(row.try_get(4)?).ok_or_else(|| corrupt("nanos"))?,
        source: row.try_get(5)?,
    })
}

/// Returns the number of rates that changed.
async fn upsert(tx: &Tx, rates: &[&Rate], at: Timestamp) -> Result<u64, Failure> {
    let changed = tx
        .query(
            "insert into exchange_rates as stored (currency, day, base, nanos, source, imported_at)
         select currency, day, base, nanos, source, $6
         from unnest($1, $2, $3, $4, $5) as new (currency, day, base, nanos, source)
         on conflict (currency, day) do update
         set base = excluded.base, nanos = excluded.nanos, source = excluded.source,
             imported_at = excluded.imported_at
         where (stored.base, stored.nanos, stored.source)
               is distinct from (excluded.base, excluded.nanos, excluded.source)
         returning stored.day",
            &[
                &column(rates, |rate| rate.currency.as_str()),
                &column(rates, |rate| rate.day.as_days()),
                &column(rates, |rate| rate.base.as_str()),
                &column(rates, |rate| rate.units.nanos()),
                &column(rates, |rate| rate.source.as_str()),
                &at.as_millis(),
            ],
        )
        .await?;
    Ok(changed.len() as u64)
}

#[async_trait]
impl Rates for PostgresStore {
    async fn import_rates(&self, rates: Vec<Rate>, at: Timestamp) -> StoreResult<u64> {
        self.write("import_rates", async move |tx| {
            // One statement cannot write a row twice, so the last rate for a currency and day wins.
            // Sorted, so that concurrent imports do not deadlock.
            let rates: BTreeMap<(&str, Day), &Rate> = rates
                .iter()
                .map(|rate| ((rate.currency.as_str(), rate.day), rate))
                .collect();
            let rates: Vec<&Rate> = rates.into_values().collect();
            let mut changed = 0;
            for rates in rates.chunks(STATEMENT_RATES_MAX) {
                changed += upsert(tx, rates, at).await?;
            }
            Ok(changed)
        })
        .await
    }

    async fn latest_rates(&self, questions: Vec<RateQuery>) -> StoreResult<Vec<Rate>> {
        self.read("latest_rates", async move |tx| {
            let found = latest_rates(tx, &questions).await?;
            Ok(found.into_values().collect())
        })
        .await
    }

    async fn latest_rate_day(&self, currency: Currency) -> StoreResult<Option<Day>> {
        self.read("latest_rate_day", async move |tx| {
            let sql = "select max(day) from exchange_rates where currency = $1";
            let row = tx.query_one(sql, &[&currency.as_str()]).await?;
            let day: Option<i32> = row.try_get(0)?;
            Ok(day.map(Day::from_days))
        })
        .await
    }
}
