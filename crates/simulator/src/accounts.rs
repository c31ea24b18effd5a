//! Advertiser accounts: credentials and options.

use serde::Deserialize;

/// An account on one of the networks. If a credential is not set, every value is accepted for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "network", rename_all = "snake_case")]
pub enum SimulatedAccount {
    /// A Meta pixel or dataset.
    NetworkA(MetaPixelAccount),
    /// A Google Ads account, with the credentials that may use it.
    NetworkB(AdsAccount),
    /// A TikTok pixel.
    NetworkC(TikTokPixelAccount),
    /// An OpenAI Ads pixel.
    NetworkD(OpenAiPixelAccount),
}

/// An account on `network_a`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetaPixelAccount {
    /// The pixel or dataset id.
    pub pixel_id: String,
    /// Accepted access token.
    pub access_token: Option<String>,
    /// If set, `appsecret_proof` is required.
    pub app_secret: Option<String>,
    /// Whether the dataset is linked to an app, which app mode requires. Default: true.
    pub app_linked: Option<bool>,
    /// Requests above this rate are throttled.
    pub requests_per_second: Option<u32>,
}

/// An account on `network_b`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdsAccount {
    /// Account that owns the conversions, digits only.
    pub operating_account_id: String,
    /// Manager account. If set, any other `loginAccount` is rejected.
    pub login_account_id: Option<String>,
    /// OAuth client id.
    pub client_id: Option<String>,
    /// OAuth client secret.
    pub client_secret: Option<String>,
    /// Accepted refresh token.
    pub refresh_token: Option<String>,
    /// Service account with access.
    pub service_account: Option<SimulatedServiceAccount>,
    /// Conversion actions. If empty, every id is valid.
    #[serde(default)]
    pub conversion_actions: Vec<ConversionAction>,
    /// Whether the terms for enhanced conversions are signed. Default: true.
    pub enhanced_conversions_terms_signed: Option<bool>,
    /// Requests above this rate are throttled.
    pub requests_per_second: Option<u32>,
}

/// A Google Cloud service account.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SimulatedServiceAccount {
    /// `client_email` from the key file.
    pub client_email: String,
    /// `private_key_id` from the key file.
    pub private_key_id: Option<String>,
    /// Public key in PEM. If set, signatures are verified.
    pub public_key: Option<String>,
    /// `token_uri` from the key file, if it is not Google's.
    pub token_uri: Option<String>,
}

/// A conversion action of type `UPLOAD_CLICKS`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversionAction {
    /// Id, digits only.
    pub id: String,
    /// Whether the action accepts events with source `APP`.
    #[serde(default = "yes")]
    pub accepts_app: bool,
    /// Whether the action accepts events with source `WEB`.
    #[serde(default = "yes")]
    pub accepts_web: bool,
    /// Whether the action was created so recently that it cannot be used yet.
    #[serde(default)]
    pub created_recently: bool,
    /// Whether the action counts one conversion per click. Such an action discards events with
    /// `gbraid` or `wbraid`.
    #[serde(default)]
    pub one_per_click: bool,
}

fn yes() -> bool {
    true
}

/// An account on `network_c`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TikTokPixelAccount {
    /// The pixel code.
    pub pixel_code: String,
    /// Accepted access token.
    pub access_token: Option<String>,
    /// Requests above this rate are throttled.
    pub requests_per_second: Option<u32>,
}

/// An account on `network_d`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenAiPixelAccount {
    /// The pixel id.
    pub pixel_id: String,
    /// Accepted Conversions API key.
    pub api_key: Option<String>,
    /// Requests above this rate are throttled.
    pub requests_per_second: Option<u32>,
}
