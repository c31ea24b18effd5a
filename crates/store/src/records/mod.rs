//! Stored shapes, shared by the adapters: entities on one side, columns on the other.
//!
//! What is searched, sorted or unique is a column of its own. The rest of an object is one JSON text, so
//! that a new setting needs no migration. Fields that an older version did not write have defaults.

mod app;
mod audit;
mod click;
mod columns;
mod decision;
mod delivery_hours;
mod device;
mod erasure;
mod event;
mod increments;
mod integration;
mod link;
mod notification;
mod outbox;
mod postback;
mod postback_stats;
mod report;
mod skan;
mod tenant;

pub use app::AppRow;
pub use audit::{AuditRow, audit_row};
pub use click::ClickRow;
pub use columns::{Column, Columns, StoredRow, Value};
pub use delivery_hours::{EndCounts, day_before, hour_of, whole};
pub use device::{DeviceRow, IdentityRow};
pub use erasure::{ERASED_CLICK, ERASED_EVENT, TraceRow, within_json};
pub use event::{Campaigns, CreditColumns, EventRow, IS_PAYMENT, uncounted};
pub use increments::{increments_from_json, increments_to_json};
pub use integration::IntegrationRow;
pub use link::LinkRow;
pub use notification::{
    ChainRow, NotificationRow, billing_event, billing_provider, original_transaction,
};
pub use outbox::{
    DeliveryRow, LateDelivery, LateRow, OutboxRow, PlannedRow, QueueRow, StatusCheckRow, alert_id,
    attempts_to_json, queue_ref, skipped_from_text, skipped_to_json,
};
pub use postback::{FoundPostbackRow, PostbackRow, UnclaimedRow};
pub use postback_stats::{PostbackStatsRow, StatsSql};
pub use report::{
    CohortStoredRow, CohortTable, CostRow, EnrolledRow, RollupRow, cohort_column, cohort_figures,
    dimension_column, dimension_value, figures, period, rollup_table, sums,
};
pub use skan::{EventSumRow, SkanRow, SkanVersionRow, document_to_json};
pub use tenant::{KeyRow, OrganizationRow, SessionRow, SetupLinkRow, UserRow, stored_digest};

use crate::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a stored shape. These are maps of plain values, which always have a JSON form.
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("stored shapes have string keys and plain values")
}

fn from_json<T: DeserializeOwned>(
    table: &'static str,
    column: &'static str,
    id: impl ToString,
    text: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::corrupt(table, column, id))
}
