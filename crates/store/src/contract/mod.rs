//! The contract suite: what every adapter promises, written once.
//!
//! An adapter calls [`contract_suite!`](crate::contract_suite) with a function that opens a fresh, empty
//! store. A difference between engines is a failing test, not a bug report.

pub mod ad_services;
pub mod alerts;
pub mod apps;
pub mod audit_log;
pub mod billing;
pub mod billing_cohorts;
pub mod billing_duplicates;
pub mod billing_orders;
mod billing_orders_reports;
pub mod clicks;
pub mod deliveries;
pub mod devices;
pub mod duplicates;
pub mod erasure;
pub mod erasure_fixtures;
pub mod erasure_later;
pub mod events;
pub mod fixtures;
pub mod instance;
pub mod integrations;
pub mod links;
pub mod members;
pub mod outbox;
pub mod outbox_fixtures;
pub mod planning;
pub mod postback_fixtures;
pub mod postbacks;
pub mod queues;
pub mod rates;
pub mod reports;
pub mod retention;
pub mod sdk_fixtures;
pub mod sessions;
pub mod skan;
pub mod tenants;
pub mod web_events;

/// Writes one `#[tokio::test]` per promise. `$open` is an async function without arguments that gives a
/// fresh store and whatever must live as long as it.
#[macro_export]
macro_rules! contract_suite {
    ($open:path) => {
        $crate::contract_tests! { $open;
            instance: {
                the_first_secret_is_remembered_and_another_refused,
                a_probe_commits_and_the_report_is_true,
                changes_of_keys_and_apps_are_counted,
                a_closed_store_is_unavailable,
            }
            tenants: {
                only_one_caller_founds_the_first_organization,
                nobody_founds_what_an_operator_made,
                a_key_is_found_by_its_digest_until_the_end_of_time,
                a_revoked_key_stays_revoked_since_the_first_time,
                the_last_use_of_a_key_never_goes_back,
                keys_belong_to_their_organization,
                a_set_up_link_makes_one_account_and_one_key,
                a_set_up_link_is_used_once_even_by_two_at_a_time,
                an_address_belongs_to_one_account_and_a_refused_one_uses_no_link_up,
                the_first_owners_other_links_die_with_the_first_use,
                a_new_first_link_replaces_the_one_before,
                an_organization_awaits_its_owner_until_anybody_has_an_account,
            }
            sessions: {
                a_session_is_found_by_its_digest_until_it_ends,
                the_last_use_of_a_session_never_goes_back,
                another_password_ends_every_session_but_the_new_one,
                what_is_over_is_forgotten_when_somebody_signs_in,
                nobody_who_is_gone_signs_in,
            }
            members: {
                a_role_holds_for_the_next_request,
                the_last_owner_stays,
                owners_who_remove_each_other_leave_one,
                a_removed_member_is_signed_out,
                an_invitation_is_listed_until_it_is_used_or_withdrawn,
                another_organization_manages_no_member,
            }
            apps: {
                an_app_comes_back_as_it_was_stored,
                a_change_is_decided_on_what_is_stored,
                an_old_version_is_not_changed,
                an_unchanged_app_is_not_written,
                an_app_store_id_belongs_to_one_app_of_the_instance,
                a_link_domain_belongs_to_one_app_of_the_instance,
                a_name_given_up_is_free_again,
                a_refused_creation_leaves_nothing,
                another_organization_sees_and_changes_nothing,
                apps_are_paged_newest_first,
                archived_apps_are_left_out,
                secrets_are_kept_sealed_and_removed_by_null,
                another_organization_reads_no_secret,
                a_zone_that_is_no_longer_listed_comes_back,
                the_zone_of_an_apps_days_is_known_to_readers_of_figures,
                the_names_of_apps_are_known_to_readers_of_figures,
                concurrent_changes_lose_nothing,
            }
            links: {
                a_link_comes_back_as_it_was_stored,
                a_link_needs_an_app_of_the_organization,
                a_slug_belongs_to_one_link_of_the_instance,
                a_slug_stays_taken_after_the_link_is_gone,
                a_link_can_take_its_former_slug_back,
                a_change_is_judged_with_what_is_stored,
                a_deleted_link_is_not_found,
                a_deletion_obeys_its_precondition,
                another_organization_finds_no_link,
                another_app_finds_no_link,
                pages_neither_skip_nor_repeat_while_links_arrive,
            }
            clicks: {
                a_link_is_found_by_what_stands_in_a_url,
                association_files_are_made_per_host,
                a_click_comes_back_as_it_was_recorded,
                a_click_is_counted_once_and_a_bots_never,
                a_click_of_a_test_key_stays_in_the_test_environment,
                clicks_recorded_at_once_are_all_there,
                hints_of_the_page_add_what_is_not_known,
                what_is_old_is_forgotten_and_what_is_referred_to_stays,
                the_address_of_a_device_is_forgotten,
                bots_hide_nobody,
                a_click_needs_the_link_of_its_app,
            }
            devices: {
                an_sdk_key_names_its_app,
                the_first_call_records_one_install,
                calls_at_the_same_moment_make_one_install,
                a_click_is_given_to_one_install,
                a_test_device_uses_no_click_up,
                likeness_is_found_by_address,
                an_advertising_id_is_found,
                better_evidence_moves_everything,
                a_certain_decision_stands,
                events_before_the_first_call_are_credited_with_it,
                a_device_comes_back_as_it_was_described,
                a_person_is_known_by_what_each_call_adds,
                a_web_page_makes_no_install,
                a_link_that_opened_the_app_is_a_click,
                another_organization_finds_no_device,
            }
            ad_services: {
                a_token_is_leased_to_one_worker,
                apples_word_improves_an_organic_install,
            }
            events: {
                an_event_comes_back_as_it_was_recorded,
                an_event_is_recorded_once_by_its_id,
                an_event_sent_at_once_is_recorded_once,
                money_that_does_not_count_is_kept,
                a_rebuild_applies_the_rule_of_income,
                money_is_exchanged_by_the_events_day,
                the_log_is_filtered,
                the_log_is_paged_while_events_arrive,
                another_organization_reads_no_events,
            }
            duplicates: {
                a_web_event_replaces_the_sdks,
                an_sdk_event_after_the_web_event_does_not_count,
                another_kind_is_another_event,
                the_first_payment_passes_on,
                the_order_of_arrival_changes_nothing,
                reports_at_once_count_once,
                payments_at_once_leave_one_first,
            }
            billing_duplicates: {
                a_billing_event_replaces_the_sdks,
                an_sdk_event_after_the_billing_event_does_not_count,
                the_sdks_event_counts_again_without_a_twin,
                a_transfer_keeps_the_duplicate,
                an_erased_transaction_is_still_known,
                two_verified_events_of_one_id_both_count,
                reports_of_transactions_at_once_count_once,
            }
            web_events: {
                payments_and_refunds_move_revenue,
                an_id_names_one_payload,
                a_parent_may_come_later,
                refunds_are_bound_under_concurrency,
                posts_at_once_are_decided_once,
                a_full_refund_nets_to_zero,
                an_event_stays_with_its_own_click,
                a_click_that_an_event_refers_to_stays,
            }
            billing: {
                a_notification_is_kept_once,
                payments_at_once_have_one_first,
                events_name_their_original_transaction,
                refunds_wait_for_their_payment,
                a_person_who_shows_up_is_joined,
                trials_on_hold_count_once,
                a_secret_is_replaced,
            }
            billing_orders: {
                a_purchase_moves_with_its_subscription,
                an_impossible_date_makes_no_event,
            }
            billing_cohorts: {
                late_money_is_in_its_cohort,
                what_leaves_a_device_leaves_its_cohort,
                money_that_comes_to_something_else_moves_in_its_cohort,
                leaving_meets_a_busy_device,
            }
            erasure: {
                an_erased_device_is_not_found,
                every_figure_stays,
                what_remains_is_what_the_rule_says,
                what_waits_is_never_sent,
                an_erasure_is_audited_without_its_device,
                a_device_that_was_only_heard_of_is_erased,
            }
            retention: {
                an_active_device_keeps_its_attribution_data,
                an_inactive_device_keeps_its_id_and_credit_only,
                a_returning_device_makes_no_second_install,
            }
            erasure_later: {
                what_comes_later_is_somebody_new,
                a_subscription_goes_on_under_the_pseudonym,
                another_device_of_the_person_stays,
                erasing_meets_a_busy_device,
            }
            rates: {
                a_later_import_replaces_an_earlier_one,
                a_long_history_is_imported,
                the_latest_rates_are_found,
                an_event_keeps_the_rate_it_was_recorded_with,
            }
            integrations: {
                every_app_has_all_four_untouched,
                a_change_comes_back,
                settings_that_are_not_mentioned_stay,
                an_old_version_is_not_changed,
                another_organization_finds_no_integration,
            }
            planning: {
                a_delivery_is_planned_with_its_event,
                a_duplicate_plans_nothing,
                history_is_not_replayed,
                late_credit_plans_what_is_young_enough,
                website_events_are_planned,
                moved_credit_moves_deliveries,
                a_device_is_one_and_keeps_its_spelling,
                the_person_is_gathered_for_events_of_an_app,
            }
            queues: {
                a_queue_is_held_by_one,
                a_paused_queue_waits_for_somebody,
                a_queue_waits_as_a_whole,
                queues_are_apart,
                a_changed_integration_sends_nothing_more,
                a_held_queue_does_not_rest,
                a_settlement_counts_a_delivery_that_is_gone,
            }
            outbox: {
                deliveries_are_taken_and_settled,
                conversions_are_gathered,
                requests_are_asked_about,
                what_is_old_ends,
                what_was_interrupted_ends_too,
                tests_count_nowhere,
            }
            alerts: {
                many_failures_are_told,
                alerts_reach_every_app_that_listens,
            }
            deliveries: {
                deliveries_are_listed,
                deliveries_are_found_by_their_event,
                what_failed_is_tried_again,
                conversions_that_a_network_misses_are_counted,
                another_organization_finds_no_delivery,
            }
            skan: {
                never_configured_is_version_zero,
                a_document_comes_back_as_it_was_stored,
                a_currency_that_is_no_longer_listed_comes_back,
                versions_are_kept_and_the_same_again_makes_none,
                an_old_version_is_not_replaced,
                test_signals_are_the_apps_own_switch,
                devices_read_the_configuration_of_their_app,
                another_organization_finds_no_configuration,
            }
            reports: {
                a_report_has_all_that_was_answered_before_it,
                figures_are_told_apart_by_what_is_asked_for,
                another_organization_reads_no_reports,
                merging_changes_no_report,
                names_beyond_the_limit_of_a_day_count_together,
                better_evidence_moves_a_cohort,
                a_cost_takes_the_place_of_the_one_before,
                the_log_is_read_in_parts,
                a_long_search_stops_early_and_says_so,
            }
            postbacks: {
                a_postback_comes_back_as_it_was_stored,
                a_replay_changes_nothing,
                another_value_is_a_conflict,
                windows_and_losses_are_apart,
                what_does_not_verify_is_kept_apart,
                tests_count_while_the_app_wants_them_to,
                an_app_gets_what_waited_for_it,
                what_is_left_is_claimed_later,
                postbacks_are_listed,
                figures_are_told_apart,
                figures_are_of_their_time,
                old_postbacks_go_and_their_counts_stay,
                another_organization_finds_no_postback,
            }
            audit_log: {
                every_change_leaves_one_line,
                a_refused_change_leaves_none,
                a_creation_says_what_was_made,
                secrets_never_reach_the_log,
                another_organization_reads_its_own_log_only,
                the_log_can_be_narrowed_to_an_app,
                the_log_is_paged_newest_first,
                the_oldest_of_the_log_is_forgotten,
            }
        }
    };
}

/// The part of [`contract_suite!`](crate::contract_suite) that makes tests of names.
#[macro_export]
#[doc(hidden)]
macro_rules! contract_tests {
    ($open:path; $($module:ident: { $($test:ident,)* })*) => {
        $(mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let (store, _kept) = $open().await;
                    $crate::contract::$module::$test(&store).await;
                }
            )*
        })*
    };
}

#[cfg(test)]
mod tests {
    /// A promise that is written and not listed would never run.
    #[test]
    fn every_promise_is_listed() {
        let listed = include_str!("mod.rs");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/contract");
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let is_promises = |path: &std::path::PathBuf| {
            let name = path.to_string_lossy();
            !name.ends_with("fixtures.rs") && !name.ends_with("mod.rs")
        };
        let sources: Vec<String> = files
            .filter(is_promises)
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        let mut promises = 0;
        for line in sources.iter().flat_map(|source| source.lines()) {
            // Whatever takes more is of use to promises, and none itself.
            let name = line.strip_prefix("pub async fn ");
            let Some(name) = name.and_then(|rest| rest.strip_suffix("(store: &SharedStore) {"))
            else {
                continue;
            };
            assert!(listed.contains(&format!("{name},")), "{name} is not listed");
            promises += 1;
        }
        assert!(promises > 40, "the promises were not found");
    }
}
