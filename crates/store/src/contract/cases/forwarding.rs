//! Cases about deliveries to networks, alerts and notices.

/// Generates the tests about deliveries to networks, alerts and notices.
#[macro_export]
#[doc(hidden)]
macro_rules! forwarding_cases {
    ($open:path) => {
        $crate::contract_tests! { $open;
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
                a_clock_that_was_ahead_blocks_nothing,
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
            deliveries: {
                deliveries_are_listed,
                deliveries_are_found_by_their_event,
                failed_deliveries_can_be_retried,
                skipped_conversions_are_counted,
                undelivered_events_are_filtered,
                undelivered_counts_lead_to_deliveries,
                undelivered_counts_lead_to_events,
                another_organization_finds_no_delivery,
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
                an_unreadable_notice_holds_up_nothing,
            }
            traffic: {
                an_hour_is_stored_once,
                anomalies_are_kept_per_subject,
                others_read_no_anomalies,
                the_busiest_address_of_each_app_is_found,
            }
        }
    };
}
