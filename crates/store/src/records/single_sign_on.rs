//! Rows of single sign-on.

use super::columns::row;
use crate::StoreError;
use tributary_domain::access::person::Role;
use tributary_domain::access::single_sign_on::{Issuer, SingleSignOn};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::revision::Revision;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HostName;

row! {
    /// A row of `single_sign_on`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct SingleSignOnRow {
        pub organization_id: [u8; 16],
        pub issuer: String,
        pub client_id: String,
        pub client_secret: Vec<u8>,
        pub email_domains: String,
        pub default_role: String,
        pub allows_passwords: bool,
        pub created_at: i64,
        pub updated_at: i64,
        pub revision: i64,
    }
}

impl SingleSignOnRow {
    /// Converts settings to columns.
    pub fn write(settings: &SingleSignOn) -> Self {
        let domains = settings.email_domains.iter().map(HostName::as_str);
        Self {
            organization_id: *settings.organization.as_bytes(),
            issuer: settings.issuer.as_str().to_owned(),
            client_id: settings.client_id.clone(),
            client_secret: settings.client_secret.as_bytes().to_vec(),
            email_domains: domains.collect::<Vec<_>>().join(" "),
            default_role: settings.default_role.as_str().to_owned(),
            allows_passwords: settings.allows_passwords,
            created_at: settings.created_at.as_millis(),
            updated_at: settings.updated_at.as_millis(),
            revision: settings.revision.number(),
        }
    }

    /// Reads the settings.
    pub fn read(self) -> Result<SingleSignOn, StoreError> {
        let organization = OrganizationId::from_bytes(self.organization_id);
        let corrupt = |column| StoreError::corrupt("single_sign_on", column, organization);
        let domains = self.email_domains.split_whitespace().map(HostName::parse);
        let domains: Result<Vec<HostName>, _> = domains.collect();
        Ok(SingleSignOn {
            organization,
            issuer: Issuer::from_stored(self.issuer),
            client_id: self.client_id,
            client_secret: SealedSecret::from_bytes(self.client_secret),
            email_domains: domains.map_err(|_| corrupt("email_domains"))?,
            default_role: Role::parse(&self.default_role).ok_or_else(|| corrupt("default_role"))?,
            allows_passwords: self.allows_passwords,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            revision: Revision::from_number(self.revision),
        })
    }
}
