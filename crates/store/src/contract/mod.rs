//! The contract suite: tests that every adapter must pass, written once.
//!
//! An adapter calls [`contract_suite!`](crate::contract_suite) with a function that opens a new,
//! empty store. If the engines behave differently, a test fails.

pub mod ad_services;
pub mod alerts;
pub mod apps;
pub mod attestation;
pub mod audit_log;
pub mod billing;
pub mod billing_cohorts;
pub mod billing_duplicates;
pub mod billing_orders;
mod billing_orders_reports;
pub mod campaign_names;
pub mod clicks;
pub mod cohorts;
pub mod cost_sources;
pub mod deliveries;
pub mod devices;
pub mod duplicates;
pub mod erasure;
pub mod erasure_fixtures;
pub mod erasure_later;
pub mod events;
pub mod fixtures;
pub mod holds;
pub mod identity;
pub mod import_duplicates;
pub mod imports;
pub mod instance;
pub mod integrations;
pub mod link_lists;
pub mod links;
pub mod members;
pub mod notices;
pub mod outbox;
pub mod outbox_fixtures;
pub mod ownership;
pub mod pivots;
pub mod planning;
pub mod postback_fixtures;
pub mod postback_variants;
pub mod postbacks;
pub mod queues;
pub mod rates;
pub mod report_values;
pub mod reports;
pub mod retention;
pub mod sdk_fixtures;
pub mod sessions;
pub mod shared_queues;
pub mod skan;
pub mod tenants;
pub mod traffic;
pub mod views;
pub mod web_events;
pub mod what_if;

/// What opening a store for a case returns.
pub trait OpenedStore {
    /// Must live as long as the store.
    type Guard;

    /// Returns the store, or `None` to skip the case.
    fn into_store(self) -> Option<(fixtures::SharedStore, Self::Guard)>;
}

impl<G> OpenedStore for (fixtures::SharedStore, G) {
    type Guard = G;

    fn into_store(self) -> Option<(fixtures::SharedStore, G)> {
        Some(self)
    }
}

impl<G> OpenedStore for Option<(fixtures::SharedStore, G)> {
    type Guard = G;

    fn into_store(self) -> Option<(fixtures::SharedStore, G)> {
        self
    }
}

/// Generates one `#[tokio::test]` per case. `$open` is an async function without arguments. It
/// returns a new store, and a guard that must live as long as the store. It may also return an
/// `Option`, and `None` to skip the cases.
#[macro_export]
macro_rules! contract_suite {
    ($open:path) => {
        $crate::contract_tests! { $open;
            instance: {
                the_first_secret_is_stored_and_another_is_refused,
                the_probe_commits_and_the_report_names_engine_and_schema,
                changes_of_keys_apps_and_links_give_a_new_version,
                other_changes_keep_the_version,
                calls_that_change_nothing_keep_the_change_count,
                a_first_notification_gives_a_new_version,
                a_closed_store_is_unavailable,
            }
            tenants: {
                concurrent_calls_create_one_first_organization,
                an_existing_organization_is_the_first_one,
                a_key_is_found_by_its_digest,
                revoking_again_keeps_the_first_time,
                the_last_use_of_a_key_never_goes_back,
                keys_belong_to_their_organization,
                a_set_up_link_creates_one_account_and_one_key,
                concurrent_calls_redeem_a_set_up_link_once,
                a_taken_email_is_refused_and_leaves_the_link_unused,
                an_email_has_one_account_per_organization,
                redeeming_a_link_invalidates_other_first_owner_links,
                a_new_first_owner_link_invalidates_earlier_ones,
                an_organization_awaits_its_owner_until_an_account_exists,
            }
            sessions: {
                a_session_is_found_by_its_digest_until_it_ends,
                the_last_use_of_a_session_never_goes_back,
                a_password_change_ends_all_other_sessions,
                signing_in_removes_expired_sessions,
                a_removed_user_cannot_sign_in,
            }
            views: {
                a_user_sees_the_own_views,
                a_user_saves_a_limited_number_of_views,
                a_share_link_is_found_until_it_is_revoked,
                an_app_has_a_limited_number_of_open_share_links,
                another_organization_shares_nothing,
                a_removed_member_shares_nothing,
            }
            members: {
                a_changed_role_applies_to_the_next_request,
                the_last_owner_cannot_be_removed_or_demoted,
                owners_who_remove_each_other_leave_one,
                a_removed_member_is_signed_out,
                an_invitation_is_listed_until_it_is_used_or_withdrawn,
                another_organization_cannot_manage_members,
            }
            apps: {
                an_app_is_read_as_it_was_stored,
                changes_of_different_fields_add_up,
                an_outdated_version_is_refused,
                an_unchanged_app_is_not_written,
                a_released_name_is_free_again,
                a_refused_creation_stores_nothing,
                another_organization_sees_and_changes_nothing,
                apps_are_paged_newest_first,
                archived_apps_are_left_out,
                secrets_are_stored_sealed_and_can_be_removed,
                another_organization_reads_no_secret,
                an_unlisted_time_zone_is_still_readable,
                analytics_readers_can_read_the_time_zone,
                analytics_readers_can_list_app_names,
                concurrent_changes_lose_nothing,
            }
            links: {
                a_link_is_read_as_it_was_stored,
                a_link_needs_an_app_of_the_organization,
                a_slug_belongs_to_one_link_of_the_instance,
                a_slug_stays_taken_after_the_link_is_gone,
                a_link_can_take_its_former_slug_back,
                a_change_is_validated_with_the_stored_fields,
                a_deleted_link_is_not_found,
                a_deletion_obeys_its_precondition,
                another_organization_finds_no_link,
                another_app_finds_no_link,
                deep_links_use_listed_schemes,
                pages_neither_skip_nor_repeat_while_links_arrive,
            }
            link_lists: {
                links_are_filtered_by_search_tag_and_folder,
                many_links_are_created_or_none,
            }
            clicks: {
                a_link_is_found_by_id_and_slugs,
                apps_are_listed_per_host,
                a_click_is_read_as_it_was_recorded,
                a_click_is_counted_once_and_bots_are_not,
                a_click_of_a_test_key_stays_in_the_test_environment,
                concurrent_clicks_are_all_recorded,
                page_hints_fill_missing_fields,
                old_clicks_are_removed_unless_referenced,
                old_device_addresses_are_deleted,
                bot_clicks_do_not_crowd_out_real_ones,
                a_click_needs_the_link_of_its_app,
            }
            devices: {
                an_sdk_key_names_its_app,
                the_first_call_records_one_install,
                concurrent_calls_record_one_install,
                a_click_is_given_to_one_install,
                a_test_device_claims_no_click,
                a_probabilistic_match_is_found_by_address,
                a_click_is_found_by_advertising_id,
                better_evidence_moves_decision_events_and_figures,
                a_deterministic_decision_is_not_replaced,
                events_before_the_first_call_are_credited_with_it,
                a_device_is_read_as_it_was_described,
                a_web_page_records_no_install,
                a_link_that_opened_the_app_is_a_click,
                another_organization_finds_no_device,
            }
            ad_services: {
                a_token_is_leased_to_one_worker,
                apples_answer_improves_an_organic_install,
            }
            events: {
                an_event_is_read_as_it_was_recorded,
                an_event_is_recorded_once_by_its_id,
                an_event_sent_concurrently_is_recorded_once,
                uncounted_amounts_are_stored,
                a_rebuild_applies_the_current_revenue_rule,
                amounts_are_converted_at_the_rate_of_the_event_day,
                the_log_is_filtered,
                the_log_is_paged_while_events_arrive,
                another_organization_reads_no_events,
            }
            duplicates: {
                a_web_event_replaces_the_sdk_event,
                an_sdk_event_after_the_web_event_does_not_count,
                events_of_different_kinds_are_not_duplicates,
                the_first_payment_moves_to_the_next_payment,
                the_order_of_arrival_changes_nothing,
                concurrent_reports_count_once,
                concurrent_payments_leave_one_first_payment,
            }
            billing_duplicates: {
                a_billing_event_replaces_the_sdk_event,
                an_sdk_event_after_the_billing_event_does_not_count,
                the_sdk_event_counts_again_without_its_duplicate,
                a_transfer_keeps_the_duplicate,
                an_erased_transaction_is_still_known,
                two_verified_events_of_one_id_both_count,
                concurrent_reports_of_transactions_count_once,
            }
            web_events: {
                payments_and_refunds_move_revenue,
                an_external_id_has_one_payload,
                a_refund_is_accepted_once_its_payment_exists,
                concurrent_refunds_never_exceed_their_payment,
                concurrent_posts_record_one_event,
                a_full_refund_nets_to_zero,
                a_web_event_is_credited_to_its_own_click,
                a_click_with_a_web_event_is_not_removed,
            }
            billing: {
                a_notification_is_stored_once,
                concurrent_payments_have_one_first,
                events_name_their_original_transaction,
                refunds_wait_for_their_payment,
                a_later_identified_device_gets_the_subscription,
                trials_on_hold_count_once,
                rotating_a_secret_keeps_the_previous_one,
            }
            billing_orders: {
                a_purchase_moves_with_its_subscription,
                an_impossible_date_creates_no_event,
            }
            billing_cohorts: {
                late_payments_count_in_the_cohort,
                a_moved_event_leaves_its_cohort,
                a_settled_refund_updates_its_cohort,
                moving_events_of_a_busy_device_keeps_figures_right,
            }
            identity: {
                identities_accumulate_over_calls,
                a_later_device_does_not_take_over_a_user,
                a_device_that_claims_many_users_gets_none,
                a_user_of_many_devices_gets_no_further_links,
                a_flagged_install_never_outranks_another,
                flagged_installs_do_not_crowd_out_another,
                a_released_install_does_not_count_as_flagged,
                many_claims_from_one_address_are_only_flagged,
                a_signed_claim_outranks_an_unsigned_one,
                unused_claims_do_not_affect_erasure,
                matching_values_change_three_times,
                two_identity_secrets_are_valid,
            }
            erasure: {
                an_erased_device_is_not_found,
                erasing_keeps_all_figures,
                the_remaining_rows_follow_the_domain_rule,
                erasing_cancels_pending_deliveries,
                an_erasure_is_audited_without_the_device_id,
                a_never_configured_device_is_erased,
            }
            retention: {
                an_active_device_keeps_its_attribution_data,
                an_inactive_device_keeps_its_id_and_credit_only,
                a_returning_device_records_no_second_install,
            }
            erasure_later: {
                an_erased_device_returns_as_a_new_one,
                a_subscription_continues_under_the_pseudonym,
                other_devices_of_the_user_stay,
                erasing_a_busy_device_keeps_figures_right,
            }
            rates: {
                a_later_import_replaces_an_earlier_one,
                a_long_history_is_imported,
                the_latest_rates_are_found,
                an_event_keeps_the_rate_it_was_recorded_with,
            }
            integrations: {
                every_app_has_four_default_integrations,
                a_change_is_read_as_it_was_stored,
                unmentioned_settings_stay,
                an_outdated_version_is_refused,
                another_organization_finds_no_integration,
            }
            planning: {
                a_delivery_is_planned_with_its_event,
                a_duplicate_plans_nothing,
                enabling_an_integration_does_not_replay_history,
                a_late_credit_plans_recent_events,
                web_events_are_planned,
                moved_credit_moves_deliveries,
                device_ids_ignore_case_and_keep_their_spelling,
                the_user_id_is_gathered_for_app_events,
            }
            queues: {
                a_queue_has_one_lease_holder,
                concurrent_nodes_get_different_turns,
                a_paused_queue_waits_until_it_is_resumed,
                a_failed_queue_backs_off_as_a_whole,
                a_settlement_keeps_what_others_have_stored,
                queues_are_independent,
                a_changed_integration_sends_nothing_more,
                a_leased_queue_is_not_postponed,
                a_settlement_counts_a_cancelled_delivery,
            }
            shared_queues: {
                a_large_queue_is_shared_on_request,
                parts_and_the_whole_are_never_leased_together,
                an_older_split_has_no_effect,
                a_lost_part_is_taken_over,
                a_stop_by_one_holder_stops_all,
                a_round_from_before_a_resume_does_not_pause_again,
                a_queue_that_is_being_probed_has_one_holder,
                no_delivery_has_two_holders,
            }
            outbox: {
                deliveries_are_taken_and_settled,
                conversions_are_gathered,
                status_checks_are_settled,
                old_deliveries_expire,
                interrupted_deliveries_expire_too,
                test_deliveries_are_not_counted,
            }
            cost_sources: {
                a_cost_source_is_stored_and_removed,
                an_outdated_version_is_refused,
                a_cost_source_has_one_lease,
                imported_costs_replace_manual_ones,
            }
            traffic: {
                an_hour_is_stored_once,
                anomalies_are_kept_per_subject,
                others_read_no_anomalies,
                the_busiest_address_of_each_app_is_found,
            }
            alerts: {
                many_failures_raise_one_alert,
                alerts_reach_every_app_with_a_webhook,
            }
            notices: {
                a_notice_is_stored_replaced_and_deleted,
                others_see_no_notices,
                an_app_has_a_limited_number_of_notices,
                one_node_looks_at_a_due_notice,
                a_changed_notice_is_not_settled,
                an_alert_queues_one_message_per_notice,
                a_message_is_retried_and_then_finished,
            }
            deliveries: {
                deliveries_are_listed,
                deliveries_are_found_by_their_event,
                failed_deliveries_can_be_retried,
                skipped_conversions_are_counted,
                another_organization_finds_no_delivery,
            }
            holds: {
                a_held_install_counts_when_it_is_released,
                a_rejected_install_counts_nowhere,
                the_order_of_events_and_reviews_does_not_matter,
                better_evidence_starts_and_ends_a_hold,
                a_decision_stays_once_something_was_sent,
                a_late_release_is_too_old_for_the_network,
                held_installs_are_found_and_reviewed_by_rule,
                reviews_stay_within_their_tenant_and_are_logged,
            }
            what_if: {
                installs_are_read_in_parts_with_their_evidence,
                a_replay_equals_recording_under_the_rules,
                another_organization_replays_nothing,
            }
            skan: {
                never_configured_is_version_zero,
                a_document_is_read_as_it_was_stored,
                an_unlisted_currency_is_still_readable,
                versions_are_kept_and_an_equal_document_creates_none,
                an_outdated_version_is_refused,
                test_signals_are_one_setting_under_two_names,
                devices_read_the_configuration_of_their_app,
                another_organization_finds_no_configuration,
            }
            import_duplicates: {
                three_imported_sources_may_share_an_id,
                a_notification_about_an_imported_payment_counts_nothing_twice,
                an_sdk_event_finds_an_imported_billing_event,
            }
            imports: {
                an_import_gives_the_same_log_and_reports,
                the_order_of_imported_events_does_not_matter,
                an_import_beside_live_events_counts_money_once,
                a_missing_link_is_removed_from_the_credit,
                an_imported_device_is_installed,
                events_without_their_install_register_the_device,
                live_web_events_find_imported_ones,
                a_held_install_can_be_reviewed_after_an_import,
                an_unknown_or_archived_app_is_refused,
            }
            reports: {
                a_report_contains_everything_answered_before_it,
                figures_are_grouped_by_the_requested_dimensions,
                clicks_of_a_link_are_counted_by_country_and_platform,
                another_organization_reads_no_reports,
                merging_changes_no_report,
                names_beyond_the_daily_limit_count_together,
                better_evidence_moves_a_cohort,
                a_cost_replaces_the_previous_one,
                the_log_is_read_in_parts,
                a_long_search_stops_early_and_returns_its_position,
            }
            campaign_names: {
                campaigns_are_named_by_links_installs_and_clicks,
                another_organization_reads_no_names,
            }
            cohorts: {
                cohorts_are_grouped_and_filtered,
            }
            pivots: {
                pivots_follow_the_credit,
                the_pivots_of_a_new_app_are_complete,
            }
            ownership: {
                a_link_domain_belongs_to_the_first_app_that_verifies_it,
                only_the_current_link_domain_can_be_verified,
                an_app_store_id_belongs_to_the_organization_that_proves_it,
                postbacks_of_a_contested_id_wait_for_the_proof,
                a_later_claim_does_not_divert_postbacks,
                a_claim_ends_with_its_id,
            }
            report_values: {
                invented_campaigns_do_not_hide_real_ones,
                invented_names_do_not_hide_real_ones,
                displaced_values_use_up_no_rows,
            }
            postbacks: {
                a_postback_is_read_as_it_was_stored,
                a_replay_changes_nothing,
                another_value_is_a_conflict,
                windows_and_losses_are_separate_postbacks,
                unverified_postbacks_are_stored_and_not_counted,
                test_postbacks_count_while_enabled,
                an_app_gets_its_waiting_postbacks,
                remaining_postbacks_are_claimed_later,
                postbacks_are_listed,
                figures_are_grouped_by_dimensions,
                figures_are_reported_per_period,
                old_postbacks_are_removed_and_their_counts_stay,
                another_organization_finds_no_postback,
            }
            attestation: {
                an_outcome_is_read_as_it_was_stored,
                events_wait_for_a_required_proof,
            }
            postback_variants: {
                variants_of_a_postback_are_limited,
                waiting_variants_of_a_postback_are_limited,
            }
            audit_log: {
                every_change_adds_one_entry,
                a_refused_change_adds_no_entry,
                a_creation_records_the_initial_values,
                secrets_never_reach_the_log,
                a_test_caller_reads_no_live_entries,
                another_organization_reads_its_own_log_only,
                the_log_can_be_filtered_by_app,
                the_log_is_paged_newest_first,
                old_entries_are_removed,
            }
        }
    };
}

/// Generates the tests of [`contract_suite!`](crate::contract_suite).
#[macro_export]
#[doc(hidden)]
macro_rules! contract_tests {
    ($open:path; $($module:ident: { $($test:ident,)* })*) => {
        $(mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let opened = $crate::contract::OpenedStore::into_store($open().await);
                    let Some((store, _guard)) = opened else { return };
                    $crate::contract::$module::$test(&store).await;
                }
            )*
        })*
    };
}

#[cfg(test)]
mod tests {
    /// A case that is missing from the list would never run.
    #[test]
    fn every_case_is_listed() {
        let listed = include_str!("mod.rs");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/contract");
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let has_cases = |path: &std::path::PathBuf| {
            let name = path.to_string_lossy();
            !name.ends_with("fixtures.rs") && !name.ends_with("mod.rs")
        };
        let sources: Vec<String> = files
            .filter(has_cases)
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        let mut cases = 0;
        for line in sources.iter().flat_map(|source| source.lines()) {
            // Functions with other parameters are helpers, not cases.
            let name = line.strip_prefix("pub async fn ");
            let Some(name) = name.and_then(|rest| rest.strip_suffix("(store: &SharedStore) {"))
            else {
                continue;
            };
            assert!(listed.contains(&format!("{name},")), "{name} is not listed");
            cases += 1;
        }
        assert!(cases > 40, "no cases were found");
    }
}
