//! Flagged installs that are held for a review.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, Authorized, InstallsReview};
use tributary_domain::attribution::{HoldDecision, HoldFilter};
use tributary_domain::audit::AuditContext;
use tributary_domain::device::{Device, DeviceKey};
use tributary_domain::install::Attribution;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};

/// Maximum number of installs that one request decides about. Each of them may have thousands of
/// events whose figures and deliveries change in the same transaction.
pub const HOLD_REVIEWS_MAX: u32 = 100;

/// An install that is or was held. Its attribution has a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldInstall {
    /// The device.
    pub device: Device,
    /// The attribution of its install.
    pub attribution: Attribution,
}

/// Result of deciding about the installs that match a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldReviewCount {
    /// Number of installs decided.
    pub decided: u64,
    /// Whether more held installs match.
    pub has_more: bool,
}

/// Held installs.
#[async_trait]
pub trait Holds: Send + Sync {
    /// Lists an app's held installs in the caller's environment, newest first.
    async fn held_installs(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: HoldFilter,
        page: PageRequest,
    ) -> StoreResult<Page<HeldInstall>>;

    /// Releases or rejects an install. Moves its figures, and plans or cancels its deliveries. A
    /// repeated decision changes nothing. Refused when the install was never held, and when a
    /// released install with events that were sent is rejected.
    async fn review_install(
        &self,
        caller: &Authorized<InstallsReview>,
        app: AppId,
        device: DeviceKey,
        decision: HoldDecision,
        origin: AuditContext,
    ) -> StoreResult<HeldInstall>;

    /// Releases or rejects the held installs that match a filter, newest first, at most
    /// [`HOLD_REVIEWS_MAX`].
    async fn review_installs(
        &self,
        caller: &Authorized<InstallsReview>,
        app: AppId,
        filter: HoldFilter,
        decision: HoldDecision,
        origin: AuditContext,
    ) -> StoreResult<HoldReviewCount>;
}
