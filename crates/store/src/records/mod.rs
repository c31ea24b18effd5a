//! Conversions between entities and database rows, shared by the adapters.
//!
//! A field that is searched, sorted or unique has its own column. The other fields are stored as
//! one JSON text, so that a new setting needs no migration. Fields that an older version did not
//! write get defaults.

mod app;
mod audit;
mod campaign_names;
mod click;
mod columns;
mod consent;
mod cost;
mod cost_source;
mod decision;
mod delivery_hours;
mod device;
mod device_link;
mod erasure;
mod event;
mod factor;
mod hold;
mod increments;
mod integration;
mod key;
mod link;
mod notice;
mod notification;
mod outbox;
mod postback;
mod postback_stats;
mod queue_lease;
mod report;
mod sdk_key;
mod sealed;
mod single_sign_on;
mod skan;
mod store_id_claim;
mod tenant;
mod traffic;
mod user_link;
mod view;

pub use app::AppRow;
pub use audit::{AuditChainRow, AuditPlaceRow, AuditRow, audit_row, stored_sequence};
pub use campaign_names::NameSources;
pub use click::ClickRow;
pub use columns::{ColumnValue, Columns, FromColumn, StoredRow};
pub use cost::CostRow;
pub use cost_source::CostSourceRow;
pub use delivery_hours::{TerminalCounts, count_to_u64, first_hour_of_last_day, hour_of};
pub use device::{DeviceRow, IdentityRow};
pub use device_link::{
    ADVERTISING_LINK_ORDER, DeviceLinkRow, SELECT_ADVERTISING_LINKS, SELECT_USER_LINKS,
    USER_LINK_ORDER,
};
pub use erasure::{ERASED_CLICK, ERASED_EVENT, OF_USER_WITHOUT_DEVICE, TraceRow, json_string};
pub use event::{CampaignCache, CreditColumns, EventRow, IS_PAYMENT, uncounted_reason};
pub use factor::FactorRow;
pub use increments::{increments_from_json, increments_to_json};
pub use integration::IntegrationRow;
pub use key::KeyRow;
pub use link::{LinkRow, link_tags};
pub use notice::{NoticeMessageRow, NoticeRow};
pub use notification::{
    ChainRow, NotificationRow, billing_event, billing_provider, original_transaction,
};
pub use outbox::{
    DeliveryRow, EVENT_NAME, ExpiredDelivery, ExpiredRow, OutboxRow, PlannedRow, QueueRow,
    StatusCheckRow, alert_id, attempts_to_json, queue_ref, skipped_from_json_lossy,
    skipped_network_pattern, skipped_pattern, skipped_to_json,
};
pub use postback::{PostbackReadRow, PostbackRow, UnclaimedRow};
pub use postback_stats::{PostbackStatsRow, StatsSql};
pub use queue_lease::{QueueLeaseRow, QueuePartRow, StoredLease, StoredPartLease};
pub use report::{
    CohortDeviceRow, CohortRollupRow, RollupRow, capped_column, cohort_table, dimension_column,
    has_figures, read_cohort_figures, read_dimension, read_figures, read_period, rollup_table,
    sum_columns,
};
pub use sdk_key::SdkKeyRow;
pub use sealed::{
    CellKey, CellPart, Reencrypt, ReencryptedCell, SEALED_COLUMNS, SealedCell, SealedColumn,
    SealedForm, key_ids, key_ids_bytes,
};
pub use single_sign_on::SingleSignOnRow;
pub use skan::{EventSumRow, SkanRow, SkanVersionRow, document_to_json};
pub use store_id_claim::StoreIdClaimRow;
pub use tenant::{
    OrganizationRow, PasswordResetRow, SessionRow, SetupLinkRow, UserRow, stored_digest,
};
pub use traffic::AnomalyRow;
pub use user_link::UserLinkRow;
pub use view::{SavedViewRow, ShareLinkRow};

use crate::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Serialises a stored struct. Its fields are plain values, so this cannot fail.
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
