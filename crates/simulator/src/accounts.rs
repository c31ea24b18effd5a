//! The advertisers' accounts: their credentials and what is particular about them.

use serde::Deserialize;

/// An account on one of the networks. A credential that is left out is not compared: any will do.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "network", rename_all = "snake_case")]
pub enum SimulatedAccount {
    /// A pixel or dataset.
    NetworkA(MetaPixelAccount),
    /// A Google Ads account and who may use it.
    NetworkB(AdsAccount),
    /// A pixel.
    NetworkC(TikTokPixelAccount),
    /// A pixel.
    NetworkD(OpenAiPixelAccount),
}

/// An account on `network_a`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetaPixelAccount {
    /// The pixel or dataset id.
    pub pixel_id: String,
    /// The token that is accepted.
    pub access_token: Option<String>,
    /// With one, `appsecret_proof` is required.
    pub app_secret: Option<String>,
    /// Whether the dataset is linked to an app, as app mode requires; it is unless said otherwise.
    pub app_linked: Option<bool>,
    /// More requests than this are throttled.
    pub requests_per_second: Option<u32>,
}

/// An account on `network_b`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdsAccount {
    /// The account that the conversions belong to; digits.
    pub operating_account_id: String,
    /// The manager account; with one, another `loginAccount` is a mismatch.
    pub login_account_id: Option<String>,
    /// The OAuth client.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// The refresh token that is accepted.
    pub refresh_token: Option<String>,
    /// A service account that may use it.
    pub service_account: Option<SimulatedServiceAccount>,
    /// The conversion actions; without any, every id is one.
    #[serde(default)]
    pub conversion_actions: Vec<ConversionAction>,
    /// Whether the terms for enhanced conversions were accepted; they were unless said otherwise.
    pub enhanced_conversions_terms_signed: Option<bool>,
    /// More requests than this are throttled.
    pub requests_per_second: Option<u32>,
}

/// A service account of Google Cloud.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SimulatedServiceAccount {
    /// `client_email` of the key file.
    pub client_email: String,
    /// `private_key_id` of the key file.
    pub private_key_id: Option<String>,
    /// The public key in PEM. With one, signatures are verified.
    pub public_key: Option<String>,
    /// `token_uri` of the key file, when it is not Google's.
    pub token_uri: Option<String>,
}

/// A conversion action of type `UPLOAD_CLICKS`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversionAction {
    /// Digits.
    pub id: String,
    /// Whether it takes events with source `APP`.
    #[serde(default = "yes")]
    pub accepts_app: bool,
    /// Whether it takes events with source `WEB`.
    #[serde(default = "yes")]
    pub accepts_web: bool,
    /// Made a few hours ago, and not usable yet.
    #[serde(default)]
    pub created_recently: bool,
    /// Counted once per click, which does not go with `gbraid` and `wbraid`.
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
    /// The token that is accepted.
    pub access_token: Option<String>,
    /// More requests than this are throttled.
    pub requests_per_second: Option<u32>,
}

/// An account on `network_d`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenAiPixelAccount {
    /// The pixel id.
    pub pixel_id: String,
    /// The Conversions API key that is accepted.
    pub api_key: Option<String>,
    /// More requests than this are throttled.
    pub requests_per_second: Option<u32>,
}
