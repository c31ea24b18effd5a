//! Reads the encrypted values of a database, and decrypts each with one secret key only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::keyring::{Keyring, ReencryptedValue, SecretKeyId};
use tributary_store::records::SEALED_COLUMNS;
use tributary_store::{ReencryptRequest, Store};

/// A value's table and column, and the scope that it is encrypted for.
type Place = (&'static str, &'static str, Vec<String>);

/// Decrypted values by place.
pub(crate) type OpenedValues = BTreeMap<Place, BTreeSet<Vec<u8>>>;

/// An encrypted value with its place.
struct SealedValue {
    place: Place,
    sealed: SealedSecret,
}

impl SealedValue {
    /// Decrypts the value with this key and no other.
    fn open(&self, key: [u8; 32]) -> Option<Vec<u8>> {
        let (_, _, scope) = &self.place;
        let scope: Vec<&str> = scope.iter().map(String::as_str).collect();
        Keyring::new(key).open(&scope, &self.sealed).ok()
    }

    /// Returns the same ciphertext with the name of another key, which then tries to decrypt it.
    fn named(self, key: [u8; 32]) -> Self {
        let start = SealedSecret::start(SecretKeyId::of(&key));
        let mut bytes = self.sealed.as_bytes().to_vec();
        bytes[..start.len()].copy_from_slice(&start);
        let sealed = SealedSecret::from_bytes(bytes);
        Self { sealed, ..self }
    }
}

/// Collects all encrypted values. `other` is a key with which none is encrypted, because a rotation
/// visits only the values of other keys than the one in use.
async fn sealed_values(store: &dyn Store, other: [u8; 32]) -> Vec<SealedValue> {
    let found = Arc::new(Mutex::new(Vec::new()));
    for (position, column) in SEALED_COLUMNS.iter().enumerate() {
        let mut after = Some(column.first_key());
        while let Some(from) = after {
            let found = found.clone();
            let request = ReencryptRequest {
                column: position,
                after: from,
                key: SecretKeyId::of(&other),
                reencrypt: Arc::new(move |scope, sealed| {
                    let scope = scope.iter().map(|&part| part.to_owned()).collect();
                    found.lock().unwrap().push(SealedValue {
                        place: (column.table, column.column, scope),
                        sealed: sealed.clone(),
                    });
                    ReencryptedValue::Current
                }),
            };
            after = store.reencrypt(request).await.unwrap().last;
        }
    }
    std::mem::take(&mut found.lock().unwrap())
}

/// Decrypts all values with `key` and no other. Fails if a value is readable with `other`. A secret and
/// the previous one have the same place.
pub(crate) async fn open_all(store: &dyn Store, key: [u8; 32], other: [u8; 32]) -> OpenedValues {
    let mut opened = OpenedValues::new();
    for value in sealed_values(store, other).await {
        let place = value.place.clone();
        let secret = value.open(key);
        let secret = secret.unwrap_or_else(|| panic!("{place:?} is not readable"));
        assert_eq!(value.open(other), None, "{place:?}");
        if value.sealed.key().is_some() {
            assert_eq!(value.named(other).open(other), None, "{place:?}");
        }
        opened.entry(place).or_default().insert(secret);
    }
    opened
}
