//! Rows of organizations, users, setup links and sessions.

use super::columns::row;
use crate::{Organization, StoreError};
use tributary_domain::access::password_reset::PasswordReset;
use tributary_domain::access::person::{Email, Role, SetupLink, User};
use tributary_domain::access::session::{Session, SignInMethod};
use tributary_domain::access::session_client::SessionClient;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
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
        pub created_by: Option<[u8; 16]>,
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
            created_by: link.created_by.map(|user| *user.as_bytes()),
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
            created_by: self.created_by.map(UserId::from_bytes),
        })
    }
}

row! {
    /// A row of `password_resets`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct PasswordResetRow {
        pub email: String,
        pub expires_at: i64,
    }
}

impl PasswordResetRow {
    /// Converts a link to columns.
    pub fn write(reset: &PasswordReset) -> Self {
        Self {
            email: reset.email.as_str().to_owned(),
            expires_at: reset.expires_at.as_millis(),
        }
    }

    /// Reads the link. An error does not name it, because only its digest could.
    pub fn read(self) -> Result<PasswordReset, StoreError> {
        Ok(PasswordReset {
            email: email("password_resets", "a link", &self.email)?,
            expires_at: Timestamp::from_millis(self.expires_at),
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
        pub proved_at: Option<i64>,
        pub expires_at: i64,
        pub browser: Option<String>,
        pub network: Option<String>,
        pub method: Option<String>,
    }
}

impl SessionRow {
    /// Converts a session to columns.
    pub fn write(session: &Session) -> Self {
        Self {
            user_id: *session.user.as_bytes(),
            created_at: session.created_at.as_millis(),
            last_seen_at: session.last_seen_at.as_millis(),
            proved_at: Some(session.proved_at.as_millis()),
            expires_at: session.expires_at.as_millis(),
            browser: session.client.browser.clone(),
            network: session.client.network.clone(),
            method: Some(session.method.as_str().to_owned()),
        }
    }

    /// Reads the session.
    pub fn read(self) -> Session {
        let method = self.method.as_deref();
        Session {
            user: UserId::from_bytes(self.user_id),
            created_at: Timestamp::from_millis(self.created_at),
            last_seen_at: Timestamp::from_millis(self.last_seen_at),
            // Nodes of earlier versions write no proof; the sign-in is one.
            proved_at: Timestamp::from_millis(self.proved_at.unwrap_or(self.created_at)),
            expires_at: Timestamp::from_millis(self.expires_at),
            client: SessionClient {
                browser: self.browser,
                network: self.network,
            },
            // Earlier versions stored none, and knew passwords only.
            method: method
                .and_then(SignInMethod::parse)
                .unwrap_or(SignInMethod::Password),
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
