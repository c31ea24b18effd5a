//! Every store method that writes takes the context of an audit entry, or has a reason for none. The
//! API, the dashboard and the command line all write through these methods.

use std::collections::BTreeSet;
use std::path::Path;

/// Why methods write without an audit entry.
const WITHOUT_ENTRY: [(&str, &[&str]); 7] = [
    (
        "data of devices, websites, billing providers and Apple, which is stored itself",
        &[
            "accept_notification",
            "accept_postback",
            "accept_sdk_events",
            "accept_web_event",
            "add_page_hints",
            "configure",
            "identify",
            "note_unauthorized",
            "record_click",
        ],
    ),
    (
        "a worker does what the settings and earlier changes say",
        &[
            "begin_sending",
            "chain_audit_entries",
            "claim_postbacks",
            "end_mistaken_waits",
            "expire_deliveries",
            "fill_payers",
            "fill_pivots",
            "lease_ad_services_tokens",
            "lease_alerts",
            "lease_audit_stream",
            "lease_cost_source",
            "lease_messages",
            "lease_notices",
            "lease_queue",
            "note_streamed",
            "queue_alert_messages",
            "raise_alert_everywhere",
            "record_checked_hour",
            "release_audit_stream",
            "release_queue",
            "renew_lease",
            "reserve_turns",
            "settle_ad_services_token",
            "settle_alert",
            "settle_cost_source",
            "settle_deliveries",
            "settle_message",
            "settle_notice",
            "settle_status_check",
            "settle_trials",
            "store_imported_costs",
        ],
    ),
    (
        "retention removes what the settings say; the audit log keeps an anchor",
        &[
            "forget_addresses",
            "forget_attributions",
            "forget_notifications",
            "remove_audit_entries",
            "remove_clicks",
            "remove_deliveries",
            "remove_postbacks",
            "remove_unclaimed_postbacks",
        ],
    ),
    (
        "the last use of a key, session or second factor, and counters of guesses; a sign-in has an \
         entry, whether it succeeds or fails",
        &[
            "add_guess",
            "count_guess",
            "note_key_use",
            "note_sdk_key_use",
            "note_session_proof",
            "note_session_use",
            "take_back_guess",
            "use_passkey",
            "use_totp",
        ],
    ),
    (
        "members' own views of reports",
        &["delete_view", "save_view"],
    ),
    (
        "belongs to no organization, or is audited by its caller before it begins",
        &[
            "commit_probe",
            "import_events",
            "import_rates",
            "rebuild_rollups",
        ],
    ),
    (
        "the secret key; the begin and end of its rotation are entries of each organization",
        &[
            "adopt_key",
            "forget_key_holder",
            "keep_alert_secret",
            "note_key_holder",
            "reencrypt",
        ],
    ),
];

/// Calls that begin a transaction that writes.
const WRITES: [&str; 3] = ["self.write(", "self.write_", "self.writer.run"];
/// Types of parameters that contain the context of an audit entry.
const CONTEXTS: [&str; 2] = ["AuditContext", "EraseRequest"];

/// Returns the store methods that write, and whether they take the context of an audit entry.
fn writing_methods(folder: &Path, found: &mut Vec<(String, bool)>) {
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            writing_methods(&path, found);
            continue;
        }
        // The functions that run all transactions.
        if path.extension().is_none_or(|kind| kind != "rs") || path.ends_with("src/lib.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for method in text.split("\n    async fn ").skip(1) {
            let body = method.split("\n    }\n").next().unwrap();
            let compact: String = body.split_whitespace().collect();
            if WRITES.iter().any(|call| compact.contains(call)) {
                let (name, _) = method.split_once(['(', '<']).unwrap();
                let (signature, _) = body.split_once('{').unwrap();
                let has_context = CONTEXTS.iter().any(|one| signature.contains(one));
                found.push((name.to_owned(), has_context));
            }
        }
    }
}

#[test]
fn every_write_is_audited_or_has_a_reason() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"));
    let exempt: BTreeSet<&str> = WITHOUT_ENTRY
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    let mut found = Vec::new();
    writing_methods(&root.join("store-sqlite/src"), &mut found);
    assert!(found.len() > 90, "found only {} methods", found.len());
    for (name, is_audited) in &found {
        let is_exempt = exempt.contains(name.as_str());
        assert!(
            is_exempt != *is_audited,
            "{name}: take an AuditContext, or give the reason why the audit log does not need it"
        );
    }
    let names: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let unknown: Vec<&&str> = exempt.difference(&names).collect();
    assert!(unknown.is_empty(), "no such method: {unknown:?}");
}
