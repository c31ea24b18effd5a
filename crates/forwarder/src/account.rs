//! An integration's account, with its credentials opened.

use std::collections::BTreeMap;
use tributary_domain::integration::Integration;
use tributary_domain::keyring::Keyring;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_networks::{Account, NotUsable, Secret};

/// Opens the credentials of an integration.
pub(crate) fn credentials(
    keyring: &Keyring,
    organization: OrganizationId,
    integration: &Integration,
) -> Result<BTreeMap<String, Secret>, NotUsable> {
    let (organization, app) = (organization.to_string(), integration.app.to_string());
    let open = |name: &String, sealed| {
        let place = [&*organization, &*app, integration.network.as_str(), name];
        let bytes = keyring.open(&place, sealed).ok();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok())
    };
    integration
        .credentials
        .iter()
        .map(|(name, credential)| match open(name, &credential.sealed) {
            Some(text) => Ok((name.clone(), Secret::new(text))),
            None => Err(NotUsable {
                words: format!(
                    "credentials.{name} was stored with another secret_key; set it anew."
                ),
            }),
        })
        .collect()
}

/// Reads an integration's account.
pub(crate) fn open(
    keyring: &Keyring,
    organization: OrganizationId,
    integration: &Integration,
) -> Result<Account, NotUsable> {
    let credentials = credentials(keyring, organization, integration)?;
    Account::read(integration, &credentials)
}
