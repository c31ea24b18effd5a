//! Cost reports: requests for the spend of campaigns by day, and their responses.
//!
//! [`CostReportAccount`] contains a cost source's settings and decrypted credentials.
//! [`CostReportAccount::request`] builds the request for a page of a span of days,
//! [`CostReportAccount::read`] classifies its response. `network_b` also needs an access token.

#[cfg(test)]
mod tests;

use crate::account::UnusableIntegration;
use crate::network_a::MetaReport;
use crate::network_b::GoogleAdsReport;
use crate::network_c::TikTokReport;
use crate::request::NetworkRequest;
use crate::response::{NetworkResponse, SendOutcome};
use crate::retry_after::RetryAfter;
use crate::secret::Secret;
use crate::text::percent_encoded;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::cost_source::{CostSource, DaySpan, ReportedCost, cost_settings_of};
use tributary_domain::integration::{Network, SettingDefault};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of bytes of a report page. Google Ads sends up to 10,000 rows of about 300 bytes.
pub const REPORT_BYTES_MAX: usize = 8 * 1_024 * 1_024;
/// Maximum length of a stored message.
const MESSAGE_CHARS_MAX: usize = 400;
/// Maximum length of a stored code.
const CODE_CHARS_MAX: usize = 64;
/// Maximum length of a campaign id. All three networks use at most 20 digits.
const CAMPAIGN_CHARS_MAX: usize = 64;
/// Code of a report that cannot be read.
const UNREADABLE: &str = "unreadable_report";

/// Everything that requests for one cost source need.
#[derive(Debug, Clone)]
pub enum CostReportAccount {
    /// Meta.
    A(MetaReport),
    /// Google Ads.
    B(GoogleAdsReport),
    /// TikTok.
    C(TikTokReport),
}

/// A classified response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportRuling {
    /// A page of the report.
    Page {
        /// Rows.
        rows: Vec<ReportedCost>,
        /// Where the next page begins; `None` on the last page.
        next: Option<String>,
    },
    /// A temporary failure.
    Retry {
        /// The network's code, or one of ours.
        code: String,
        /// Message without secrets.
        message: String,
        /// Wait that the network asks for.
        wait: Option<Duration>,
    },
    /// The credentials, the account or the request are wrong.
    Refused {
        /// The network's code.
        code: String,
        /// Message without secrets, and what to do.
        message: String,
    },
    /// Google Ads rejected the access token, which may have expired early.
    TokenRefused {
        /// The network's code.
        code: String,
        /// Message without secrets.
        message: String,
    },
}

/// A cost source's settings, with defaults.
pub(crate) struct ReportSettings<'a> {
    source: &'a CostSource,
    credentials: &'a BTreeMap<String, Secret>,
}

impl ReportSettings<'_> {
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let mut specs = cost_settings_of(self.source.network).iter();
        let default = specs.find(|spec| spec.name == name)?.default;
        match (self.source.settings.get(name), default) {
            (Some(text), _) => Some(text.clone()),
            (None, SettingDefault::Text(text)) => Some(text.to_owned()),
            _ => None,
        }
    }

    pub(crate) fn required(&self, name: &str) -> Result<String, UnusableIntegration> {
        let missing = || UnusableIntegration::new(format!("Missing: settings.{name}."));
        self.text(name).ok_or_else(missing)
    }

    pub(crate) fn secret(&self, name: &str) -> Option<Secret> {
        self.credentials.get(name).cloned()
    }

    pub(crate) fn required_secret(&self, name: &str) -> Result<Secret, UnusableIntegration> {
        let missing = || UnusableIntegration::new(format!("Missing: credentials.{name}."));
        self.secret(name).ok_or_else(missing)
    }
}

impl CostReportAccount {
    /// Reads a cost source. `credentials` are its decrypted credentials by name.
    pub fn open(
        source: &CostSource,
        credentials: &BTreeMap<String, Secret>,
    ) -> Result<Self, UnusableIntegration> {
        let settings = ReportSettings {
            source,
            credentials,
        };
        match source.network {
            Network::A => Ok(Self::A(MetaReport::open(&settings)?)),
            Network::B => Ok(Self::B(GoogleAdsReport::open(&settings)?)),
            Network::C => Ok(Self::C(TikTokReport::open(&settings)?)),
            Network::D => Err(UnusableIntegration::new("This network has no cost report.")),
        }
    }

    /// Returns the request for a page. `access_token` is for `network_b`.
    pub fn request(
        &self,
        span: DaySpan,
        page: Option<&str>,
        access_token: Option<&Secret>,
    ) -> NetworkRequest {
        match self {
            Self::A(account) => account.request(span, page),
            Self::B(account) => account.request(span, page, access_token),
            Self::C(account) => account.request(span, page),
        }
    }

    /// Returns the request for an access token, which `network_b` needs. `now` is in Unix seconds.
    pub fn token_request(&self, now: i64) -> Option<NetworkRequest> {
        match self {
            Self::B(account) => Some(account.token_request(now)),
            Self::A(_) | Self::C(_) => None,
        }
    }

    /// Classifies the outcome of a request for a page of `span`.
    pub fn read(&self, span: DaySpan, outcome: &SendOutcome, now: Timestamp) -> ReportRuling {
        let response = match outcome {
            SendOutcome::Response(response) => response,
            SendOutcome::NotSent => return no_answer("The network cannot be reached."),
            SendOutcome::Interrupted => return no_answer("The network did not answer in time."),
        };
        if response.truncated {
            return unreadable("The network's answer is too large.");
        }
        let ruling = match self {
            Self::A(_) => MetaReport::read(span, response),
            Self::B(_) => GoogleAdsReport::read(span, response),
            Self::C(_) => TikTokReport::read(span, response),
        };
        let asked = response.header("retry-after").and_then(RetryAfter::read);
        let asked = asked.and_then(|retry| retry.wait(now));
        match ruling {
            ReportRuling::Retry {
                code,
                message,
                wait,
            } => ReportRuling::Retry {
                code: self.clean(&code, CODE_CHARS_MAX),
                message: self.clean(&message, MESSAGE_CHARS_MAX),
                wait: wait.max(asked),
            },
            ReportRuling::Refused { code, message } => ReportRuling::Refused {
                code: self.clean(&code, CODE_CHARS_MAX),
                message: self.clean(&message, MESSAGE_CHARS_MAX),
            },
            ReportRuling::TokenRefused { code, message } => ReportRuling::TokenRefused {
                code: self.clean(&code, CODE_CHARS_MAX),
                message: self.clean(&message, MESSAGE_CHARS_MAX),
            },
            page @ ReportRuling::Page { .. } => page,
        }
    }

    /// Removes the account's secrets and control characters from a text, and limits its length.
    pub fn redact(&self, text: &str) -> String {
        self.clean(text, MESSAGE_CHARS_MAX)
    }

    fn clean(&self, text: &str, chars_max: usize) -> String {
        let secrets: Vec<&Secret> = match self {
            Self::A(account) => account.secrets().collect(),
            Self::B(account) => account.secrets().collect(),
            Self::C(account) => vec![account.secret()],
        };
        let mut clean = text.to_owned();
        let secrets = secrets.into_iter().map(Secret::expose);
        for secret in secrets.filter(|secret| !secret.is_empty()) {
            for written in [secret.to_owned(), percent_encoded(secret)] {
                clean = clean.replace(&written, "***");
            }
        }
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        clean.chars().map(shown).take(chars_max).collect()
    }
}

fn no_answer(message: &str) -> ReportRuling {
    ReportRuling::Retry {
        code: "no_answer".to_owned(),
        message: message.to_owned(),
        wait: None,
    }
}

/// Returns the ruling for a response that does not have the documented form.
pub(crate) fn unreadable(message: &str) -> ReportRuling {
    ReportRuling::Retry {
        code: UNREADABLE.to_owned(),
        message: message.to_owned(),
        wait: None,
    }
}

/// Returns the ruling for a response without a readable code.
pub(crate) fn by_status(response: &NetworkResponse) -> ReportRuling {
    let (code, status) = (response.status.to_string(), response.status);
    match status {
        401 | 403 | 404 | 405 | 410 => ReportRuling::Refused {
            code,
            message: "The network rejected the request. Check the account and the credentials."
                .to_owned(),
        },
        200..=299 => unreadable("The network's answer is not a report."),
        _ => ReportRuling::Retry {
            code,
            message: format!("The network answered with status {status}."),
            wait: None,
        },
    }
}

/// Builds a row; `None` if a value is invalid or the day was not asked for.
pub(crate) fn row(
    span: DaySpan,
    day: Option<&str>,
    campaign: Option<&str>,
    amount: Option<Amount>,
    currency: Option<&str>,
) -> Option<ReportedCost> {
    let day = Day::parse(day?).ok()?;
    let campaign = campaign?;
    let amount = amount?;
    let is_sound = (span.from..=span.to).contains(&day)
        && campaign.chars().count() <= CAMPAIGN_CHARS_MAX
        && amount >= Amount::ZERO;
    is_sound.then_some(ReportedCost {
        day,
        campaign: campaign.to_owned(),
        amount,
        currency: Currency::parse(currency?).ok()?,
    })
}
