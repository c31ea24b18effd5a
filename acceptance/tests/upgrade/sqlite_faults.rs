//! Interrupted upgrades on SQLite: kills, power cuts, disk errors and a full disk.
//!
//! After each interruption, the next start must reach the newest schema with all rows, both on the
//! files that the process left and on the disk after a power cut.

use super::powercut::{Library, Run};
use super::{OldDatabase, catalog, new_definitions, newest, random_interruptions};
use tributary_testkit::{Engine, TestDatabase, TextRow};

/// The oldest schema, one in the middle, and the last but one.
fn schemas() -> [i64; 3] {
    [1, 20, newest(Engine::Sqlite) - 1]
}

/// Share of unsynced sectors that reach the disk in every other power cut, in percent.
const LEAK: &str = "50";
/// Writes at which the process is killed. An upgrade writes a few hundred pages.
const WRITES: [u32; 7] = [1, 2, 5, 13, 55, 144, 377];
/// Syncs that an upgrade does at least: the folder, the commit, the rewritten file and its record.
const SYNCS_MIN: i64 = 5;

/// Starts the current version on both states of an interrupted upgrade and checks the rows.
async fn assert_recovers(old: &OldDatabase, run: &Run, definitions: &[TextRow]) {
    for state in [&run.live, &run.disk] {
        state.open().await.close().await;
        old.assert_is_upgraded(state, definitions).await;
    }
}

async fn schema_of(database: &TestDatabase) -> i64 {
    catalog::newest(&database.direct_connection().await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_survives_a_kill_and_a_power_cut_at_every_sync() {
    let (library, definitions) = (Library::compile(), new_definitions(Engine::Sqlite).await);
    for from in schemas() {
        let old = OldDatabase::create(Engine::Sqlite, from).await;
        let mut found = Vec::new();
        for sync in 1.. {
            let (at, leak) = (sync.to_string(), if sync % 2 == 0 { LEAK } else { "0" });
            let settings = [("POWERCUT_AT", at.as_str()), ("POWERCUT_LEAK", leak)];
            let run = library.migrate(&old, &settings).await;
            if !run.was_killed() {
                assert_eq!(run.code(), Some(0), "{}", run.printed);
                // What the command reports as done is on the disk.
                assert_eq!(schema_of(&run.disk).await, newest(Engine::Sqlite));
                assert!(sync > SYNCS_MIN, "schema {from}: only {sync} syncs");
                break;
            }
            found.push((schema_of(&run.live).await, schema_of(&run.disk).await));
            assert_recovers(&old, &run, &definitions).await;
        }
        println!("from schema {from}: schemas after a kill and a power cut {found:?}");
        // Every migration or none: there is no state in between.
        let whole = [from, newest(Engine::Sqlite)];
        let is_whole = |(live, disk): &(i64, i64)| whole.contains(live) && whole.contains(disk);
        assert!(found.iter().all(is_whole), "{found:?}");
        // Some cuts were before the commit and some after it.
        for schema in whole {
            assert!(found.iter().any(|(_, disk)| *disk == schema), "{found:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_survives_a_kill_at_a_random_sync() {
    let (library, definitions) = (Library::compile(), new_definitions(Engine::Sqlite).await);
    for (from, sync) in random_interruptions(Engine::Sqlite, |_| 1..=SYNCS_MIN) {
        let old = OldDatabase::create(Engine::Sqlite, from).await;
        let at = sync.to_string();
        let settings = [("POWERCUT_AT", at.as_str()), ("POWERCUT_LEAK", LEAK)];
        let run = library.migrate(&old, &settings).await;
        println!("from schema {from}: killed at sync {sync}");
        assert!(run.was_killed(), "schema {from}: {}", run.printed);
        assert_recovers(&old, &run, &definitions).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_survives_a_kill_in_the_middle_of_its_writes() {
    let (library, definitions) = (Library::compile(), new_definitions(Engine::Sqlite).await);
    for from in schemas() {
        let old = OldDatabase::create(Engine::Sqlite, from).await;
        let mut kills = 0;
        for file in ["-wal", ".db"] {
            for write in WRITES {
                let fault = format!("write:{file}:{write}:kill");
                let settings = [("POWERCUT_FAIL", fault.as_str()), ("POWERCUT_LEAK", LEAK)];
                let run = library.migrate(&old, &settings).await;
                assert_eq!(run.was_killed(), run.has_fault(), "{}", run.printed);
                if !run.was_killed() {
                    break;
                }
                kills += 1;
                assert_recovers(&old, &run, &definitions).await;
            }
        }
        println!("from schema {from}: {kills} kills during a write");
        assert!(kills > WRITES.len(), "{kills}");
    }
}

/// Shows that the test of power cuts tells synced from unsynced writes: without syncs of the log, the
/// committed upgrade is not on the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_not_synced_is_lost_in_a_power_cut() {
    let (library, newest) = (Library::compile(), newest(Engine::Sqlite));
    let old = OldDatabase::create(Engine::Sqlite, newest - 1).await;
    for sync in 1.. {
        let at = sync.to_string();
        let run = library.migrate(&old, &[("POWERCUT_AT", &at)]).await;
        assert!(run.was_killed(), "no cut was after the commit");
        if schema_of(&run.disk).await == newest {
            let unsynced = [("POWERCUT_AT", at.as_str()), ("POWERCUT_IGNORE", "-wal")];
            let run = library.migrate(&old, &unsynced).await;
            assert_eq!(schema_of(&run.live).await, newest);
            assert_eq!(schema_of(&run.disk).await, old.from);
            return;
        }
    }
}

/// Disk errors during an upgrade. Some hit the migrations, some the rewriting of the file after
/// them, whose failure does not stop a start.
const FAULTS: [&str; 12] = [
    "sync:-wal:1:EIO",
    "sync:-wal:2:EIO",
    "sync:-wal:1:ENOSPC",
    "sync:-wal:2:ENOSPC",
    "sync:.db:1:EIO",
    "sync:/:1:EIO",
    "write:-wal:1:EIO",
    "write:-wal:3:ENOSPC",
    "write:-wal:20:short",
    "write:-wal:20:full",
    "write:.db:1:EIO",
    "write:.db:1:full,write:-wal:200:full",
];

/// What the error says, by the injected one.
const MESSAGES: [&str; 3] = [
    "disk I/O error",
    "database or disk is full",
    "cannot sync the database folder",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_on_a_failing_or_full_disk_ends_with_a_message_and_can_be_repeated() {
    let (library, definitions) = (Library::compile(), new_definitions(Engine::Sqlite).await);
    for from in schemas() {
        let old = OldDatabase::create(Engine::Sqlite, from).await;
        let mut messages = Vec::new();
        for fault in FAULTS {
            let run = library.migrate(&old, &[("POWERCUT_FAIL", fault)]).await;
            let printed = &run.printed;
            if run.code() == Some(0) {
                let is_tolerated = !run.has_fault() || printed.contains("failed to rewrite");
                assert!(is_tolerated, "{fault}: {printed}");
            } else {
                assert!(run.has_fault(), "{fault}: {printed}");
                // A supervisor starts the server again.
                assert_eq!(run.code(), Some(1), "{fault}: {printed}");
                let said = MESSAGES.iter().find(|message| printed.contains(*message));
                messages.push(*said.unwrap_or_else(|| panic!("{fault}: {printed}")));
                assert!(printed.contains("cannot open the database"), "{printed}");
            }
            assert_recovers(&old, &run, &definitions).await;
        }
        println!("from schema {from}: {messages:?}");
        for message in MESSAGES {
            assert!(messages.contains(&message), "schema {from}: {messages:?}");
        }
    }
}
