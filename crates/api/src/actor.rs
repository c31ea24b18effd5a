//! JSON form of an actor.

use serde::Serialize;
use tributary_domain::access::Actor;
use utoipa::ToSchema;

/// Who made a change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ActorOut {
    /// `key`, `user`, `operator` (the command line), `device_user` (the user of an app) or `service`.
    kind: &'static str,
    id: Option<String>,
}

impl From<Actor> for ActorOut {
    fn from(actor: Actor) -> Self {
        let (kind, id) = match actor {
            Actor::Key(id) => ("key", Some(id.to_string())),
            Actor::User(id) => ("user", Some(id.to_string())),
            Actor::Operator => ("operator", None),
            Actor::DeviceUser => ("device_user", None),
            Actor::Service => ("service", None),
        };
        Self { kind, id }
    }
}
