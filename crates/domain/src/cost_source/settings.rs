//! Settings and credentials of cost sources for each network.

use super::CostSource;
use crate::integration::{CredentialSpec, Network, SettingDefault, SettingKind, SettingSpec};

const ACCOUNT_ID: SettingSpec = SettingSpec {
    name: "accountId",
    kind: SettingKind::AccountId,
    default: SettingDefault::None,
};

const OF_A: &[SettingSpec] = &[
    ACCOUNT_ID,
    SettingSpec {
        name: "apiVersion",
        kind: SettingKind::ApiVersion,
        default: SettingDefault::Text("v26.0"),
    },
];
const OF_B: &[SettingSpec] = &[
    ACCOUNT_ID,
    SettingSpec {
        name: "loginAccountId",
        kind: SettingKind::AccountId,
        default: SettingDefault::None,
    },
    SettingSpec {
        name: "clientId",
        kind: SettingKind::Token,
        default: SettingDefault::None,
    },
    SettingSpec {
        name: "apiVersion",
        kind: SettingKind::MajorVersion,
        default: SettingDefault::Text("v26"),
    },
];
const OF_C: &[SettingSpec] = &[ACCOUNT_ID];

/// Returns the settings of a network's cost source.
pub const fn cost_settings_of(network: Network) -> &'static [SettingSpec] {
    match network {
        Network::A => OF_A,
        Network::B => OF_B,
        Network::C => OF_C,
        Network::D => &[],
    }
}

/// Returns the credentials of a network's cost source.
pub const fn cost_credentials_of(network: Network) -> &'static [CredentialSpec] {
    match network {
        Network::A => &[
            CredentialSpec {
                name: "accessToken",
            },
            CredentialSpec { name: "appSecret" },
        ],
        Network::B => &[
            CredentialSpec {
                name: "developerToken",
            },
            CredentialSpec {
                name: "clientSecret",
            },
            CredentialSpec {
                name: "refreshToken",
            },
            CredentialSpec {
                name: "serviceAccountKey",
            },
        ],
        Network::C => &[CredentialSpec {
            name: "accessToken",
        }],
        Network::D => &[],
    }
}

/// Returns the section and name of each required setting and credential that is missing.
pub(super) fn missing(source: &CostSource) -> Vec<(&'static str, &'static str)> {
    let (settings, credentials): (&[&'static str], &[&'static str]) = match source.network {
        Network::A | Network::C => (&["accountId"], &["accessToken"]),
        Network::B if source.credentials.contains_key("serviceAccountKey") => {
            (&["accountId"], &["developerToken"])
        }
        Network::B => (
            &["accountId", "clientId"],
            &["developerToken", "clientSecret", "refreshToken"],
        ),
        Network::D => (&[], &[]),
    };
    let settings = settings
        .iter()
        .filter(|name| !source.settings.contains_key(**name))
        .map(|name| ("settings", *name));
    let credentials = credentials
        .iter()
        .filter(|name| !source.credentials.contains_key(**name))
        .map(|name| ("credentials", *name));
    settings.chain(credentials).collect()
}
