//! Cost reports of the three networks that have them: Meta's insights, Google Ads' search, TikTok's
//! integrated report.
//!
//! An account's spend is registered with `POST /control/reports`, which replaces all of it, so a day
//! can be restated.

mod google_ads;
mod meta;
mod tiktok;

pub(crate) use google_ads::search;
pub(crate) use meta::insights;
pub(crate) use tiktok::integrated;

use crate::network::SimulatedNetwork;
use jiff::civil::Date;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::HashMap;

/// Maximum number of report accounts.
const ACCOUNTS_MAX: usize = 1_000;
/// Days after today that a report may name: somewhere, tomorrow has begun.
const DAYS_AHEAD_MAX: i32 = 1;

/// An ad account with its spend.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReportAccount {
    network: SimulatedNetwork,
    account_id: String,
    /// Accepted access token of Meta or TikTok.
    access_token: Option<String>,
    /// If set, Meta requires `appsecret_proof`.
    app_secret: Option<String>,
    /// Accepted developer token of Google Ads.
    developer_token: Option<String>,
    /// Manager account of Google Ads. If set, `login-customer-id` must name it.
    login_account_id: Option<String>,
    currency: String,
    /// Rows per page, if fewer than the request asks for.
    page_rows: Option<usize>,
    #[serde(default)]
    rows: Vec<SpendRow>,
}

/// The spend of a campaign on one day.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SpendRow {
    #[serde(deserialize_with = "read_day")]
    day: Date,
    campaign_id: String,
    #[serde(default)]
    campaign_name: String,
    /// In millionths of the currency's unit.
    micros: i64,
}

fn read_day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Date, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(D::Error::custom)
}

impl SpendRow {
    /// Returns the spend with two decimals, or more if it has more.
    fn spend(&self) -> String {
        let text = format!("{}.{:06}", self.micros / 1_000_000, self.micros % 1_000_000);
        let shortest = text.trim_end_matches('0');
        let decimals = shortest.len() - text.find('.').unwrap_or_default() - 1;
        text[..text.len() - 6 + decimals.max(2)].to_owned()
    }
}

/// Registered accounts.
#[derive(Debug, Default)]
pub(crate) struct ReportAccounts(HashMap<(SimulatedNetwork, String), ReportAccount>);

impl ReportAccounts {
    /// Registers an account, replacing its credentials and all of its spend.
    pub(crate) fn register(&mut self, account: ReportAccount) -> Result<(), &'static str> {
        if self.0.len() >= ACCOUNTS_MAX {
            return Err("too many accounts; reset the simulator");
        }
        if account.network == SimulatedNetwork::NetworkD {
            return Err("network_d has no cost report");
        }
        let key = (account.network, account.account_id.clone());
        self.0.insert(key, account);
        Ok(())
    }

    fn get(&self, network: SimulatedNetwork, id: &str) -> Option<ReportAccount> {
        self.0.get(&(network, id.to_owned())).cloned()
    }
}

impl ReportAccount {
    /// An account without spend, for open mode.
    fn empty(network: SimulatedNetwork, id: &str) -> Self {
        Self {
            network,
            account_id: id.to_owned(),
            access_token: None,
            app_secret: None,
            developer_token: None,
            login_account_id: None,
            currency: "USD".to_owned(),
            page_rows: None,
            rows: Vec::new(),
        }
    }

    /// Returns the rows of a range, and a page of them with whether more follow.
    fn page(&self, days: (Date, Date), start: usize, limit: usize) -> (Vec<&SpendRow>, usize) {
        let found = self.rows.iter();
        let found: Vec<&SpendRow> = found
            .filter(|row| (days.0..=days.1).contains(&row.day))
            .collect();
        let limit = self.page_rows.unwrap_or(limit).clamp(1, limit);
        let all = found.len();
        (found.into_iter().skip(start).take(limit).collect(), all)
    }

    fn page_limit(&self, limit: usize) -> usize {
        self.page_rows.unwrap_or(limit).clamp(1, limit)
    }
}

/// Reads a range of days. The last day must not be in the future.
fn days(first: &str, last: &str, now: i64) -> Result<(Date, Date), &'static str> {
    let strict = |text: &str| {
        let date: Option<Date> = text.parse().ok();
        date.filter(|date| date.to_string() == text)
    };
    let (Some(first), Some(last)) = (strict(first), strict(last)) else {
        return Err("must be a date such as 2026-11-01");
    };
    if first > last {
        return Err("must not end before it begins");
    }
    let today = jiff::Timestamp::from_millisecond(now).unwrap_or_default();
    let today = today.to_zoned(jiff::tz::TimeZone::UTC).date();
    if last > today + jiff::Span::new().days(DAYS_AHEAD_MAX) {
        return Err("must not end in the future");
    }
    Ok((first, last))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
