//! Rows of roll-ups and cohorts.

use super::columns::{StoredRow, row};
use crate::StoreError;
use tributary_domain::access::Environment;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::Platform;
use tributary_domain::event::EventSource;
use tributary_domain::report::cohort::{
    Ages, CohortCredit, CohortDevice, CohortFigures, CohortKey, CohortPlaceKey, CohortTable,
};
use tributary_domain::report::{
    BucketKey, CampaignKey, CreditKey, Dimension, Figures, Grain, NameKey, NetworkKey, PivotKey,
    PlaceKey, Rollup, RollupRows,
};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;

/// Returns the table of a roll-up.
pub const fn rollup_table(rollup: Rollup) -> &'static str {
    match rollup {
        Rollup::Networks => "rollup_networks",
        Rollup::Campaigns => "rollup_campaigns",
        Rollup::Credits => "rollup_credits",
        Rollup::Names => "rollup_names",
        Rollup::Places => "rollup_places",
        Rollup::Pivots => "rollup_pivots",
    }
}

/// Returns the column of a dimension.
pub const fn dimension_column(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Network => "network",
        Dimension::Link => "link_id",
        Dimension::Campaign => "campaign_id",
        Dimension::Adset => "adset_id",
        Dimension::Ad => "ad_id",
        Dimension::Country => "country",
        Dimension::Platform => "platform",
        Dimension::Event => "name",
        Dimension::Source => "source",
    }
}

/// Returns the column by which the values of a table are folded. Tables without limits have none.
pub const fn capped_column(rollup: Rollup) -> &'static str {
    match rollup {
        Rollup::Networks | Rollup::Places => "",
        Rollup::Campaigns | Rollup::Credits | Rollup::Pivots => {
            dimension_column(Dimension::Campaign)
        }
        Rollup::Names => dimension_column(Dimension::Event),
    }
}

/// Returns the name of a cohort table.
pub const fn cohort_table(table: CohortTable) -> &'static str {
    match table {
        CohortTable::Credits => "rollup_cohorts",
        CohortTable::Places => "rollup_cohort_places",
    }
}

/// Returns SQL that sums columns. The cast is needed because `PostgreSQL` sums bigints as numeric.
pub fn sum_columns(columns: &[&str]) -> String {
    let sums: Vec<String> = columns
        .iter()
        .map(|column| format!("cast(sum({column}) as bigint)"))
        .collect();
    sums.join(", ")
}

/// Returns an SQL condition for groups with figures. Values that moved to `(other)` leave rows of
/// zeros, which must not use up the rows of a report.
pub fn has_figures(columns: &[&str]) -> String {
    let sums: Vec<String> = columns
        .iter()
        .map(|column| format!("sum({column}) <> 0"))
        .collect();
    sums.join(" or ")
}

/// Reads the link in a row's key. Key columns are never null: a missing link is stored as empty
/// bytes or as zeros, depending on the engine.
fn read_link<R: StoredRow>(row: &R, index: usize) -> Result<Option<LinkId>, R::Failure> {
    let bytes: Vec<u8> = row.column(index)?;
    let id = bytes.try_into().ok();
    Ok(id.filter(|id| *id != [0; 16]).map(LinkId::from_bytes))
}

/// Reads the value of a dimension for a report.
pub fn read_dimension<R: StoredRow>(
    row: &R,
    dimension: Dimension,
    index: usize,
) -> Result<String, R::Failure> {
    if dimension != Dimension::Link {
        return row.column(index);
    }
    let link = read_link(row, index)?;
    Ok(link.map(|link| link.to_string()).unwrap_or_default())
}

/// Reads the index of a period from the first column.
pub fn read_period<R: StoredRow>(row: &R) -> Result<usize, R::Failure> {
    let number: i64 = row.column(0)?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

/// Reads figures from the columns starting at `first`.
pub fn read_figures<R: StoredRow>(row: &R, first: usize) -> Result<Figures, R::Failure> {
    let mut values = [0; Figures::COUNT];
    for (index, value) in (first..).zip(&mut values) {
        *value = row.column(index)?;
    }
    Ok(Figures::from_values(values))
}

/// Reads cohort figures from the columns starting at `first`.
pub fn read_cohort_figures<R: StoredRow>(
    row: &R,
    first: usize,
) -> Result<CohortFigures, R::Failure> {
    let mut values = [0; CohortFigures::COUNT];
    for (index, value) in (first..).zip(&mut values) {
        *value = row.column(index)?;
    }
    Ok(CohortFigures::from_values(values))
}

/// A row of a roll-up. `texts` are the text values in its key, in the order of the table's
/// dimensions.
#[derive(Debug, Clone)]
pub struct RollupRow {
    grain: i64,
    bucket: i64,
    texts: Vec<String>,
    link: Option<LinkId>,
    figures: Figures,
}

impl RollupRow {
    /// Returns the column list of a table.
    pub fn columns(table: Rollup) -> String {
        let mut columns = vec!["grain", "bucket"];
        columns.extend(table.dimensions().iter().map(|one| dimension_column(*one)));
        columns.extend(Figures::COLUMNS);
        columns.join(", ")
    }

    /// Reads a row with these columns.
    pub fn from_row<R: StoredRow>(row: &R, table: Rollup) -> Result<Self, R::Failure> {
        let (mut texts, mut key_link) = (Vec::new(), None);
        let mut index = 2;
        for dimension in table.dimensions() {
            if *dimension == Dimension::Link {
                key_link = read_link(row, index)?;
            } else {
                texts.push(row.column(index)?);
            }
            index += 1;
        }
        Ok(Self {
            grain: row.column(0)?,
            bucket: row.column(1)?,
            texts,
            link: key_link,
            figures: read_figures(row, index)?,
        })
    }

    /// Adds the row to the rows of its table.
    pub fn read_into(
        self,
        of: (AppId, Environment),
        table: Rollup,
        rows: &mut RollupRows,
    ) -> Result<(), StoreError> {
        let at = read_bucket_key(of, self.grain, self.bucket)?;
        let corrupt = |column| StoreError::corrupt(rollup_table(table), column, at.app);
        let mut texts = self.texts.into_iter();
        let mut text = move || texts.next().unwrap_or_default();
        let row = match table {
            Rollup::Networks => {
                let network = network(&text()).ok_or_else(|| corrupt("network"))?;
                rows.networks.entry(NetworkKey { at, network }).or_default()
            }
            Rollup::Campaigns => {
                let key = CampaignKey {
                    at,
                    network: network(&text()).ok_or_else(|| corrupt("network"))?,
                    link: self.link,
                    campaign: text(),
                };
                rows.campaigns.entry(key).or_default()
            }
            Rollup::Credits => {
                let key = CreditKey {
                    at,
                    network: network(&text()).ok_or_else(|| corrupt("network"))?,
                    link: self.link,
                    campaign: text(),
                    adset: text(),
                    ad: text(),
                };
                rows.credits.entry(key).or_default()
            }
            Rollup::Names => {
                let name = text();
                let source = EventSource::parse(&text()).ok_or_else(|| corrupt("source"))?;
                rows.names.entry(NameKey { at, source, name }).or_default()
            }
            Rollup::Places => {
                let country = text();
                let platform = platform(&text()).ok_or_else(|| corrupt("platform"))?;
                let key = PlaceKey {
                    at,
                    country,
                    platform,
                };
                rows.places.entry(key).or_default()
            }
            Rollup::Pivots => {
                let key = PivotKey {
                    at,
                    network: network(&text()).ok_or_else(|| corrupt("network"))?,
                    campaign: text(),
                    country: text(),
                    platform: platform(&text()).ok_or_else(|| corrupt("platform"))?,
                };
                rows.pivots.entry(key).or_default()
            }
        };
        row.add(&self.figures, 1);
        Ok(())
    }
}

/// A row of a cohort table.
#[derive(Debug, Clone)]
pub struct CohortRollupRow {
    grain: i64,
    bucket: i64,
    /// Network, campaign and link. `None` in the table by country.
    credit: Option<(String, String, Option<LinkId>)>,
    country: String,
    age: i64,
    figures: CohortFigures,
}

impl CohortRollupRow {
    /// Returns the column list of a table.
    pub fn columns(table: CohortTable) -> String {
        let key = match table {
            CohortTable::Credits => "network, campaign_id, link_id",
            CohortTable::Places => "country",
        };
        let figures = CohortFigures::COLUMNS.join(", ");
        format!("grain, bucket, age, {figures}, {key}")
    }

    /// Reads a row with these columns.
    pub fn from_row<R: StoredRow>(row: &R, table: CohortTable) -> Result<Self, R::Failure> {
        let key = 3 + CohortFigures::COUNT;
        let (credit, country) = match table {
            CohortTable::Credits => {
                let credit = (
                    row.column(key)?,
                    row.column(key + 1)?,
                    read_link(row, key + 2)?,
                );
                (Some(credit), String::new())
            }
            CohortTable::Places => (None, row.column(key)?),
        };
        Ok(Self {
            grain: row.column(0)?,
            bucket: row.column(1)?,
            credit,
            country,
            age: row.column(2)?,
            figures: read_cohort_figures(row, 3)?,
        })
    }

    /// Adds the row to the cohort rows.
    pub fn read_into(
        self,
        of: (AppId, Environment),
        rows: &mut RollupRows,
    ) -> Result<(), StoreError> {
        let at = read_bucket_key(of, self.grain, self.bucket)?;
        let corrupt = |column| StoreError::corrupt("rollup_cohorts", column, at.app);
        let age = u8::try_from(self.age).map_err(|_| corrupt("age"))?;
        let row = if let Some((named, campaign, link)) = self.credit {
            let credit = CohortCredit {
                network: network(&named).ok_or_else(|| corrupt("network"))?,
                link,
                campaign,
            };
            let key = CohortKey { at, credit, age };
            rows.cohorts.credits.entry(key).or_default()
        } else {
            let country = self.country;
            let key = CohortPlaceKey { at, country, age };
            rows.cohorts.places.entry(key).or_default()
        };
        row.add(&self.figures, 1);
        Ok(())
    }
}

/// Parses the network in a row's key. An empty text means "not credited".
pub(super) fn network(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("");
    }
    CreditedNetwork::parse(text).map(CreditedNetwork::as_str)
}

/// Parses the platform in a row's key. An empty text means "unknown".
pub(super) fn platform(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("");
    }
    Platform::parse(text).map(Platform::as_str)
}

row! {
    /// A row of `cohort_devices`, without its key.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct CohortDeviceRow {
        pub installed_at: i64,
        pub network: String,
        pub link_id: Option<[u8; 16]>,
        pub campaign_id: String,
        pub country: String,
        pub ages: Vec<u8>,
        pub paid_ages: Option<Vec<u8>>,
    }
}

impl CohortDeviceRow {
    /// Converts a cohort device to columns.
    pub fn write(device: &CohortDevice) -> Self {
        // Most devices never pay.
        let is_payer = device.paid_ages != Ages::default();
        Self {
            installed_at: device.installed_at.as_millis(),
            network: device.credit.network.to_owned(),
            link_id: device.credit.link.map(|link| *link.as_bytes()),
            campaign_id: device.credit.campaign.clone(),
            country: device.country.clone(),
            ages: device.ages.to_bytes().to_vec(),
            paid_ages: is_payer.then(|| device.paid_ages.to_bytes().to_vec()),
        }
    }

    /// Reads the cohort device.
    pub fn read(self) -> Result<CohortDevice, StoreError> {
        let corrupt = |column| StoreError::corrupt("cohort_devices", column, "a device");
        let ages = self.ages.try_into().map_err(|_| corrupt("ages"))?;
        let paid_ages = self.paid_ages.map(TryInto::try_into).transpose();
        let paid_ages = paid_ages.map_err(|_: Vec<u8>| corrupt("paid_ages"))?;
        Ok(CohortDevice {
            installed_at: Timestamp::from_millis(self.installed_at),
            credit: CohortCredit {
                network: network(&self.network).ok_or_else(|| corrupt("network"))?,
                link: self.link_id.map(LinkId::from_bytes),
                campaign: self.campaign_id,
            },
            country: self.country,
            ages: Ages::from_bytes(ages),
            paid_ages: paid_ages.map(Ages::from_bytes).unwrap_or_default(),
        })
    }
}

/// Reads the bucket key of a row.
fn read_bucket_key(
    (app, environment): (AppId, Environment),
    grain: i64,
    bucket: i64,
) -> Result<BucketKey, StoreError> {
    let corrupt = || StoreError::corrupt("rollups", "grain", app);
    let grain = Grain::parse(grain).ok_or_else(corrupt)?;
    let at = Timestamp::from_millis(bucket);
    Ok(BucketKey::of(app, environment, at).within(grain))
}
