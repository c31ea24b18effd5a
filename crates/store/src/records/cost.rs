//! Rows of costs.

use super::columns::row;
use crate::StoreError;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::report::cost::{Cost, CostOrigin, ImportedDays, StoredCost};
use tributary_domain::report::{CostSum, counted_costs};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::money::Amount;

row! {
    /// A row of `costs`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct CostRow {
        pub cost_id: [u8; 16],
        pub day: i32,
        pub network: String,
        pub campaign_id: String,
        pub amount_micros: i64,
        pub currency: String,
        pub usd_micros: i64,
        pub rate_day: i32,
        pub source: String,
    }
}

impl CostRow {
    /// Converts a cost to columns.
    pub fn write(stored: &StoredCost) -> Self {
        let cost = &stored.cost;
        Self {
            cost_id: *cost.key().as_bytes(),
            day: cost.day.as_days(),
            network: cost.network.as_str().to_owned(),
            campaign_id: cost.campaign.clone(),
            amount_micros: cost.amount.micros(),
            currency: cost.currency.as_str().to_owned(),
            usd_micros: stored.usd.micros(),
            rate_day: stored.rate_day.as_days(),
            source: cost.origin.as_str().to_owned(),
        }
    }

    /// Reads the cost.
    pub fn read(self) -> Result<StoredCost, StoreError> {
        let corrupt = |column| StoreError::corrupt("costs", column, self.day);
        let cost = Cost {
            day: Day::from_days(self.day),
            network: CreditedNetwork::parse(&self.network).ok_or_else(|| corrupt("network"))?,
            campaign: self.campaign_id.clone(),
            amount: Amount::from_micros(self.amount_micros),
            currency: Currency::from_stored(&self.currency).ok_or_else(|| corrupt("currency"))?,
            origin: CostOrigin::parse(&self.source).ok_or_else(|| corrupt("source"))?,
        };
        Ok(StoredCost {
            cost,
            usd: Amount::from_micros(self.usd_micros),
            rate_day: Day::from_days(self.rate_day),
            is_counted: true,
        })
    }

    /// Reads a page of costs. `imported` are the rows with imported costs of the same days; they
    /// decide which costs count.
    pub fn read_page(
        rows: Vec<Self>,
        imported: &[(i32, String)],
    ) -> Result<Vec<StoredCost>, StoreError> {
        let origin = CostOrigin::Imported;
        let imported = imported.iter();
        let days = ImportedDays::of(
            imported.map(|(day, network)| (Day::from_days(*day), network.as_str(), origin)),
        );
        let read = |row: Self| {
            let mut stored = row.read()?;
            let cost = &stored.cost;
            stored.is_counted = days.counts(cost.day, cost.network.as_str(), cost.origin);
            Ok(stored)
        };
        rows.into_iter().map(read).collect()
    }

    /// Converts an app's rows to the costs that count.
    pub fn counted(rows: Vec<Self>) -> Result<Vec<CostSum>, StoreError> {
        let sum = |row: Self| {
            let origin = CostOrigin::parse(&row.source)
                .ok_or_else(|| StoreError::corrupt("costs", "source", row.day))?;
            Ok::<_, StoreError>(CostSum {
                day: Day::from_days(row.day),
                network: row.network,
                campaign: row.campaign_id,
                usd_micros: row.usd_micros,
                origin,
            })
        };
        let sums = rows.into_iter().map(sum).collect::<Result<_, _>>()?;
        Ok(counted_costs(sums))
    }
}
