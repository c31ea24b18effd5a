//! Previews and tests of notices.

use async_trait::async_trait;
use tributary_domain::notice::{Notice, NoticePreview};
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_store::StoreResult;

/// Writes and sends the messages of notices.
#[async_trait]
pub trait NoticeSender: Send + Sync {
    /// Returns the message that a notice would send.
    async fn preview(
        &self,
        organization: OrganizationId,
        notice: &Notice,
    ) -> StoreResult<NoticePreview>;

    /// Sends that message now. The inner error says why the channel did not accept it.
    async fn send_test(
        &self,
        organization: OrganizationId,
        notice: &Notice,
    ) -> StoreResult<Result<(), String>>;
}

/// A sender that sends nothing.
#[cfg(test)]
pub(crate) struct UnusedSender;

#[cfg(test)]
#[async_trait]
impl NoticeSender for UnusedSender {
    async fn preview(&self, _: OrganizationId, _: &Notice) -> StoreResult<NoticePreview> {
        Ok(NoticePreview {
            subject: String::new(),
            body: String::new(),
            html: None,
        })
    }

    async fn send_test(&self, _: OrganizationId, _: &Notice) -> StoreResult<Result<(), String>> {
        Ok(Err("This sender sends nothing.".to_owned()))
    }
}
