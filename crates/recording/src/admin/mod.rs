//! Changes made through the API and the dashboard. Each change is one transaction with its audit
//! log entry.

mod accounts;
mod apps;
mod audit;
mod cost_sources;
mod costs;
mod deliveries;
mod factors;
mod guesses;
mod integrations;
mod keys;
mod links;
mod members;
mod notices;
mod secret_keys;
mod sessions;
mod single_sign_on;
mod skan;
mod store_ids;
mod tenants;
mod views;

pub use accounts::{create_password_reset, redeem_password_reset, remove_accounts, reset_accounts};
pub use apps::{
    create_app, end_replaced_sdk_key, rotate_sdk_key, set_link_domain_verified, update_app,
};
pub use audit::{chain_audit_entries, note_action, remove_audit_entries};
pub use cost_sources::{
    lease_cost_source, pull_cost_source, put_cost_source, remove_cost_source, settle_cost_source,
    store_imported_costs,
};
pub use costs::put_costs;
pub use deliveries::{retry_deliveries, retry_delivery};
pub use factors::{
    add_factor, remove_factor, remove_factors, replace_recovery_codes, require_second_factor,
    use_passkey, use_recovery_code, use_totp,
};
pub use guesses::{add_guess, audit_failed_sign_in, count_guess, guess_wait, take_back_guess};
pub(crate) use integrations::read_integration;
pub use integrations::{integration_health, resume_integration, update_integration};
pub use keys::{
    create_key, find_key, key_page, own_keys, revoke_key, revoke_managed_key, rotate_key,
    take_over_key,
};
pub use links::{create_link, create_links, delete_link, update_link};
pub use members::{change_member_role, end_member_sessions, remove_member, withdraw_invitation};
pub use notices::{
    create_notice, delete_notice, queue_alert_messages, replace_notice, settle_message,
    settle_notice,
};
pub use secret_keys::{
    begin_key_rotation, count_outdated_rows, finish_key_rotation, keep_alert_secret, reencrypt,
    rotate_alert_secret, stored_keys,
};
pub use sessions::{begin_session, change_password, end_other_sessions};
pub use single_sign_on::{
    audit_failed_sign_on, remove_single_sign_on, replace_single_sign_on, sign_on,
};
pub use skan::{patch_skan, put_skan, skan_for_device};
pub use store_ids::prove_store_id;
pub use tenants::{
    create_first_organization, create_organization, create_setup_link, redeem_setup_link,
};
pub use views::{create_share, revoke_share, save_view};
