//! Cases about clicks, devices and events.

/// Generates the tests about clicks, devices and events.
#[macro_export]
#[doc(hidden)]
macro_rules! tracking_cases {
    ($open:path) => {
        $crate::contract_tests! { $open;
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
            attestation: {
                an_outcome_is_read_as_it_was_stored,
                events_wait_for_a_required_proof,
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
            web_event_previews: {
                a_preview_is_what_is_recorded,
                a_preview_is_refused_like_its_event,
                clicks_on_test_links_pass_in_previews_only,
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
                late_evidence_counts_within_the_tried_window,
                another_organization_replays_nothing,
            }
            erasure: {
                an_erased_device_is_not_found,
                erasing_keeps_all_figures,
                the_remaining_rows_follow_the_domain_rule,
                erasing_cancels_pending_deliveries,
                an_erasure_is_audited_without_the_device_id,
                a_never_configured_device_is_erased,
            }
            personal_data: {
                an_export_contains_everything_about_a_device,
                an_export_contains_each_fact_of_its_person_once,
                a_users_export_includes_proven_devices_only,
                an_export_is_audited_and_stays_in_its_environment,
                an_export_fails_if_the_device_is_erased_meanwhile,
                an_erasure_removes_the_user_from_other_devices,
                payments_of_an_erased_device_belong_to_the_user,
            }
            erase_tokens: {
                the_first_token_of_a_device_holds,
                a_token_is_for_one_device,
                an_erased_device_keeps_its_proof,
                a_token_survives_an_operators_erasure,
                an_own_erasure_is_audited,
                an_own_erasure_spares_users_with_unsigned_claims,
            }
            consent: {
                an_event_keeps_its_consent,
                an_event_of_a_refusing_user_is_not_planned,
                an_install_keeps_its_refusal,
                a_withdrawal_cancels_pending_deliveries,
                a_refusal_in_the_first_call_cancels_deliveries,
                a_withdrawal_refuses_the_next_attempt,
                the_stricter_consent_is_sent,
                a_billing_event_takes_over_the_consent,
            }
            consent_histories: {
                no_event_of_a_refusing_user_is_sent,
            }
            erasure_later: {
                an_erased_device_returns_as_a_new_one,
                a_subscription_continues_under_the_pseudonym,
                other_devices_of_the_user_stay,
                erasing_a_busy_device_keeps_figures_right,
            }
            wipe: {
                a_wipe_removes_test_data_and_nothing_else,
                wiped_ids_are_accepted_again,
                an_interrupted_wipe_is_finished_by_the_next,
                data_that_arrives_during_a_wipe_counts_right,
                a_wipe_stays_within_its_tenant_and_is_logged,
            }
            retention: {
                an_active_device_keeps_its_attribution_data,
                an_inactive_device_keeps_its_id_and_credit_only,
                a_returning_device_records_no_second_install,
            }
        }
    };
}
