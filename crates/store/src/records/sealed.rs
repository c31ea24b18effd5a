//! Columns that contain encrypted values. A rotation of the secret key encrypts all of them again.

use super::integration::{credentials_from_json, credentials_to_json};
use crate::StoreError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tributary_domain::access::{factor, single_sign_on};
use tributary_domain::app::AppSecret;
use tributary_domain::cost_source::credential_owner;
use tributary_domain::integration::Network;
use tributary_domain::keyring::alert::ALERT_SECRET_PLACE;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::keyring::secret_scope::{APP_SECRET_SCOPE, NOTICE_SECRET_SCOPE, SecretScope};
use tributary_domain::keyring::{ReencryptedValue, SecretKeyId};
use tributary_domain::vocabulary::id::{AppId, FactorId, NoticeId, OrganizationId, UserId};

/// What a column contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedForm {
    /// The bytes of one value. Empty or null if there is none.
    Bytes,
    /// JSON with named credentials.
    Credentials,
}

/// A column that contains encrypted values.
#[derive(Debug, PartialEq, Eq)]
pub struct SealedColumn {
    /// Table.
    pub table: &'static str,
    /// Column.
    pub column: &'static str,
    /// What it contains.
    pub form: SealedForm,
    /// Column with the id of what the row belongs to: the first part of the primary key.
    pub owner: &'static str,
    /// Table that says to which organization the owner belongs.
    pub owners: &'static str,
    /// Second part of the key of the row; the same as `owner` if there is none.
    pub part: &'static str,
    /// Whether the second part is an id instead of a text.
    pub part_is_id: bool,
}

/// All columns with encrypted values, apart from `kept_keys` in `instance`, which the begin of a
/// rotation replaces.
pub const SEALED_COLUMNS: [SealedColumn; 8] = [
    SealedColumn {
        table: "app_secrets",
        column: "sealed",
        form: SealedForm::Bytes,
        owner: "app_id",
        owners: "apps",
        part: "name",
        part_is_id: false,
    },
    SealedColumn {
        table: "alert_secrets",
        column: "sealed",
        form: SealedForm::Bytes,
        owner: "app_id",
        owners: "apps",
        part: "app_id",
        part_is_id: true,
    },
    SealedColumn {
        table: "alert_secrets",
        column: "previous",
        form: SealedForm::Bytes,
        owner: "app_id",
        owners: "apps",
        part: "app_id",
        part_is_id: true,
    },
    SealedColumn {
        table: "integrations",
        column: "credentials",
        form: SealedForm::Credentials,
        owner: "app_id",
        owners: "apps",
        part: "network",
        part_is_id: false,
    },
    SealedColumn {
        table: "cost_sources",
        column: "credentials",
        form: SealedForm::Credentials,
        owner: "app_id",
        owners: "apps",
        part: "network",
        part_is_id: false,
    },
    SealedColumn {
        table: "notices",
        column: "url",
        form: SealedForm::Bytes,
        owner: "app_id",
        owners: "apps",
        part: "notice_id",
        part_is_id: true,
    },
    SealedColumn {
        table: "factors",
        column: "sealed_secret",
        form: SealedForm::Bytes,
        owner: "user_id",
        owners: "users",
        part: "factor_id",
        part_is_id: true,
    },
    SealedColumn {
        table: "single_sign_on",
        column: "client_secret",
        form: SealedForm::Bytes,
        owner: "organization_id",
        owners: "organizations",
        part: "organization_id",
        part_is_id: true,
    },
];

/// The second part of the key of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellPart {
    /// A text.
    Text(String),
    /// An id.
    Id([u8; 16]),
}

/// Key of a row with encrypted values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellKey {
    /// First part: an app, a user or an organization.
    pub owner: [u8; 16],
    /// Second part.
    pub part: CellPart,
}

/// A row of a column with encrypted values.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedCell {
    /// Organization that the row belongs to.
    pub organization: [u8; 16],
    /// Key.
    pub key: CellKey,
    /// What is stored: bytes, or the bytes of JSON.
    pub value: Vec<u8>,
}

/// Encrypts a value for a scope again.
pub type Reencrypt = dyn Fn(&[&str], &SealedSecret) -> ReencryptedValue + Send + Sync;

/// A row after its values were encrypted again.
#[derive(Default)]
pub struct ReencryptedCell {
    /// What to store; `None` if nothing changed.
    pub value: Option<Vec<u8>>,
    /// Number of changed values.
    pub changed: u64,
    /// Number of values that no known key decrypts.
    pub unreadable: u64,
}

impl SealedColumn {
    /// Returns the key before the first one.
    pub fn first_key(&self) -> CellKey {
        let part = if self.part_is_id {
            CellPart::Id([0; 16])
        } else {
            CellPart::Text(String::new())
        };
        CellKey {
            owner: [0; 16],
            part,
        }
    }

    /// Encrypts the values of a row again.
    pub fn reencrypt(
        &self,
        cell: &SealedCell,
        reencrypt: &Reencrypt,
    ) -> Result<ReencryptedCell, StoreError> {
        let organization = OrganizationId::from_bytes(cell.organization);
        let mut done = ReencryptedCell::default();
        match self.form {
            SealedForm::Bytes => {
                let mut sealed = SealedSecret::from_bytes(cell.value.clone());
                let scope = self.scope(organization, &cell.key)?;
                done.add(&scope, &mut sealed, reencrypt);
                done.value = (done.changed > 0).then(|| sealed.as_bytes().to_vec());
            }
            SealedForm::Credentials => {
                let app = AppId::from_bytes(cell.key.owner);
                let corrupt = || StoreError::corrupt(self.table, self.column, app);
                let text = std::str::from_utf8(&cell.value).map_err(|_| corrupt())?;
                let mut credentials = credentials_from_json(self.table, app, text)?;
                for (field, credential) in &mut credentials {
                    let mut scope = self.scope(organization, &cell.key)?;
                    scope.push(field.clone());
                    done.add(&scope, &mut credential.sealed, reencrypt);
                }
                let changed = (done.changed > 0).then(|| credentials_to_json(&credentials));
                done.value = changed.map(String::into_bytes);
            }
        }
        Ok(done)
    }

    /// Returns the scope of a row's values, for credentials without their name.
    fn scope(
        &self,
        organization: OrganizationId,
        key: &CellKey,
    ) -> Result<Vec<String>, StoreError> {
        let app = AppId::from_bytes(key.owner);
        let corrupt = || StoreError::corrupt(self.table, self.part, app);
        let of_app = |owner: &str, field: &str| {
            let scope = SecretScope::new(organization, app, owner, field);
            scope.parts().map(str::to_owned).to_vec()
        };
        let network = |text: &str| Network::parse(text).ok_or_else(corrupt);
        let of_network = |owner: &str| {
            let mut scope = of_app(owner, "");
            scope.pop();
            scope
        };
        Ok(match (self.table, &key.part) {
            ("app_secrets", CellPart::Text(name)) => {
                let secret = AppSecret::parse(name).ok_or_else(corrupt)?;
                of_app(APP_SECRET_SCOPE, secret.sealed_field())
            }
            ("alert_secrets", _) => of_app(ALERT_SECRET_PLACE.0, ALERT_SECRET_PLACE.1),
            ("integrations", CellPart::Text(name)) => of_network(network(name)?.as_str()),
            ("cost_sources", CellPart::Text(name)) => of_network(credential_owner(network(name)?)),
            ("notices", CellPart::Id(id)) => {
                of_app(NOTICE_SECRET_SCOPE, &NoticeId::from_bytes(*id).to_string())
            }
            ("factors", CellPart::Id(id)) => {
                let (user, factor) = (UserId::from_bytes(key.owner), FactorId::from_bytes(*id));
                factor::secret_scope(organization, user, factor).to_vec()
            }
            ("single_sign_on", _) => single_sign_on::secret_scope(&organization.to_string())
                .map(str::to_owned)
                .to_vec(),
            _ => return Err(corrupt()),
        })
    }

    /// Returns what all values of the column that are encrypted with a key begin with: bytes, or a
    /// part of the JSON. For `outdated` in SQL.
    pub fn start(&self, key: SecretKeyId) -> Vec<u8> {
        let start = SealedSecret::start(key);
        match self.form {
            SealedForm::Bytes => start.to_vec(),
            // Nine bytes are exactly twelve characters, so the rest of the value does not change them.
            SealedForm::Credentials => {
                format!("\"sealed\":\"{}", BASE64.encode(start)).into_bytes()
            }
        }
    }
}

impl ReencryptedCell {
    fn add(&mut self, scope: &[String], sealed: &mut SealedSecret, reencrypt: &Reencrypt) {
        let scope: Vec<&str> = scope.iter().map(String::as_str).collect();
        match reencrypt(&scope, sealed) {
            ReencryptedValue::Current => {}
            ReencryptedValue::Changed(value) => {
                *sealed = value;
                self.changed += 1;
            }
            ReencryptedValue::Unreadable => self.unreadable += 1,
        }
    }
}

impl std::fmt::Debug for SealedCell {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SealedCell")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Writes the ids of keys.
pub fn key_ids_bytes(ids: &[SecretKeyId]) -> Vec<u8> {
    ids.iter().flat_map(|id| *id.as_bytes()).collect()
}

/// Reads the ids of keys.
pub fn key_ids(bytes: &[u8]) -> Vec<SecretKeyId> {
    let (ids, _rest) = bytes.as_chunks::<{ SecretKeyId::BYTES }>();
    ids.iter().copied().map(SecretKeyId::from_bytes).collect()
}
