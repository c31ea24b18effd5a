//! SDK keys.

use super::columns::row;
use crate::StoreError;
use tributary_domain::access::Environment;
use tributary_domain::app::SdkKey;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `sdk_keys`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct SdkKeyRow {
        pub sdk_key: String,
        pub app_id: [u8; 16],
        pub environment: String,
        pub expires_at: Option<i64>,
        pub last_used_at: Option<i64>,
    }
}

impl SdkKeyRow {
    /// Reads the key.
    pub fn read(self) -> Result<SdkKey, StoreError> {
        let app = AppId::from_bytes(self.app_id);
        Ok(SdkKey {
            text: self.sdk_key,
            environment: Environment::parse(&self.environment)
                .ok_or_else(|| StoreError::corrupt("sdk_keys", "environment", app))?,
            expires_at: self.expires_at.map(Timestamp::from_millis),
            last_used_at: self.last_used_at.map(Timestamp::from_millis),
        })
    }
}
