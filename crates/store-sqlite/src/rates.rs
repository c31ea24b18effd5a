//! Imported exchange rates.

use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::exchange::{ImportedRates, Rate, RateBase, RateQuery, RateValue};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Rates, StoreError, StoreResult};

/// Finds the latest imported rate for a currency on or before a day.
pub(crate) fn latest_rate(
    connection: &Connection,
    question: RateQuery,
) -> Result<Option<Rate>, Failure> {
    let row: Option<(i32, String, i64, String)> = connection
        .prepare_cached(
            "select day, base, nanos, source from exchange_rates
             where currency = ?1 and day <= ?2 order by day desc limit 1",
        )?
        .query_row(
            params![question.currency.as_str(), question.day.as_days()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .optional()?;
    let Some((day, base, nanos, source)) = row else {
        return Ok(None);
    };
    let corrupt =
        |column| StoreError::corrupt("exchange_rates", column, question.currency.as_str());
    Ok(Some(Rate {
        currency: question.currency,
        day: Day::from_days(day),
        base: RateBase::parse(&base).ok_or_else(|| corrupt("base"))?,
        units: RateValue::from_nanos(nanos).ok_or_else(|| corrupt("nanos"))?,
        source,
    }))
}

/// Reads the rates for converting amounts in these currencies on these days.
pub(crate) fn imported_rates(
    connection: &Connection,
    wanted: impl IntoIterator<Item = (Currency, Day)>,
) -> Result<ImportedRates, Failure> {
    ImportedRates::gather(wanted, |question| latest_rate(connection, question))
}

#[async_trait]
impl Rates for SqliteStore {
    async fn import_rates(&self, rates: Vec<Rate>, at: Timestamp) -> StoreResult<u64> {
        self.write("import_rates", move |connection| {
            let mut changed = 0;
            for rate in &rates {
                changed += connection
                    .prepare_cached(
                        "insert into exchange_rates (currency, day, base, nanos, source, imported_at)
                         values (?1, ?2, ?3, ?4, ?5, ?6)
                         on conflict (currency, day) do update
                         set base = excluded.base, nanos = excluded.nanos, source = excluded.source,
                             imported_at = excluded.imported_at
                         where (base, nanos, source)
                               is not (excluded.base, excluded.nanos, excluded.source)",
                    )?
                    .execute(params![
                        rate.currency.as_str(),
                        rate.day.as_days(),
                        rate.base.as_str(),
                        rate.units.nanos(),
                        rate.source,
                        at.as_millis()
                    ])? as u64;
            }
            Ok(changed)
        })
        .await
    }

    async fn latest_rates(&self, questions: Vec<RateQuery>) -> StoreResult<Vec<Rate>> {
        self.read("latest_rates", move |connection| {
            let found = questions
                .iter()
                .map(|question| latest_rate(connection, *question));
            let found: Vec<Option<Rate>> = found.collect::<Result<_, _>>()?;
            Ok(found.into_iter().flatten().collect())
        })
        .await
    }

    async fn latest_rate_day(&self, currency: Currency) -> StoreResult<Option<Day>> {
        self.read("latest_rate_day", move |connection| {
            let day: Option<i32> = connection
                .prepare_cached("select max(day) from exchange_rates where currency = ?1")?
                .query_row(params![currency.as_str()], |row| row.get(0))?;
            Ok(day.map(Day::from_days))
        })
        .await
    }
}
