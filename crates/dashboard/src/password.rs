//! Password hashing with argon2id, so that each guess against a stolen table costs 19 MiB of memory
//! and CPU time.
//!
//! The server bears the same cost, so it runs at most one hash per core, and never on an async
//! thread.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tributary_domain::keyring::constant_time_eq;

/// 19 MiB, two passes, one lane: OWASP's recommended minimum.
const PARAMS: Params = match Params::new(19 * 1024, 2, 1, None) {
    Ok(params) => params,
    Err(_) => panic!("invalid argon2 parameters"),
};

/// Start of a hash with [`PARAMS`].
const PARAMS_PREFIX: &str = "$argon2id$v=19$m=19456,t=2,p=1$";

/// Length of the random salt.
pub(crate) const SALT_BYTES: usize = 16;

/// Hashes passwords with limited concurrency.
#[derive(Clone)]
pub(crate) struct Hasher {
    permits: Arc<Semaphore>,
}

/// Internal hashing error. It is logged and not shown to the user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// The server is shutting down.
    #[error("the password hasher is closed")]
    Closed(#[from] tokio::sync::AcquireError),
    /// argon2 rejected its input.
    #[error("failed to hash password: {0}")]
    Refused(#[from] argon2::password_hash::Error),
    /// The task panicked, or the server is shutting down.
    #[error("password hashing was interrupted")]
    Ended(#[from] tokio::task::JoinError),
}

impl Hasher {
    /// Allows one hash per core at a time.
    pub(crate) fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            permits: Arc::new(Semaphore::new(cores)),
        }
    }

    /// Hashes a password. Returns a PHC string, which includes the parameters.
    pub(crate) async fn hash(
        &self,
        password: String,
        salt: [u8; SALT_BYTES],
    ) -> Result<String, HashError> {
        let permit = self.permits.clone().acquire_owned().await?;
        let hashed = tokio::task::spawn_blocking(move || {
            let hashed = hash(&password, salt);
            // Hold the permit until here: the hash keeps running even if the caller is gone.
            drop(permit);
            hashed
        });
        Ok(hashed.await??)
    }

    /// Verifies a password against the hashes of an address's accounts. Returns for each whether the
    /// password matches. Takes equally long without any account, so that an attacker cannot find
    /// out which accounts exist. The accounts of an address share their salt ([`salt_of`]), so
    /// their number does not change the time either.
    pub(crate) async fn verify(
        &self,
        password: String,
        hashes: Vec<String>,
    ) -> Result<Vec<bool>, HashError> {
        let permit = self.permits.clone().acquire_owned().await?;
        let verified = tokio::task::spawn_blocking(move || {
            let verified = verify_all(&password, &hashes);
            drop(permit);
            verified
        });
        Ok(verified.await??)
    }
}

/// Returns the salt of a hash, for another account with the same address.
pub(crate) fn salt_of(hash: &str) -> Option<[u8; SALT_BYTES]> {
    let parsed = PasswordHash::new(hash).ok()?;
    parsed.salt.as_deref()?.try_into().ok()
}

fn verify_all(
    password: &str,
    hashes: &[String],
) -> Result<Vec<bool>, argon2::password_hash::Error> {
    if hashes.is_empty() {
        return hash(password, [0; SALT_BYTES]).map(|_| Vec::new());
    }
    let mut computed = HashMap::new();
    let mut verified = Vec::new();
    for stored in hashes {
        // A hash with other parameters than today's is computed with its own.
        let Some(salt) = salt_of(stored).filter(|_| stored.starts_with(PARAMS_PREFIX)) else {
            verified.push(verify(password, stored)?);
            continue;
        };
        let expected = match computed.entry(salt) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(hash(password, salt)?),
        };
        verified.push(constant_time_eq(expected.as_bytes(), stored.as_bytes()));
    }
    Ok(verified)
}

fn verify(password: &str, hash: &str) -> Result<bool, argon2::password_hash::Error> {
    let parsed = PasswordHash::new(hash)?;
    // The parameters stored in the hash are used, even if `PARAMS` has changed since.
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, PARAMS);
    Ok(argon2.verify_password(password.as_bytes(), &parsed).is_ok())
}

/// Hashes a password on the current thread, for callers outside the dashboard. It is slow.
pub fn hash(
    password: &str,
    salt: [u8; SALT_BYTES],
) -> Result<String, argon2::password_hash::Error> {
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, PARAMS);
    let hash: PasswordHash = argon2.hash_password_with_salt(password.as_bytes(), &salt)?;
    Ok(hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_hash_contains_its_parameters_and_verifies() {
        let hasher = Hasher::for_this_machine();
        let hash = hasher
            .hash("a lazy fox..".to_owned(), [7; 16])
            .await
            .unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        let parsed = PasswordHash::new(&hash).unwrap();
        let verify = |password: &[u8]| Argon2::default().verify_password(password, &parsed);
        assert!(verify(b"a lazy fox..").is_ok());
        assert!(verify(b"a lazy fox").is_err());
    }

    #[tokio::test]
    async fn verifies_only_the_same_password() {
        let hasher = Hasher::for_this_machine();
        let password = || "a lazy fox..".to_owned();
        let hash = hasher.hash(password(), [7; 16]).await.unwrap();
        let other = hasher.hash("another fox.".to_owned(), [7; 16]).await;
        let hashes = vec![hash.clone(), other.unwrap(), hash];
        let right = hasher.verify(password(), hashes.clone()).await.unwrap();
        assert_eq!(right, [true, false, true]);
        let wrong = hasher.verify("a lazy fox.!".to_owned(), hashes).await;
        assert_eq!(wrong.unwrap(), [false; 3]);
        let matches = hasher.verify(password(), Vec::new()).await.unwrap();
        assert!(matches.is_empty());
    }

    #[tokio::test]
    async fn verifies_hashes_with_other_parameters() {
        let weak = Params::new(64, 1, 1, None).unwrap();
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, weak);
        let hash: PasswordHash = argon2
            .hash_password_with_salt(b"a lazy fox..", &[7; 16])
            .unwrap();
        let hasher = Hasher::for_this_machine();
        for (password, expected) in [("a lazy fox..", true), ("a lazy fox.!", false)] {
            let verified = hasher.verify(password.to_owned(), vec![hash.to_string()]);
            assert_eq!(verified.await.unwrap(), [expected]);
        }
    }

    #[tokio::test]
    async fn a_salt_is_read_from_its_hash() {
        let hash = hash("a lazy fox..", [7; 16]).unwrap();
        assert_eq!(salt_of(&hash), Some([7; 16]));
        assert!(hash.starts_with(PARAMS_PREFIX));
        assert_eq!(salt_of("first"), None);
    }

    #[tokio::test]
    async fn different_salts_give_different_hashes() {
        let hasher = Hasher::for_this_machine();
        let one = hasher
            .hash("a lazy fox..".to_owned(), [1; 16])
            .await
            .unwrap();
        let two = hasher
            .hash("a lazy fox..".to_owned(), [2; 16])
            .await
            .unwrap();
        assert_ne!(one, two);
    }

    #[tokio::test]
    async fn limits_concurrent_hashes() {
        let hasher = Hasher {
            permits: Arc::new(Semaphore::new(1)),
        };
        let held = hasher.permits.clone().acquire_owned().await.unwrap();
        let waiting = hasher.hash("a lazy fox..".to_owned(), [1; 16]);
        let mut waiting = std::pin::pin!(waiting);
        let outcome = tokio::time::timeout(Duration::from_millis(50), waiting.as_mut()).await;
        assert!(outcome.is_err(), "hashing waits for a permit");
        drop(held);
        assert!(waiting.await.is_ok());
    }
}
