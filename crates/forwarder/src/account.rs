//! Builds an integration's account from its settings and decrypted credentials.

use std::collections::BTreeMap;
use tributary_domain::integration::Integration;
use tributary_domain::keyring::Keyring;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_networks::{Account, Secret, UnusableIntegration};

/// Decrypts an integration's credentials.
pub(crate) fn open_credentials(
    keyring: &Keyring,
    organization: OrganizationId,
    integration: &Integration,
) -> Result<BTreeMap<String, Secret>, UnusableIntegration> {
    let (organization, app) = (organization.to_string(), integration.app.to_string());
    let open = |name: &String, sealed| {
        let context = [&*organization, &*app, integration.network.as_str(), name];
        let bytes = keyring.open(&context, sealed).ok();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok())
    };
    integration
        .credentials
        .iter()
        .map(|(name, credential)| match open(name, &credential.sealed) {
            Some(text) => Ok((name.clone(), Secret::new(text))),
            None => Err(UnusableIntegration {
                message: format!(
                    "credentials.{name} was encrypted with another secret_key; enter it again."
                ),
            }),
        })
        .collect()
}

/// Builds an integration's account, with its credentials decrypted.
pub(crate) fn open_account(
    keyring: &Keyring,
    organization: OrganizationId,
    integration: &Integration,
) -> Result<Account, UnusableIntegration> {
    let credentials = open_credentials(keyring, organization, integration)?;
    Account::read(integration, &credentials)
}
