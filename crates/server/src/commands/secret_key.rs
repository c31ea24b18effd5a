//! `tributary secret-key …`: replaces the secret key while the servers run (`docs/adr/0066`).

use super::print_line;
use crate::cli::SecretKeyCommand;
use crate::config::Config;
use crate::secret_key::{self, NEXT_KEY_FILE, create_data_folder};
use crate::workers::KEYS_FOLLOWED_WITHIN;
use crate::{system, wiring};
use anyhow::Context as _;
use std::sync::Arc;
use tributary_domain::access::Actor;
use tributary_domain::keyring::rotation::{NODE_LIFETIME, RotationStep, StoredKeys};
use tributary_domain::keyring::{Keyring, SecretKeyId};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::digest::hex;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::records::{CellKey, CellPart, SEALED_COLUMNS, SealedColumn};
use tributary_store::{REENCRYPTED_AT_ONCE, ReencryptRequest, RotationEnd, Store};

/// Passes over all rows before the command gives up. A second one finds rows that changed during the
/// first; more are needed only if something keeps writing old values.
const PASSES_MAX: u32 = 10;

/// Runs a `secret-key` command.
pub async fn run(config: &Config, command: SecretKeyCommand) -> anyhow::Result<()> {
    if command == SecretKeyCommand::Generate {
        return generate(config);
    }
    let (store, keyring) = wiring::open_existing(config).await?;
    let done = match command {
        SecretKeyCommand::Rotate => rotate(config, &*store, &keyring).await,
        SecretKeyCommand::Status | SecretKeyCommand::Generate => status(&*store, &keyring).await,
    };
    store.close().await;
    done
}

fn generate(config: &Config) -> anyhow::Result<()> {
    let key: [u8; 32] = system::runtime().random_bytes();
    if config.database().is_postgres() || config.has_secret_key() {
        print_line(hex(&key));
        return Ok(());
    }
    wiring::require_database(config)?;
    create_data_folder(&config.data_dir)?;
    let file = config.data_dir.join(NEXT_KEY_FILE);
    if !secret_key::create_next(&config.data_dir, key)? {
        anyhow::bail!(
            "{} exists already; continue with the rotation",
            file.display()
        );
    }
    print_line(format!(
        "Wrote {}. Restart the server, then run `tributary secret-key rotate`.",
        file.display()
    ));
    Ok(())
}

async fn rotate(config: &Config, store: &dyn Store, keyring: &Keyring) -> anyhow::Result<()> {
    let runtime = system::runtime();
    let (stored, nodes) = (store.stored_keys().await?, store.key_holders().await?);
    match keyring.rotation_step(&stored, &nodes, runtime.now())? {
        RotationStep::Begin => {
            keep_alert_secrets(store, keyring, &runtime).await?;
            begin(store, keyring, &runtime).await?;
            print_line("The rotation has begun. Servers use the new key from now on.");
            // A server that does not know it has stopped by then, and does not take the new values
            // for unreadable ones.
            tokio::time::sleep(KEYS_FOLLOWED_WITHIN).await;
        }
        RotationStep::Continue => print_line("Continuing the rotation."),
        RotationStep::Finished => return finish_keys(config),
    }
    reencrypt_until_finished(store, keyring, &runtime).await?;
    finish_keys(config)
}

/// Stores the secrets of alerts, which are derived from the old key otherwise. Receivers know them.
async fn keep_alert_secrets(
    store: &dyn Store,
    keyring: &Keyring,
    runtime: &Runtime,
) -> anyhow::Result<()> {
    let mut after = AppId::from_bytes([0; 16]);
    loop {
        let apps = store
            .apps_without_alert_secret(after, REENCRYPTED_AT_ONCE)
            .await?;
        let Some((_, last)) = apps.last() else {
            return Ok(());
        };
        after = *last;
        for of in apps {
            let secret = keyring.alert_secret(of, None)?;
            let sealed = keyring.seal_alert_secret(of, runtime.random_bytes(), &secret);
            store.keep_alert_secret(of.1, sealed).await?;
        }
    }
}

async fn begin(store: &dyn Store, keyring: &Keyring, runtime: &Runtime) -> anyhow::Result<()> {
    let start = keyring.begin_rotation(runtime.now(), runtime.random_bytes());
    let start = start.context("next_secret_key is not set")?;
    let origin = runtime.origin(Actor::Operator, None, None);
    if !store.begin_key_rotation(start, origin).await? {
        anyhow::bail!("another command has begun a rotation; run this one again");
    }
    Ok(())
}

/// Encrypts all stored values again, until none is left.
async fn reencrypt_until_finished(
    store: &dyn Store,
    keyring: &Keyring,
    runtime: &Runtime,
) -> anyhow::Result<()> {
    keyring.follow(&store.stored_keys().await?)?;
    for _ in 0..PASSES_MAX {
        let unreadable = reencrypt_all(store, keyring, runtime).await?;
        let count = u64::try_from(unreadable.len()).unwrap_or(u64::MAX);
        let origin = runtime.origin(Actor::Operator, None, None);
        match store.finish_key_rotation(count, origin).await? {
            RotationEnd::Finished => {
                print_line("All stored values are encrypted with the new key.");
                for line in &unreadable {
                    print_line(line);
                }
                return Ok(());
            }
            RotationEnd::NotRotating => return Ok(()),
            // A transaction that began before the rotation has written an old value.
            RotationEnd::Remaining(_) => tokio::time::sleep(KEYS_FOLLOWED_WITHIN).await,
        }
    }
    anyhow::bail!(
        "some values are still encrypted with the old key; run the command again, and look for \
         servers of an earlier version, which must be replaced first"
    )
}

/// Encrypts all rows once. Returns a line for each row that no known key decrypts.
async fn reencrypt_all(
    store: &dyn Store,
    keyring: &Keyring,
    runtime: &Runtime,
) -> anyhow::Result<Vec<String>> {
    let key = in_use(&store.stored_keys().await?)?;
    let mut unreadable = Vec::new();
    for (position, column) in SEALED_COLUMNS.iter().enumerate() {
        let mut after = Some(column.first_key());
        while let Some(from) = after {
            let (keyring, runtime) = (keyring.clone(), runtime.clone());
            let request = ReencryptRequest {
                column: position,
                after: from,
                key,
                reencrypt: Arc::new(move |scope, sealed| {
                    keyring.reencrypt(scope, runtime.random_bytes(), sealed)
                }),
            };
            let rows = store.reencrypt(request).await?;
            unreadable.extend(rows.unreadable.iter().map(|row| describe(column, row)));
            after = rows.last;
        }
    }
    Ok(unreadable)
}

fn in_use(stored: &StoredKeys) -> anyhow::Result<SecretKeyId> {
    let check = stored.check.context("the database has no secret key")?;
    Ok(check.key())
}

/// Names a row whose values were unreadable before the rotation, too.
fn describe(column: &SealedColumn, row: &CellKey) -> String {
    let part = match &row.part {
        CellPart::Text(text) => text.clone(),
        CellPart::Id(id) => hex(id),
    };
    format!(
        "warning: {}.{} of {} {part} is encrypted with an unknown key; enter it again",
        column.table,
        column.column,
        hex(&row.owner)
    )
}

/// Makes the next key the current one, or says how.
fn finish_keys(config: &Config) -> anyhow::Result<()> {
    if secret_key::replace_by_next(config)? {
        print_line(
            "The rotation is finished. The new key is in the data folder; the old one is gone.",
        );
    } else {
        print_line(
            "The rotation is finished. Set secret_key to the new key, remove next_secret_key, and \
             restart the servers. Keep the old key as long as backups that need it.",
        );
    }
    Ok(())
}

async fn status(store: &dyn Store, keyring: &Keyring) -> anyhow::Result<()> {
    let stored = store.stored_keys().await?;
    let key = in_use(&stored)?;
    print_line(format!("key in use: {}", hex(key.as_bytes())));
    for known in keyring.known().ids() {
        print_line(format!("known here: {}", hex(known.as_bytes())));
    }
    let now = system::runtime().now();
    for node in store.key_holders().await? {
        if node.seen_at.plus(NODE_LIFETIME) > now {
            let ids = node.keys.iter().map(|id| hex(id.as_bytes()));
            let ids: Vec<String> = ids.collect();
            print_line(format!("known to {}: {}", node.name, ids.join(", ")));
        }
    }
    match stored.rotation {
        None => print_line("no rotation is unfinished"),
        Some(rotation) => print_line(format!(
            "a rotation began at {}: {} values are encrypted again, {} rows are left",
            rotation.started_at.rfc3339(),
            rotation.reencrypted,
            store.count_outdated_rows(key).await?
        )),
    }
    Ok(())
}
