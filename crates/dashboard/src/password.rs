//! Hashing passwords: argon2id, so that a stolen table costs its thief 19 MiB and some time per guess.
//!
//! It costs us the same, so only as many run at once as there are cores, and none on a thread that other
//! requests wait for.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// 19 MiB, two passes, one lane: the least that OWASP recommends.
const PARAMS: Params = match Params::new(19 * 1024, 2, 1, None) {
    Ok(params) => params,
    Err(_) => panic!("the parameters of argon2 are wrong"),
};

/// Random bytes that two hashes of one password differ by.
pub(crate) const SALT_BYTES: usize = 16;

/// Hashes passwords, not too many at once.
#[derive(Clone)]
pub(crate) struct Hasher {
    permits: Arc<Semaphore>,
}

/// Nothing to tell a person, everything to tell the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// The server stops.
    #[error("no password is hashed any more")]
    Closed(#[from] tokio::sync::AcquireError),
    /// The function refused its input.
    #[error("a password cannot be hashed: {0}")]
    Refused(#[from] argon2::password_hash::Error),
    /// It panicked, or the server stops.
    #[error("the hashing of a password did not end")]
    Ended(#[from] tokio::task::JoinError),
}

impl Hasher {
    /// As many at once as there are cores.
    pub(crate) fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            permits: Arc::new(Semaphore::new(cores)),
        }
    }

    /// The hash, as text that names its own parameters (a PHC string).
    pub(crate) async fn hash(
        &self,
        password: String,
        salt: [u8; SALT_BYTES],
    ) -> Result<String, HashError> {
        let permit = self.permits.clone().acquire_owned().await?;
        let hashed = tokio::task::spawn_blocking(move || {
            let hashed = hash(&password, salt);
            // Not before: when the caller is gone, the work still goes on, and still counts.
            drop(permit);
            hashed
        });
        Ok(hashed.await??)
    }

    /// Whether a password is the one that was hashed. Without a hash, as long is spent on saying no: who guesses does
    /// not learn which accounts there are.
    pub(crate) async fn verify(
        &self,
        password: String,
        hash: Option<String>,
    ) -> Result<bool, HashError> {
        let permit = self.permits.clone().acquire_owned().await?;
        let verified = tokio::task::spawn_blocking(move || {
            let verified = match &hash {
                Some(hash) => verify(&password, hash),
                None => hash_and_reject(&password),
            };
            drop(permit);
            verified
        });
        Ok(verified.await??)
    }
}

fn verify(password: &str, hash: &str) -> Result<bool, argon2::password_hash::Error> {
    let parsed = PasswordHash::new(hash)?;
    // Its own parameters are the hash's, whatever ours have become since.
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, PARAMS);
    Ok(argon2.verify_password(password.as_bytes(), &parsed).is_ok())
}

fn hash_and_reject(password: &str) -> Result<bool, argon2::password_hash::Error> {
    hash(password, [0; SALT_BYTES]).map(|_| false)
}

/// The hash of one password, for whoever makes an account without a page. It takes a while.
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
    async fn a_hash_names_its_parameters_and_verifies() {
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
    async fn only_the_password_itself_is_right() {
        let hasher = Hasher::for_this_machine();
        let password = || "a lazy fox..".to_owned();
        let hash = hasher.hash(password(), [7; 16]).await.unwrap();
        let right = hasher.verify(password(), Some(hash.clone())).await;
        assert!(right.unwrap());
        let wrong = hasher.verify("a lazy fox.!".to_owned(), Some(hash)).await;
        assert!(!wrong.unwrap());
        assert!(!hasher.verify(password(), None).await.unwrap());
    }

    #[tokio::test]
    async fn the_salt_makes_the_difference() {
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
    async fn no_more_than_permitted_run_at_once() {
        let hasher = Hasher {
            permits: Arc::new(Semaphore::new(1)),
        };
        let held = hasher.permits.clone().acquire_owned().await.unwrap();
        let waiting = hasher.hash("a lazy fox..".to_owned(), [1; 16]);
        let mut waiting = std::pin::pin!(waiting);
        let outcome = tokio::time::timeout(Duration::from_millis(50), waiting.as_mut()).await;
        assert!(outcome.is_err(), "it waits for its turn");
        drop(held);
        assert!(waiting.await.is_ok());
    }
}
