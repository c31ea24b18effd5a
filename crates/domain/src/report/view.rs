//! Saved views of reports, and links that share one with people without an account.

use crate::access::Environment;
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::{AppId, OrganizationId, ShareId, UserId, ViewId};
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Maximum number of views that a user saves per app. They are all in one menu.
pub const VIEWS_MAX: u64 = 50;
/// Maximum number of an app's open links, so that the list stays short enough to check.
pub const SHARES_MAX: u64 = 50;
/// Maximum length of a view's query. Longer than any that the pages produce.
pub const VIEW_QUERY_BYTES_MAX: usize = 4_000;
/// Longest validity of a link, in days. A link that works for ever is forgotten.
pub const SHARE_DAYS_MAX: u16 = 365;
/// Validity that the form suggests, in days.
pub const SHARE_DAYS_DEFAULT: u16 = 30;

/// A report that has dates and filters in its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPage {
    /// The overview.
    Overview,
    /// The pivot table.
    Explore,
    /// Cohorts of installs.
    Cohorts,
}

crate::keywords! {
    ReportPage { Overview => "overview", Explore => "explore", Cohorts => "cohorts" }
}

/// A report with its dates and filters, saved by a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    /// View id.
    pub id: ViewId,
    /// App of the report.
    pub app: AppId,
    /// The user who saved the view. Nobody else sees it.
    pub user: UserId,
    /// Name. A view replaces the user's other view with this name.
    pub name: Name,
    /// The report.
    pub page: ReportPage,
    /// Query of the URL. It may name a rolling period, such as the last seven days.
    pub query: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// A link that shows an overview to people without an account. It shows sums only, with the dates
/// and filters of its query; visitors cannot change them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareLink {
    /// Link id.
    pub id: ShareId,
    /// Organization of the app.
    pub organization: OrganizationId,
    /// App of the report.
    pub app: AppId,
    /// Live or test data.
    pub environment: Environment,
    /// Title of the page.
    pub name: Name,
    /// Query of the overview.
    pub query: String,
    /// The user who created the link. Removing the user revokes the link.
    pub created_by: UserId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// End of validity.
    pub expires_at: Timestamp,
    /// When the link was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl ShareLink {
    /// Returns whether the link shows its report.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }
}

/// Returns the end of validity of a link created now.
pub fn share_expiry(now: Timestamp, days: u16) -> Timestamp {
    now.plus(Duration::from_hours(24 * u64::from(days)))
}

/// Parses the validity of a link in days.
pub fn parse_share_days(text: &str) -> Result<u16, Problem> {
    let days = text.trim().parse().ok();
    days.filter(|days| (1..=SHARE_DAYS_MAX).contains(days))
        .ok_or_else(|| {
            let message = format!("Must be a whole number from 1 to {SHARE_DAYS_MAX}.");
            Problem::new(FaultCode::OutOfRange, message)
        })
}

/// Checks the length of a view's query.
pub fn check_view_query(query: &str) -> Result<(), Problem> {
    if query.len() <= VIEW_QUERY_BYTES_MAX {
        return Ok(());
    }
    let message = "These filters are too long to save. Remove some of them.";
    Err(Problem::new(FaultCode::TooLong, message))
}

/// Decides whether a user may save another view. A view replaces the one with the same name.
pub fn admit_view(other_names: u64) -> Result<(), Refusal> {
    if other_names < VIEWS_MAX {
        Ok(())
    } else {
        Err(Refusal::TooManyViews)
    }
}

/// Decides whether an app may get another link.
pub fn admit_share(open: u64) -> Result<(), Refusal> {
    if open < SHARES_MAX {
        Ok(())
    } else {
        Err(Refusal::TooManyShares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("1", Some(1))]
    #[case(" 30 ", Some(30))]
    #[case("365", Some(365))]
    #[case("0", None)]
    #[case("366", None)]
    #[case("-1", None)]
    #[case("ever", None)]
    fn a_link_is_valid_for_a_year_at_most(#[case] text: &str, #[case] expected: Option<u16>) {
        assert_eq!(parse_share_days(text).ok(), expected);
    }

    #[rstest]
    #[case::new(0, None, true)]
    #[case::last_moment(86_399_999, None, true)]
    #[case::expired(86_400_000, None, false)]
    #[case::revoked(0, Some(0), false)]
    fn a_link_is_open_until_it_expires_or_is_revoked(
        #[case] now: i64,
        #[case] revoked_at: Option<i64>,
        #[case] expected: bool,
    ) {
        let begin = Timestamp::from_millis(0);
        let share = ShareLink {
            id: ShareId::from_bytes([1; 16]),
            organization: OrganizationId::from_bytes([2; 16]),
            app: AppId::from_bytes([3; 16]),
            environment: Environment::Live,
            name: Name::parse("Spring").unwrap(),
            query: String::new(),
            created_by: UserId::from_bytes([4; 16]),
            created_at: begin,
            expires_at: share_expiry(begin, 1),
            revoked_at: revoked_at.map(Timestamp::from_millis),
        };
        assert_eq!(share.is_open(Timestamp::from_millis(now)), expected);
    }

    #[test]
    fn numbers_are_limited() {
        assert_eq!(admit_view(VIEWS_MAX - 1), Ok(()));
        assert_eq!(admit_view(VIEWS_MAX), Err(Refusal::TooManyViews));
        assert_eq!(admit_share(SHARES_MAX - 1), Ok(()));
        assert_eq!(admit_share(SHARES_MAX), Err(Refusal::TooManyShares));
        assert!(check_view_query(&"x".repeat(VIEW_QUERY_BYTES_MAX)).is_ok());
        assert!(check_view_query(&"x".repeat(VIEW_QUERY_BYTES_MAX + 1)).is_err());
    }
}
