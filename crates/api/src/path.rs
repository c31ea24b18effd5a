//! Ids in a path. A malformed id gets 404, like an unknown id. Handlers parse ids only after the
//! API key and the body have been checked, so errors in the key or the body are returned first.

use crate::error::{ApiError, Code};
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use tributary_domain::app::BillingProvider;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::integration::Network;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, KeyId, LinkId, NoticeId};

/// Ids in a path.
#[derive(Debug, Default)]
pub(crate) struct PathIds {
    app: Option<AppId>,
    link: Option<LinkId>,
    notice: Option<NoticeId>,
    key: Option<KeyId>,
    network: Option<Network>,
    provider: Option<BillingProvider>,
    device: Option<DeviceKey>,
    user: Option<UserKey>,
    delivery: Option<DeliveryId>,
}

impl PathIds {
    /// `{appId}`.
    pub(crate) fn app(&self) -> Result<AppId, ApiError> {
        self.app.ok_or_else(|| Refusal::AppNotFound.into())
    }

    /// `{linkId}`.
    pub(crate) fn link(&self) -> Result<LinkId, ApiError> {
        self.link.ok_or_else(|| Refusal::LinkNotFound.into())
    }

    /// `{noticeId}`.
    pub(crate) fn notice(&self) -> Result<NoticeId, ApiError> {
        self.notice.ok_or_else(|| Refusal::NoticeNotFound.into())
    }

    /// `{keyId}`.
    pub(crate) fn key(&self) -> Result<KeyId, ApiError> {
        self.key.ok_or_else(|| Refusal::KeyNotFound.into())
    }

    /// `{network}`.
    pub(crate) fn network(&self) -> Result<Network, ApiError> {
        self.network.ok_or_else(|| Refusal::NetworkNotFound.into())
    }

    /// `{provider}` in billing paths.
    pub(crate) fn provider(&self) -> Result<BillingProvider, ApiError> {
        let message = "Billing provider not found.";
        self.provider
            .ok_or_else(|| ApiError::new(Code::NotFound, message))
    }

    /// `{deliveryId}`.
    pub(crate) fn delivery(&self) -> Result<DeliveryId, ApiError> {
        self.delivery
            .ok_or_else(|| Refusal::DeliveryNotFound.into())
    }

    /// `{deviceId}`.
    pub(crate) fn device(self) -> Result<DeviceKey, ApiError> {
        self.device.ok_or_else(|| Refusal::DeviceNotFound.into())
    }

    /// `{userId}`.
    pub(crate) fn user(self) -> Result<UserKey, ApiError> {
        self.user.ok_or_else(|| Refusal::AppUserNotFound.into())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let mut ids = Self::default();
        let Ok(params) = RawPathParams::from_request_parts(parts, state).await else {
            return Ok(ids);
        };
        for (name, text) in &params {
            match name {
                "appId" => ids.app = AppId::parse(text).ok(),
                "linkId" => ids.link = LinkId::parse(text).ok(),
                "noticeId" => ids.notice = NoticeId::parse(text).ok(),
                "keyId" => ids.key = KeyId::parse(text).ok(),
                "network" => ids.network = Network::parse(text),
                "provider" => ids.provider = BillingProvider::parse(text),
                "deviceId" => ids.device = DeviceKey::parse(text).ok(),
                "userId" => ids.user = UserKey::parse(text).ok(),
                "deliveryId" => ids.delivery = DeliveryId::parse(text).ok(),
                _ => {}
            }
        }
        Ok(ids)
    }
}
