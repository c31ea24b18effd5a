//! Rows of postbacks.

use super::columns::row;
use super::{from_json, to_json};
use crate::{StoreError, StoredPostback};
use serde::{Deserialize, Serialize};
use tributary_domain::report::postback::{PostbackCounting, ReceivedPostback};
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::{
    ConversionType, Interaction, ParsedPostback, Postback, Protocol, Signature,
};
use tributary_domain::vocabulary::id::{AppId, PostbackId};
use tributary_domain::vocabulary::time::Timestamp;

/// A row of `postbacks` for writing.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct PostbackRow {
    pub app_id: [u8; 16],
    pub postback_id: [u8; 16],
    pub received_at: i64,
    pub protocol: &'static str,
    pub signature: &'static str,
    pub trust: &'static str,
    pub counting: &'static str,
    pub conflicting: bool,
    pub key_digest: [u8; 32],
    pub body_digest: [u8; 32],
    pub ad_network_id: String,
    pub source_identifier: Option<String>,
    pub sequence_index: i64,
    pub did_win: bool,
    pub conversion_type: &'static str,
    pub postback: String,
    pub body: String,
}

impl PostbackRow {
    /// Column list, in the order of the fields.
    pub const COLUMNS: &'static str = "app_id, postback_id, received_at, protocol, signature, \
         trust, counting, conflicting, key_digest, body_digest, ad_network_id, source_identifier, \
         sequence_index, did_win, conversion_type, postback, body";
    /// Number of columns.
    pub const COLUMNS_COUNT: usize = 17;

    /// Converts an app's postback to columns. Without `counting`, the postback is a conflict and
    /// never counts.
    pub fn write(
        app: AppId,
        arrival: &ReceivedPostback,
        counting: Option<PostbackCounting>,
    ) -> Self {
        let postback = &arrival.parsed.postback;
        Self {
            app_id: *app.as_bytes(),
            postback_id: *arrival.id.as_bytes(),
            received_at: arrival.received_at.as_millis(),
            protocol: postback.protocol.as_str(),
            signature: arrival.parsed.signature.as_str(),
            trust: arrival.trust().as_str(),
            counting: counting.unwrap_or(PostbackCounting::Never).as_str(),
            conflicting: counting.is_none(),
            key_digest: *arrival.key_digest().as_bytes(),
            body_digest: *arrival.body_digest().as_bytes(),
            ad_network_id: postback.ad_network_id.to_lowercase(),
            source_identifier: postback.source_identifier.clone(),
            sequence_index: i64::from(postback.sequence_index),
            did_win: postback.did_win,
            conversion_type: postback.conversion_type.as_str(),
            postback: postback_to_json(postback),
            body: arrival.body.clone(),
        }
    }
}

row! {
    /// A row of `postbacks` for reading.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct PostbackReadRow {
        pub postback_id: [u8; 16],
        pub received_at: i64,
        pub signature: String,
        pub counting: String,
        pub conflicting: bool,
        pub postback: String,
    }
}

impl PostbackReadRow {
    /// Reads the postback.
    pub fn read(self) -> Result<StoredPostback, StoreError> {
        let id = PostbackId::from_bytes(self.postback_id);
        let corrupt = |column| StoreError::corrupt("postbacks", column, id);
        Ok(StoredPostback {
            id,
            received_at: Timestamp::from_millis(self.received_at),
            parsed: received(id, &self.postback, &self.signature)?,
            counting: PostbackCounting::parse(&self.counting).ok_or_else(|| corrupt("counting"))?,
            conflicting: self.conflicting,
        })
    }
}

row! {
    /// A row of `unclaimed_postbacks`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct UnclaimedRow {
        pub app_store_id: String,
        pub postback_id: [u8; 16],
        pub received_at: i64,
        pub signature: String,
        pub key_digest: Vec<u8>,
        pub body_digest: Vec<u8>,
        pub postback: String,
        pub body: String,
    }
}

impl UnclaimedRow {
    /// Converts a postback without an app to columns.
    pub fn write(arrival: &ReceivedPostback) -> Self {
        Self {
            app_store_id: arrival.app_store_id(),
            postback_id: *arrival.id.as_bytes(),
            received_at: arrival.received_at.as_millis(),
            signature: arrival.parsed.signature.as_str().to_owned(),
            key_digest: arrival.key_digest().as_bytes().to_vec(),
            body_digest: arrival.body_digest().as_bytes().to_vec(),
            postback: postback_to_json(&arrival.parsed.postback),
            body: arrival.body.clone(),
        }
    }

    /// Reads the postback.
    pub fn read(self) -> Result<ReceivedPostback, StoreError> {
        let id = PostbackId::from_bytes(self.postback_id);
        Ok(ReceivedPostback {
            id,
            received_at: Timestamp::from_millis(self.received_at),
            parsed: received(id, &self.postback, &self.signature)?,
            body: self.body,
        })
    }
}

fn received(id: PostbackId, postback: &str, signature: &str) -> Result<ParsedPostback, StoreError> {
    let corrupt = || StoreError::corrupt("postbacks", "signature", id);
    Ok(ParsedPostback {
        postback: postback_from_json(id, postback)?,
        signature: Signature::parse(signature).ok_or_else(corrupt)?,
    })
}

#[derive(Serialize, Deserialize)]
struct PostbackJson {
    protocol: String,
    version: Option<String>,
    ad_network_id: String,
    transaction_id: String,
    app_store_id: i64,
    source_identifier: Option<String>,
    campaign_id: Option<i64>,
    fine_value: Option<u8>,
    coarse_value: Option<String>,
    sequence_index: u8,
    did_win: bool,
    redownload: Option<bool>,
    conversion_type: String,
    interaction: Option<String>,
    source_app_id: Option<i64>,
    source_domain: Option<String>,
    country_code: Option<String>,
    marketplace_id: Option<String>,
    key_id: Option<String>,
}

fn postback_to_json(postback: &Postback) -> String {
    let text = |text: &str| text.to_owned();
    to_json(&PostbackJson {
        protocol: text(postback.protocol.as_str()),
        version: postback.version.clone(),
        ad_network_id: postback.ad_network_id.clone(),
        transaction_id: postback.transaction_id.clone(),
        app_store_id: postback.app_store_id,
        source_identifier: postback.source_identifier.clone(),
        campaign_id: postback.campaign_id,
        fine_value: postback.fine_value,
        coarse_value: postback.coarse_value.map(|value| text(value.as_str())),
        sequence_index: postback.sequence_index,
        did_win: postback.did_win,
        redownload: postback.redownload,
        conversion_type: text(postback.conversion_type.as_str()),
        interaction: postback.interaction.map(|one| text(one.as_str())),
        source_app_id: postback.source_app_id,
        source_domain: postback.source_domain.clone(),
        country_code: postback.country_code.clone(),
        marketplace_id: postback.marketplace_id.clone(),
        key_id: postback.key_id.clone(),
    })
}

fn postback_from_json(id: PostbackId, text: &str) -> Result<Postback, StoreError> {
    let corrupt = || StoreError::corrupt("postbacks", "postback", id);
    let stored: PostbackJson = from_json("postbacks", "postback", id, text)?;
    let coarse = |text: String| CoarseValue::parse(&text).ok_or_else(corrupt);
    let interaction = |text: String| Interaction::parse(&text).ok_or_else(corrupt);
    Ok(Postback {
        protocol: Protocol::parse(&stored.protocol).ok_or_else(corrupt)?,
        version: stored.version,
        ad_network_id: stored.ad_network_id,
        transaction_id: stored.transaction_id,
        app_store_id: stored.app_store_id,
        source_identifier: stored.source_identifier,
        campaign_id: stored.campaign_id,
        fine_value: stored.fine_value,
        coarse_value: stored.coarse_value.map(coarse).transpose()?,
        sequence_index: stored.sequence_index,
        did_win: stored.did_win,
        redownload: stored.redownload,
        conversion_type: ConversionType::parse(&stored.conversion_type).ok_or_else(corrupt)?,
        interaction: stored.interaction.map(interaction).transpose()?,
        source_app_id: stored.source_app_id,
        source_domain: stored.source_domain,
        country_code: stored.country_code,
        marketplace_id: stored.marketplace_id,
        key_id: stored.key_id,
    })
}
