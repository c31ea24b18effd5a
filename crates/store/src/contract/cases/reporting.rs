//! Cases about reports, conversion values and postbacks.

/// Generates the tests about reports, conversion values and postbacks.
#[macro_export]
#[doc(hidden)]
macro_rules! reporting_cases {
    ($open:path) => {
        $crate::contract_tests! { $open;
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
                a_device_is_a_payer_from_its_first_payment_on,
            }
            pivots: {
                pivots_follow_the_credit,
                the_pivots_of_a_new_app_are_complete,
            }
            report_values: {
                invented_campaigns_do_not_hide_real_ones,
                invented_names_do_not_hide_real_ones,
                displaced_values_use_up_no_rows,
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
            postback_variants: {
                variants_of_a_postback_are_limited,
                waiting_variants_of_a_postback_are_limited,
            }
        }
    };
}
