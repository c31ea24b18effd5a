//! Rows of `user_links`.

use super::columns::row;
use crate::StoreError;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::personal_data::UserLink;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `user_links`, without app and environment.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct UserLinkRow {
        pub user_id: String,
        pub device_id: String,
        pub first_linked_at: i64,
        pub linked_at: i64,
        pub is_used: bool,
        pub is_signed: bool,
        pub address_hash: Option<Vec<u8>>,
    }
}

impl UserLinkRow {
    /// Reads the link. Its ids are personal data, so an error names the app instead.
    pub fn read(self, app: AppId) -> Result<UserLink, StoreError> {
        let hash = self.address_hash.map(<[u8; 32]>::try_from).transpose();
        let hash = hash.map_err(|_| StoreError::corrupt("user_links", "address_hash", app))?;
        Ok(UserLink {
            user: UserKey::stored(self.user_id),
            device: DeviceKey::stored(self.device_id),
            first_linked_at: Timestamp::from_millis(self.first_linked_at),
            linked_at: Timestamp::from_millis(self.linked_at),
            is_used: self.is_used,
            is_signed: self.is_signed,
            address_hash: hash.map(Digest::from_bytes),
        })
    }
}
