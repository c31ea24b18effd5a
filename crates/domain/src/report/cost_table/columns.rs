//! Finds the columns of a table of costs.

use crate::attribution::CreditedNetwork;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};

/// Rows in which the header row is looked for. Google Ads writes a title and a date range above it.
pub const HEADER_ROWS_MAX: usize = 10;

/// Tributary's own columns.
const OWN: [&str; 5] = ["day", "network", "campaign", "amount", "currency"];
/// Names of the day, best first.
const DAYS: [&str; 4] = ["day", "date", "by day", "reporting starts"];
/// Name of the last day of a row in Meta's exports.
const LAST_DAY: &str = "reporting ends";
/// Names of the campaign, best first. Ids come first because links and clicks carry ids.
const CAMPAIGNS: [&str; 5] = [
    "campaign id",
    "campaign_id",
    "campaign",
    "campaign name",
    "campaign_name",
];
/// Names of the amount, best first.
const AMOUNTS: [&str; 5] = ["amount", "amount spent", "cost", "spend", "total cost"];
/// Names of the currency, best first.
const CURRENCIES: [&str; 4] = [
    "currency",
    "currency code",
    "currency_code",
    "account currency",
];
/// Start of Meta's amount column, which names the currency: `Amount spent (USD)`.
const AMOUNT_SPENT: &str = "amount spent (";

/// Where a table comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostLayout {
    /// Tributary's own columns.
    Own,
    /// An export from Meta Ads Manager.
    Meta,
    /// An export from Google Ads.
    GoogleAds,
    /// An export from TikTok Ads Manager.
    TikTok,
    /// Another table.
    Other,
}

impl CostLayout {
    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "Tributary",
            Self::Meta => "Meta Ads Manager",
            Self::GoogleAds => "Google Ads",
            Self::TikTok => "TikTok Ads Manager",
            Self::Other => "another program",
        }
    }

    /// Returns the network of an export.
    pub const fn network(self) -> Option<CreditedNetwork> {
        use crate::integration::Network;
        match self {
            Self::Meta => Some(CreditedNetwork::Ad(Network::A)),
            Self::GoogleAds => Some(CreditedNetwork::Ad(Network::B)),
            Self::TikTok => Some(CreditedNetwork::Ad(Network::C)),
            Self::Own | Self::Other => None,
        }
    }
}

/// What the sender says about a table. Everything is optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostTableChoice {
    /// Network of all rows.
    pub network: Option<CreditedNetwork>,
    /// Currency of all rows.
    pub currency: Option<Currency>,
    /// Header of the day.
    pub day_column: Option<String>,
    /// Header of the campaign. Empty for costs without a campaign.
    pub campaign_column: Option<String>,
    /// Header of the amount.
    pub amount_column: Option<String>,
    /// Header of the currency.
    pub currency_column: Option<String>,
}

/// A column, or one value for all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnOr<T> {
    /// Index of the column.
    Column(usize),
    /// The value.
    Value(T),
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostColumns {
    /// Where the table comes from.
    pub layout: CostLayout,
    /// Number of columns.
    pub width: usize,
    /// First day of a row.
    pub day: usize,
    /// Last day of a row, if the table has ranges.
    pub day_until: Option<usize>,
    /// Network.
    pub network: ColumnOr<CreditedNetwork>,
    /// Campaign.
    pub campaign: Option<usize>,
    /// Amount.
    pub amount: usize,
    /// Currency.
    pub currency: ColumnOr<Currency>,
}

impl CostColumns {
    /// Finds the header row. Returns its index and the columns.
    pub fn find(rows: &[Vec<String>], choice: &CostTableChoice) -> Result<(usize, Self), Faults> {
        let Some(first) = rows.first() else {
            let problem = Problem::new(FaultCode::Required, "Must begin with a header row.");
            return Err(body(problem));
        };
        if is_own(first, choice) {
            return Ok((0, own(first)?));
        }
        let found = rows.iter().take(HEADER_ROWS_MAX).enumerate();
        for (index, row) in found {
            let header = Header::of(row);
            let day = header.chosen(choice.day_column.as_deref(), &DAYS);
            let amount = header
                .chosen(choice.amount_column.as_deref(), &AMOUNTS)
                .or_else(|| header.amount_with_currency().map(|(column, _)| column));
            if let (Some(day), Some(amount)) = (day, amount) {
                return Ok((index, export(&header, day, amount, choice)?));
            }
        }
        let message = format!(
            "The first {HEADER_ROWS_MAX} rows must contain a header row with a day and an amount. \
             Use the columns {}, or name the columns of your file.",
            OWN.join(", ")
        );
        Err(body(Problem::new(FaultCode::Required, message)))
    }

    /// Returns whether the table is an export, not Tributary's own columns.
    pub fn is_export(&self) -> bool {
        self.layout != CostLayout::Own
    }
}

fn body(problem: Problem) -> Faults {
    let mut faults = Faults::new();
    faults.add("body", problem);
    faults
}

/// A header row, in lower case.
struct Header(Vec<String>);

impl Header {
    fn of(row: &[String]) -> Self {
        Self(row.iter().map(|name| name.trim().to_lowercase()).collect())
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|found| found == name)
    }

    fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Returns the column that the sender names, or else the best known one.
    fn chosen(&self, name: Option<&str>, known: &[&str]) -> Option<usize> {
        match name {
            Some(name) => self.position(&name.trim().to_lowercase()),
            None => known.iter().find_map(|name| self.position(name)),
        }
    }

    /// Returns Meta's amount column and its currency.
    fn amount_with_currency(&self) -> Option<(usize, Option<Currency>)> {
        let columns = self.0.iter().enumerate();
        let mut amounts = columns.filter_map(|(index, name)| {
            let code = name.strip_prefix(AMOUNT_SPENT)?.strip_suffix(')')?;
            Some((index, Currency::parse(&code.to_uppercase()).ok()))
        });
        amounts.next()
    }

    fn layout(&self) -> CostLayout {
        let is_meta = self.0.iter().any(|name| name.starts_with("amount spent"))
            || self.has("reporting starts");
        if is_meta {
            CostLayout::Meta
        } else if self.has("by day") || (self.has("cost") && self.has("campaign name")) {
            CostLayout::TikTok
        } else if self.has("cost") && (self.has("campaign") || self.has("currency code")) {
            CostLayout::GoogleAds
        } else {
            CostLayout::Other
        }
    }
}

/// Returns whether a header row has Tributary's own columns. A sender who names columns or a
/// network describes another table.
fn is_own(row: &[String], choice: &CostTableChoice) -> bool {
    let header = Header::of(row);
    let names = |names: &[&str]| names.iter().all(|name| header.has(name));
    let only_own = header.0.iter().all(|name| OWN.contains(&name.as_str()));
    *choice == CostTableChoice::default()
        && (names(&["day", "network", "amount"]) || (only_own && header.has("network")))
}

fn own(row: &[String]) -> Result<CostColumns, Faults> {
    let header = Header::of(row);
    let is_unique = |(index, name): (usize, &String)| header.position(name) == Some(index);
    let is_known = |name: &String| OWN.contains(&name.as_str());
    if !header.0.iter().all(is_known) || !header.0.iter().enumerate().all(is_unique) {
        let message = format!(
            "The header row may contain only {}, each once.",
            OWN.join(", ")
        );
        return Err(body(Problem::new(FaultCode::UnknownField, message)));
    }
    let mut faults = Faults::new();
    let mut required = |name: &str| {
        let found = header.position(name);
        if found.is_none() {
            let message = format!("The header row must contain the column {name}.");
            faults.add("body", Problem::new(FaultCode::Required, message));
        }
        found.unwrap_or_default()
    };
    let (day, network, amount) = (required("day"), required("network"), required("amount"));
    faults.into_result()?;
    let currency = header.position("currency").map(ColumnOr::Column);
    Ok(CostColumns {
        layout: CostLayout::Own,
        width: header.0.len(),
        day,
        day_until: None,
        network: ColumnOr::Column(network),
        campaign: header.position("campaign"),
        amount,
        currency: currency.unwrap_or(ColumnOr::Value(Currency::USD)),
    })
}

fn export(
    header: &Header,
    day: usize,
    amount: usize,
    choice: &CostTableChoice,
) -> Result<CostColumns, Faults> {
    let mut faults = Faults::new();
    let layout = header.layout();
    let network = choice.network.or(layout.network()).map(ColumnOr::Value);
    let network = network.or_else(|| header.position("network").map(ColumnOr::Column));
    if network.is_none() {
        let message = "The file does not say which network it is from. Choose the network.";
        faults.add("network", Problem::new(FaultCode::Required, message));
    }
    let campaign = match choice.campaign_column.as_deref() {
        Some("") => None,
        name => {
            let found = header.chosen(name, &CAMPAIGNS);
            require_named(name, found, "campaignColumn", &mut faults);
            found
        }
    };
    let named = choice.currency_column.as_deref();
    let column = header.chosen(named, &CURRENCIES);
    require_named(named, column, "currencyColumn", &mut faults);
    let in_header = header
        .amount_with_currency()
        .filter(|(column, _)| *column == amount)
        .and_then(|(_, currency)| currency);
    let currency = match (choice.currency, column, in_header) {
        (Some(currency), _, _) | (None, None, Some(currency)) => Some(ColumnOr::Value(currency)),
        (None, Some(column), _) => Some(ColumnOr::Column(column)),
        (None, None, None) => None,
    };
    if currency.is_none() {
        let message = "The file does not say which currency its amounts have. Choose the currency.";
        faults.add("currency", Problem::new(FaultCode::Required, message));
    }
    let day_until = header.position(LAST_DAY);
    match (network, currency) {
        (Some(network), Some(currency)) if faults.is_empty() => Ok(CostColumns {
            layout,
            width: header.0.len(),
            day,
            day_until: day_until.filter(|_| header.position(DAYS[3]) == Some(day)),
            network,
            campaign,
            amount,
            currency,
        }),
        _ => Err(faults),
    }
}

/// Adds a fault if the sender names a column that the header row lacks.
fn require_named(name: Option<&str>, found: Option<usize>, field: &str, faults: &mut Faults) {
    if name.is_some() && found.is_none() {
        let message = "Must be a column in the header row.";
        faults.add(field, Problem::new(FaultCode::UnknownValue, message));
    }
}
