//! Holds on installs, as two columns of a device: the state, which is searched, and the rest as
//! JSON.

use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use tributary_domain::access::Actor;
use tributary_domain::attribution::{HoldReview, HoldState, InstallHold};
use tributary_domain::vocabulary::id::{AttributionId, KeyId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

#[derive(Serialize, Deserialize)]
struct HoldJson {
    held_at: i64,
    decided_at: Option<i64>,
    /// Id of a key or user, `operator` or `service`.
    decided_by: Option<String>,
}

const OPERATOR: &str = "operator";
const DEVICE_USER: &str = "device_user";
const SERVICE: &str = "service";

/// Converts a hold to JSON, without its state.
pub(super) fn hold_to_json(hold: &InstallHold) -> String {
    let review = hold.review.as_ref();
    to_json(&HoldJson {
        held_at: hold.held_at.as_millis(),
        decided_at: review.map(|review| review.decided_at.as_millis()),
        decided_by: review.map(|review| match &review.decided_by {
            Actor::Key(id) => id.to_string(),
            Actor::User(id) => id.to_string(),
            Actor::Operator => OPERATOR.to_owned(),
            Actor::DeviceUser => DEVICE_USER.to_owned(),
            Actor::Service => SERVICE.to_owned(),
        }),
    })
}

/// Reads the hold of a device.
pub(super) fn read_hold(
    id: AttributionId,
    state: Option<&str>,
    details: Option<&str>,
) -> Result<Option<InstallHold>, StoreError> {
    let (Some(state), Some(details)) = (state, details) else {
        return Ok(None);
    };
    let corrupt = |column| StoreError::corrupt("devices", column, id);
    let details: HoldJson = from_json("devices", "hold_details", id, details)?;
    let review = match (details.decided_at, details.decided_by) {
        (Some(decided_at), Some(decided_by)) => Some(HoldReview {
            decided_by: read_actor(&decided_by).ok_or_else(|| corrupt("hold_details"))?,
            decided_at: Timestamp::from_millis(decided_at),
        }),
        _ => None,
    };
    Ok(Some(InstallHold {
        state: HoldState::parse(state).ok_or_else(|| corrupt("hold"))?,
        held_at: Timestamp::from_millis(details.held_at),
        review,
    }))
}

fn read_actor(text: &str) -> Option<Actor> {
    match text {
        OPERATOR => Some(Actor::Operator),
        DEVICE_USER => Some(Actor::DeviceUser),
        SERVICE => Some(Actor::Service),
        id => {
            let key = KeyId::parse(id).ok().map(Actor::Key);
            key.or_else(|| UserId::parse(id).ok().map(Actor::User))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_round_trip_through_their_columns() {
        let id = AttributionId::from_bytes([1; 16]);
        let actors = [
            Actor::Key(KeyId::from_bytes([2; 16])),
            Actor::User(UserId::from_bytes([3; 16])),
            Actor::Operator,
            Actor::DeviceUser,
            Actor::Service,
        ];
        let review = |actor: Actor| HoldReview {
            decided_by: actor,
            decided_at: Timestamp::from_millis(7),
        };
        let reviews = actors.map(|actor| Some(review(actor)));
        for review in reviews.into_iter().chain([None]) {
            let hold = InstallHold {
                state: HoldState::Rejected,
                held_at: Timestamp::from_millis(5),
                review,
            };
            let details = hold_to_json(&hold);
            let read = read_hold(id, Some("rejected"), Some(&details));
            assert_eq!(read.unwrap(), Some(hold));
        }
        assert_eq!(read_hold(id, None, None).unwrap(), None);
        assert!(read_hold(id, Some("lost"), Some("{\"held_at\":1}")).is_err());
    }
}
