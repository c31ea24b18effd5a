//! Cases about billing, exchange rates, costs and imports.

/// Generates the tests about billing, exchange rates, costs and imports.
#[macro_export]
#[doc(hidden)]
macro_rules! money_cases {
    ($open:path) => {
        $crate::contract_tests! { $open;
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
            billing_duplicates: {
                a_billing_event_replaces_the_sdk_event,
                an_sdk_event_after_the_billing_event_does_not_count,
                the_sdk_event_counts_again_without_its_duplicate,
                a_transfer_keeps_the_duplicate,
                an_erased_transaction_is_still_known,
                two_verified_events_of_one_id_both_count,
                concurrent_reports_of_transactions_count_once,
            }
            billing_websites: {
                a_website_and_stripe_report_one_payment,
                a_website_takes_over_the_deduplication_id,
                a_website_and_stripe_report_one_renewal,
                refunds_of_a_website_and_stripe_count_once,
                only_payments_that_stripe_took_are_shared,
                concurrent_reports_of_a_website_and_stripe_count_once,
            }
            rates: {
                a_later_import_replaces_an_earlier_one,
                a_long_history_is_imported,
                the_latest_rates_are_found,
                an_event_keeps_the_rate_it_was_recorded_with,
            }
            cost_sources: {
                a_cost_source_is_stored_and_removed,
                an_outdated_version_is_refused,
                a_cost_source_has_one_lease,
                imported_costs_replace_manual_ones,
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
            import_duplicates: {
                three_imported_sources_may_share_an_id,
                a_notification_about_an_imported_payment_counts_nothing_twice,
                an_sdk_event_finds_an_imported_billing_event,
            }
        }
    };
}
