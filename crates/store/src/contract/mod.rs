//! The contract suite: tests that every adapter must pass, written once.
//!
//! An adapter calls [`contract_suite!`](crate::contract_suite) with a function that opens a new,
//! empty store. If the engines behave differently, a test fails.

pub mod accounts;
pub mod ad_services;
pub mod alerts;
pub mod apps;
pub mod attestation;
pub mod audit_chain;
pub mod audit_log;
pub mod audit_streams;
pub mod billing;
pub mod billing_cohorts;
pub mod billing_duplicates;
pub mod billing_orders;
mod billing_orders_reports;
pub mod billing_websites;
pub mod campaign_names;
mod cases;
pub mod clicks;
pub mod cohorts;
pub mod consent;
pub mod consent_histories;
pub mod cost_sources;
pub mod deliveries;
pub mod devices;
pub mod duplicates;
pub mod erase_tokens;
pub mod erasure;
pub mod erasure_fixtures;
pub mod erasure_later;
pub mod events;
pub mod factors;
pub mod fixtures;
mod history_random;
pub mod holds;
pub mod identity;
pub mod import_duplicates;
pub mod imports;
pub mod instance;
pub mod integrations;
pub mod keys;
pub mod link_lists;
pub mod links;
pub mod member_keys;
pub mod member_notices;
pub mod members;
pub mod notices;
pub mod outbox;
pub mod outbox_fixtures;
pub mod ownership;
pub mod passkeys;
pub mod personal_data;
pub mod personal_data_fixtures;
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
pub mod secret_keys;
pub mod sessions;
pub mod shared_queues;
pub mod sign_ins;
pub mod single_sign_on;
pub mod skan;
pub mod tenants;
pub mod traffic;
pub mod views;
pub mod web_event_previews;
pub mod web_events;
pub mod what_if;
pub mod wipe;
pub mod wipe_fixtures;

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
        $crate::administration_cases!($open);
        $crate::tracking_cases!($open);
        $crate::money_cases!($open);
        $crate::forwarding_cases!($open);
        $crate::reporting_cases!($open);
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
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/contract");
        let read = |folder: &str| {
            let files = std::fs::read_dir(folder).unwrap();
            let files = files.map(|file| file.unwrap().path());
            let has_cases = |path: &std::path::PathBuf| {
                let name = path.to_string_lossy();
                path.is_file() && !name.ends_with("fixtures.rs") && !name.ends_with("mod.rs")
            };
            let sources = files.filter(has_cases);
            sources
                .map(|path| std::fs::read_to_string(path).unwrap())
                .collect::<Vec<String>>()
        };
        let listed = read(&format!("{folder}/cases")).concat();
        let sources = read(folder);
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
