//! Rows of organizations, users and keys.

use super::columns::row;
use crate::{Organization, StoreError};
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::{Email, Role, SetupLink, User};
use tributary_domain::access::session::Session;
use tributary_domain::access::session_client::SessionClient;
use tributary_domain::access::{Environment, Permission};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `organizations`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct OrganizationRow {
        pub organization_id: [u8; 16],
        pub name: String,
        pub created_at: i64,
    }
}

impl OrganizationRow {
    /// Reads the organization.
    pub fn read(self) -> Result<Organization, StoreError> {
        let id = OrganizationId::from_bytes(self.organization_id);
        let name = Name::parse(&self.name)
            .map_err(|_| StoreError::corrupt("organizations", "name", id))?;
        Ok(Organization {
            id,
            name,
            created_at: Timestamp::from_millis(self.created_at),
        })
    }
}

row! {
    /// A row of `api_keys`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct KeyRow {
        pub key_id: [u8; 16],
        pub organization_id: [u8; 16],
        pub name: String,
        pub permission: String,
        pub environment: String,
        pub hint: String,
        pub created_at: i64,
        pub expires_at: Option<i64>,
        pub revoked_at: Option<i64>,
        pub last_used_at: Option<i64>,
    }
}

impl KeyRow {
    /// Converts a key to columns.
    pub fn write(key: &ApiKey) -> Self {
        Self {
            key_id: *key.id.as_bytes(),
            organization_id: *key.organization.as_bytes(),
            name: key.name.clone(),
            permission: key.permission.as_str().to_owned(),
            environment: key.environment.as_str().to_owned(),
            hint: key.hint.clone(),
            created_at: key.created_at.as_millis(),
            expires_at: key.expires_at.map(Timestamp::as_millis),
            revoked_at: key.revoked_at.map(Timestamp::as_millis),
            last_used_at: key.last_used_at.map(Timestamp::as_millis),
        }
    }

    /// Reads the key.
    pub fn read(self) -> Result<ApiKey, StoreError> {
        let id = KeyId::from_bytes(self.key_id);
        let permission = Permission::parse(&self.permission)
            .ok_or_else(|| StoreError::corrupt("api_keys", "permission", id))?;
        let environment = Environment::parse(&self.environment)
            .ok_or_else(|| StoreError::corrupt("api_keys", "environment", id))?;
        Ok(ApiKey {
            id,
            organization: OrganizationId::from_bytes(self.organization_id),
            name: self.name,
            permission,
            environment,
            hint: self.hint,
            created_at: Timestamp::from_millis(self.created_at),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            revoked_at: self.revoked_at.map(Timestamp::from_millis),
            last_used_at: self.last_used_at.map(Timestamp::from_millis),
        })
    }
}

fn role(table: &'static str, id: impl ToString, text: &str) -> Result<Role, StoreError> {
    Role::parse(text).ok_or_else(|| StoreError::corrupt(table, "role", id))
}

fn email(table: &'static str, id: impl ToString, text: &str) -> Result<Email, StoreError> {
    Email::parse(text).map_err(|_| StoreError::corrupt(table, "email", id))
}

row! {
    /// A row of `setup_links`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct SetupLinkRow {
        pub organization_id: [u8; 16],
        pub role: String,
        pub email: Option<String>,
        pub expires_at: i64,
        pub used_at: Option<i64>,
    }
}

impl SetupLinkRow {
    /// Converts a setup link to columns.
    pub fn write(link: &SetupLink) -> Self {
        Self {
            organization_id: *link.organization.as_bytes(),
            role: link.role.as_str().to_owned(),
            email: link.email.as_ref().map(|email| email.as_str().to_owned()),
            expires_at: link.expires_at.as_millis(),
            used_at: link.used_at.map(Timestamp::as_millis),
        }
    }

    /// Reads the setup link.
    pub fn read(self) -> Result<SetupLink, StoreError> {
        let organization = OrganizationId::from_bytes(self.organization_id);
        let address = self
            .email
            .map(|text| email("setup_links", organization, &text));
        Ok(SetupLink {
            organization,
            role: role("setup_links", organization, &self.role)?,
            email: address.transpose()?,
            expires_at: Timestamp::from_millis(self.expires_at),
            used_at: self.used_at.map(Timestamp::from_millis),
        })
    }
}

row! {
    /// A row of `users`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct UserRow {
        pub user_id: [u8; 16],
        pub organization_id: [u8; 16],
        pub email: String,
        pub role: String,
        pub created_at: i64,
    }
}

impl UserRow {
    /// Reads the user.
    pub fn read(self) -> Result<User, StoreError> {
        let id = UserId::from_bytes(self.user_id);
        Ok(User {
            id,
            organization: OrganizationId::from_bytes(self.organization_id),
            email: email("users", id, &self.email)?,
            role: role("users", id, &self.role)?,
            created_at: Timestamp::from_millis(self.created_at),
        })
    }
}

row! {
    /// A row of `sessions`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct SessionRow {
        pub user_id: [u8; 16],
        pub created_at: i64,
        pub last_seen_at: i64,
        pub expires_at: i64,
        pub browser: Option<String>,
        pub network: Option<String>,
    }
}

impl SessionRow {
    /// Converts a session to columns.
    pub fn write(session: &Session) -> Self {
        Self {
            user_id: *session.user.as_bytes(),
            created_at: session.created_at.as_millis(),
            last_seen_at: session.last_seen_at.as_millis(),
            expires_at: session.expires_at.as_millis(),
            browser: session.client.browser.clone(),
            network: session.client.network.clone(),
        }
    }

    /// Reads the session.
    pub fn read(self) -> Session {
        Session {
            user: UserId::from_bytes(self.user_id),
            created_at: Timestamp::from_millis(self.created_at),
            last_seen_at: Timestamp::from_millis(self.last_seen_at),
            expires_at: Timestamp::from_millis(self.expires_at),
            client: SessionClient {
                browser: self.browser,
                network: self.network,
            },
        }
    }
}

/// Reads a stored digest.
pub fn stored_digest(table: &'static str, bytes: &[u8]) -> Result<Digest, StoreError> {
    let bytes: Result<[u8; 32], _> = bytes.try_into();
    bytes
        .map(Digest::from_bytes)
        .map_err(|_| StoreError::corrupt(table, "digest", "a row"))
}
