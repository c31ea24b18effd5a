//! JSON form of an app's SDK keys.

use crate::body::Envelope;
use crate::error::ApiError;
use crate::state::ApiState;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::{Value, json};
use tributary_domain::access::{AppsRead, Authorized, Environment};
use tributary_domain::app::SdkKey;
use tributary_domain::vocabulary::id::AppId;
use utoipa::ToSchema;

/// An SDK key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "SdkKey")]
struct SdkKeyOut {
    key: String,
    /// `current`, `replaced` or `ended`.
    state: &'static str,
    /// End of a replaced key; null for the current one.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Accurate to an hour; null if the key was not used since the upgrade to the version that stores
    /// it.
    #[schema(format = DateTime)]
    last_used_at: Option<String>,
}

/// An app's SDK keys, the current one of each environment first.
#[derive(Serialize, ToSchema)]
#[schema(title = "SdkKeys")]
pub(super) struct SdkKeysOut {
    /// Keys for live data.
    live: Vec<SdkKeyOut>,
    /// Keys for test data.
    test: Vec<SdkKeyOut>,
}

pub(super) type SdkKeysEnvelope = Envelope<SdkKeysOut>;

impl SdkKeysOut {
    /// Reads the keys of an app.
    pub(super) async fn load(
        state: &ApiState,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> Result<Self, ApiError> {
        let (keys, now) = (
            state.store.sdk_keys(caller, app).await?,
            state.runtime.now(),
        );
        let shape = |key: SdkKey| SdkKeyOut {
            state: key.state(now).as_str(),
            key: key.text,
            expires_at: key.expires_at.map(rfc3339),
            last_used_at: key.last_used_at.map(rfc3339),
        };
        let (live, test): (Vec<_>, Vec<_>) = keys
            .into_iter()
            .partition(|key| key.environment == Environment::Live);
        Ok(Self {
            live: live.into_iter().map(shape).collect(),
            test: test.into_iter().map(shape).collect(),
        })
    }
}

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> Value {
    let key = |key: &str, state: &str, end: Option<&str>| {
        json!({
            "key": key, "state": state, "expiresAt": end, "lastUsedAt": "2026-11-18T09:00:00.000Z",
        })
    };
    let end = Some("2027-02-17T09:00:00.000Z");
    json!({
        "live": [
            key("pk_live_5J2v8Qe1Wm7Xr3Tk9Zb4Ny6Pc0Hd2Fs8Gu1LaB7cDe3F", "current", None),
            key("pk_live_1Aa2Bb3Cc4Dd5Ee6Ff7Gg8Hh9Ii0Jj1Kk2Ll3Mm4Nn5", "replaced", end),
        ],
        "test": [key("pk_test_9Zz8Yy7Xx6Ww5Vv4Uu3Tt2Ss1Rr0Qq9Pp8Oo7Nn6Mm5", "current", None)],
    })
}
