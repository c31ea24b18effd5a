//! Example notices, which send nothing in the demo: one waits for a problem, and the other is off.

use crate::organization::{Sample, fixed_runtime};
use tributary_domain::access::Actor;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::integration::Network;
use tributary_domain::notice::{
    MailAddress, Notice, NoticeChannel, NoticeSettings, NoticeTopic, Threshold, ThresholdCondition,
    ThresholdWindow,
};
use tributary_domain::report::metric::Metric;
use tributary_domain::vocabulary::id::NoticeId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Revision;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::{Store, StoreResult};

/// Recipient of the examples.
const RECIPIENT: &str = "marketing@example.com";

impl Sample {
    /// Creates the examples for every app.
    pub(crate) async fn create_notices(&self, store: &dyn Store, at: Timestamp) -> StoreResult<()> {
        for app in &self.apps {
            let runtime = fixed_runtime(at, app.seed);
            for settings in examples() {
                let notice = Notice {
                    id: NoticeId::new(at, runtime.random_bytes()),
                    app: app.app,
                    progress: settings.topic.first_progress(&Timezone::UTC, at),
                    settings,
                    owner: None,
                    last_sent_at: None,
                    last_error: None,
                    created_at: at,
                    updated_at: at,
                    revision: Revision::FIRST,
                };
                let origin = runtime.origin(Actor::Operator, None, None);
                store.create_notice(&self.writer, notice, origin).await?;
            }
        }
        Ok(())
    }
}

fn examples() -> [NoticeSettings; 2] {
    let settings = |name, active, topic| NoticeSettings {
        name: Name::parse(name).expect("a valid name"),
        active,
        channel: NoticeChannel::Email(vec![
            MailAddress::parse(RECIPIENT).expect("a valid address"),
        ]),
        topic,
    };
    let low_roas = Threshold {
        metric: Metric::find("paidRoas").expect("a metric"),
        condition: ThresholdCondition::Under,
        value: Amount::parse("1").expect("an amount"),
        window: ThresholdWindow::Week,
        network: Some(CreditedNetwork::Ad(Network::A)),
    };
    [
        settings(
            "An integration pauses",
            true,
            NoticeTopic::IntegrationPaused,
        ),
        settings(
            "ROAS of Meta below 1",
            false,
            NoticeTopic::Threshold(low_roas),
        ),
    ]
}
