//! Cases about the organization: people, apps, links, integrations and the audit log.

/// Generates the tests about the organization: people, apps, links, integrations and the audit log.
#[macro_export]
#[doc(hidden)]
macro_rules! administration_cases {
    ($open:path) => {
        $crate::contract_tests! { $open;
            instance: {
                the_probe_commits_and_the_report_names_engine_and_schema,
                changes_of_keys_apps_and_links_give_a_new_version,
                other_changes_keep_the_version,
                calls_that_change_nothing_keep_the_change_count,
                a_first_notification_gives_a_new_version,
                a_closed_store_is_unavailable,
            }
            secret_keys: {
                the_first_key_is_adopted,
                a_rotation_begins_once,
                a_rotation_encrypts_all_stored_values,
                a_node_that_does_not_follow_stores_nothing,
                unreadable_values_do_not_hold_up_the_others,
                nodes_note_the_keys_that_they_know,
                alert_secrets_are_rotated_with_an_overlap,
                alert_secrets_are_stored_once,
            }
            tenants: {
                concurrent_calls_create_one_first_organization,
                an_existing_organization_is_the_first_one,
                a_key_is_found_by_its_digest,
                revoking_again_keeps_the_first_time,
                the_last_use_of_a_key_never_goes_back,
                keys_belong_to_their_organization,
                a_set_up_link_creates_one_account_and_one_key,
                an_invited_member_gets_no_key,
                concurrent_calls_redeem_a_set_up_link_once,
                a_taken_email_is_refused_and_leaves_the_link_unused,
                an_email_has_one_account_per_organization,
                redeeming_a_link_invalidates_other_first_owner_links,
                a_new_first_owner_link_invalidates_earlier_ones,
                an_organization_awaits_its_owner_until_an_account_exists,
            }
            keys: {
                a_key_stores_its_limits_creator_and_owner,
                a_key_creates_no_more_powerful_one,
                only_members_with_the_scope_create_keys,
                an_organization_has_a_limited_number_of_valid_keys,
                a_rotated_key_ends_after_the_overlap,
                an_ended_key_stays_ended,
                a_member_takes_over_a_key,
                lists_show_the_keys_that_the_caller_sees,
                a_limited_caller_finds_only_its_apps,
            }
            member_keys: {
                a_removed_member_loses_all_keys,
                a_demoted_member_loses_keys_that_exceed_the_role,
                keys_that_are_taken_over_keep_working,
                no_key_survives_a_concurrent_removal,
            }
            sessions: {
                a_session_is_found_by_its_digest_until_it_ends,
                the_last_use_of_a_session_never_goes_back,
                a_session_keeps_the_last_proof,
                a_password_change_ends_all_other_sessions,
                a_replaced_password_starts_no_session,
                signing_in_removes_expired_sessions,
                a_removed_user_cannot_sign_in,
                a_user_ends_own_sessions,
                a_user_ends_all_other_sessions,
            }
            accounts: {
                a_reset_locks_all_accounts_of_a_person,
                a_reset_link_works_once,
                only_the_last_reset_link_works_until_it_expires,
                an_own_reset_link_locks_nobody_out,
                accounts_are_listed_with_their_last_sign_in,
                a_removed_person_keeps_nothing,
                a_last_owner_is_removed_only_on_demand,
            }
            factors: {
                a_factor_belongs_to_its_user,
                the_first_factor_ends_sign_ins_without_it,
                a_code_is_accepted_once,
                a_recovery_code_works_once,
                a_required_factor_stays,
                the_operator_removes_factors,
            }
            passkeys: {
                a_passkey_belongs_to_one_user,
                a_challenge_is_accepted_once,
                a_passkey_replaces_the_password,
            }
            sign_ins: {
                guesses_at_the_same_time_are_limited,
                a_refused_guess_is_not_counted,
                a_wait_is_read_without_counting,
                a_right_password_is_taken_back,
                old_guesses_are_removed,
                a_failed_sign_in_is_audited,
            }
            single_sign_on: {
                settings_are_stored_per_organization,
                a_new_person_becomes_a_member,
                a_provider_reaches_no_other_organization,
                accounts_are_linked,
                a_removed_member_stays_removed,
                an_attempt_counts_once,
                concurrent_sign_ins_create_one_account,
                a_sign_in_follows_the_settings,
                sessions_follow_the_settings,
                owners_keep_a_way_in,
                a_failed_single_sign_on_is_audited,
            }
            views: {
                a_user_sees_the_own_views,
                a_user_saves_a_limited_number_of_views,
                a_share_link_is_found_until_it_is_revoked,
                an_app_has_a_limited_number_of_open_share_links,
                another_organization_shares_nothing,
                a_removed_member_shares_nothing,
            }
            member_notices: {
                a_notice_belongs_to_the_member_who_chose_its_channel,
                notices_of_a_removed_member_are_paused_or_kept,
                no_notice_survives_a_concurrent_removal,
            }
            members: {
                a_changed_role_applies_to_the_next_request,
                a_former_owner_loses_the_invitations_that_they_sent,
                no_invitation_survives_a_concurrent_removal,
                the_last_owner_cannot_be_removed_or_demoted,
                owners_who_remove_each_other_leave_one,
                a_removed_member_has_no_invitation_left,
                a_removed_member_is_signed_out,
                an_owner_ends_the_sessions_of_a_member,
                an_invitation_is_listed_until_it_is_used_or_withdrawn,
                another_organization_cannot_manage_members,
            }
            apps: {
                an_app_is_read_as_it_was_stored,
                an_sdk_key_is_replaced_with_an_overlap,
                valid_sdk_keys_are_limited,
                sdk_keys_of_another_organization_are_not_found,
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
            ownership: {
                a_link_domain_belongs_to_the_first_app_that_verifies_it,
                only_the_current_link_domain_can_be_verified,
                an_app_store_id_belongs_to_the_organization_that_proves_it,
                postbacks_of_a_contested_id_wait_for_the_proof,
                a_later_claim_does_not_divert_postbacks,
                a_claim_ends_with_its_id,
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
            integrations: {
                every_app_has_four_default_integrations,
                a_change_is_read_as_it_was_stored,
                unmentioned_settings_stay,
                an_outdated_version_is_refused,
                another_organization_finds_no_integration,
            }
            audit_chain: {
                every_entry_is_chained,
                concurrent_entries_are_one_chain,
                removed_entries_leave_an_anchor,
                a_chain_is_read_in_pages,
            }
            audit_streams: {
                a_stream_continues_where_it_stopped,
                a_stream_is_leased_by_one_node,
            }
            audit_log: {
                every_change_adds_one_entry,
                a_refused_change_adds_no_entry,
                a_creation_records_the_initial_values,
                secrets_never_reach_the_log,
                a_test_caller_reads_no_live_entries,
                another_organization_reads_its_own_log_only,
                the_log_can_be_filtered_by_app,
                changes_are_found_by_action_and_time,
                the_log_is_paged_newest_first,
                old_entries_are_removed,
            }
        }
    };
}
