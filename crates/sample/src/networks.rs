//! Connects the apps to the four networks with sample accounts.

use crate::organization::{Sample, fixed_runtime};
use crate::sample_app::SampleApp;
use tributary_domain::access::Actor;
use tributary_domain::integration::{
    Credential, IntegrationChange, Network, SettingValue, check_credential,
};
use tributary_domain::keyring::Keyring;
use tributary_domain::keyring::secret_scope::SecretScope;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{QueueRef, Store, StoreResult};

/// Events with a conversion action at Google Ads (`network_b`).
const CONVERSION_ACTIONS: [&str; 8] = [
    "install",
    "purchase",
    "sign_up",
    "start_trial",
    "qualified_trial",
    "subscribe",
    "add_to_cart",
    "view_content",
];

/// Returns the queues of all apps' integrations.
pub(crate) fn queues(sample: &Sample) -> impl Iterator<Item = QueueRef> + '_ {
    let of_app = |app: &SampleApp| {
        let app = app.app;
        Network::ALL.map(|network| QueueRef { app, network })
    };
    sample.apps.iter().flat_map(of_app)
}

impl Sample {
    /// Connects every app to these networks as of `at`. Earlier events are not forwarded.
    pub(crate) async fn connect(
        &self,
        store: &dyn Store,
        keyring: &Keyring,
        (networks, at): (&[Network], Timestamp),
        real: &Runtime,
    ) -> StoreResult<()> {
        let runtime = fixed_runtime(at, self.apps.iter().map(|app| app.seed).sum());
        for (index, app) in self.apps.iter().enumerate() {
            for network in networks.iter().copied() {
                let change = IntegrationChange {
                    enabled: Change::Set(true),
                    settings: settings(network, &format!("90210{index}"))
                        .into_iter()
                        .collect(),
                    credentials: self.credentials(app.app, network, keyring, real),
                    ..IntegrationChange::default()
                };
                self.change(store, app.app, network, change, &runtime)
                    .await?;
            }
        }
        Ok(())
    }

    /// Disables the networks, for data that outlives the simulator. The sample credentials are not
    /// real.
    pub async fn disconnect(&self, store: &dyn Store, runtime: &Runtime) -> StoreResult<()> {
        for app in &self.apps {
            for network in Network::ALL {
                let change = IntegrationChange {
                    enabled: Change::Set(false),
                    ..IntegrationChange::default()
                };
                self.change(store, app.app, network, change, runtime)
                    .await?;
            }
        }
        Ok(())
    }

    async fn change(
        &self,
        store: &dyn Store,
        app: AppId,
        network: Network,
        change: IntegrationChange,
        runtime: &Runtime,
    ) -> StoreResult<()> {
        let origin = runtime.origin(Actor::Operator, None, None);
        let none = Precondition::None;
        store
            .update_integration(&self.writer, app, network, change, none, origin)
            .await
            .map(drop)
    }

    /// Returns sample credentials. The simulator accepts every well-formed credential.
    fn credentials(
        &self,
        app: AppId,
        network: Network,
        keyring: &Keyring,
        real: &Runtime,
    ) -> std::collections::BTreeMap<&'static str, Change<Credential>> {
        let names: &[&'static str] = match network {
            Network::A | Network::C => &["accessToken"],
            Network::B => &["clientSecret", "refreshToken"],
            Network::D => &["apiKey"],
        };
        let sealed = names.iter().map(|name| {
            let secret = format!("sample-{name}-0123456789");
            let organization = self.writer.organization();
            let scope = SecretScope::new(organization, app, network.as_str(), name);
            let sealed = keyring.seal(&scope.parts(), real.random_bytes(), secret.as_bytes());
            let hint = check_credential(&secret).expect("a credential");
            (*name, Change::Set(Credential { sealed, hint }))
        });
        sealed.collect()
    }
}

/// Returns the settings for a network.
fn settings(network: Network, account: &str) -> Vec<(&'static str, Change<SettingValue>)> {
    let text = |text: &str| Change::Set(SettingValue::Text(text.to_owned()));
    match network {
        Network::A | Network::D => vec![("pixelId", text(account))],
        Network::B => {
            let actions = CONVERSION_ACTIONS.iter().zip(101_u32..);
            let actions = actions.map(|(event, number)| ((*event).to_owned(), number.to_string()));
            vec![
                ("operatingAccountId", text(account)),
                ("clientId", text(&format!("{account}.apps.example"))),
                (
                    "conversionActions",
                    Change::Set(SettingValue::Map(actions.collect())),
                ),
            ]
        }
        Network::C => vec![("pixelCode", text(account))],
    }
}
