//! Earlier postbacks, read for a whole batch.

use crate::Failure;
use crate::params::column;
use crate::rows::{id, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tokio_postgres::Row;
use tributary_domain::report::postback::{EarlierPostbacks, ReceivedPostback};
use tributary_domain::skan::counting::Trust;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreError;
use uuid::Uuid;

/// Finds the apps with these postbacks' App Store ids.
pub(super) async fn apps(
    tx: &Tx,
    postbacks: &[ReceivedPostback],
) -> Result<BTreeMap<String, AppId>, Failure> {
    let ids: BTreeSet<String> = postbacks
        .iter()
        .map(ReceivedPostback::app_store_id)
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let rows = tx
        .query(
            "select app_store_id, app_id from app_store_ids where app_store_id = any($1)",
            &[&ids],
        )
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, AppId::from_bytes(id(row, 1)?))))
        .collect()
}

/// Maximum number of rows per deduplication key: one per trust level.
const TRUSTS_MAX: i64 = 3;
const _: () = assert!(Trust::ALL.len() == 3);

/// App id and digest of the deduplication key.
type Key = (AppId, Digest);

/// Earlier postbacks, including those earlier in the same batch.
#[derive(Default)]
pub(super) struct PostbackHistory {
    firsts: HashMap<Key, Vec<(Trust, Digest)>>,
    bodies: HashSet<(Key, Digest)>,
}

impl PostbackHistory {
    /// Reads the earlier postbacks from the database.
    pub(super) async fn gather(
        tx: &Tx,
        postbacks: &[(AppId, &ReceivedPostback)],
    ) -> Result<Self, Failure> {
        let keys: BTreeSet<(AppId, Digest)> = postbacks
            .iter()
            .map(|(app, postback)| (*app, postback.key_digest()))
            .collect();
        let keys: Vec<(AppId, Digest)> = keys.into_iter().collect();
        let apps: Vec<Uuid> = column(&keys, |(app, _)| uuid(app.as_bytes()));
        let digests: Vec<&[u8]> = column(&keys, |(_, key)| key.as_bytes().as_slice());
        let mut firsts: HashMap<Key, Vec<(Trust, Digest)>> = HashMap::new();
        let rows = tx
            .query(
                // One index lookup per key, here and below. A generic plan made when the table was
                // small would scan the whole table.
                "select stored.app_id, stored.key_digest, stored.trust, stored.body_digest
                 from unnest($1, $2) as wanted (app_id, key_digest)
                 cross join lateral
                      (select app_id, key_digest, trust, body_digest from postback_keys
                       where app_id = wanted.app_id and key_digest = wanted.key_digest
                       limit $3) as stored",
                &[&apps, &digests, &TRUSTS_MAX],
            )
            .await?;
        for row in &rows {
            let app = AppId::from_bytes(id(row, 0)?);
            let corrupt = || StoreError::corrupt("postback_keys", "trust", app);
            let trust = Trust::parse(row.try_get(2)?).ok_or_else(corrupt)?;
            let key = (app, digest(row.try_get(1)?, app)?);
            let body = digest(row.try_get(3)?, app)?;
            firsts.entry(key).or_default().push((trust, body));
        }
        let bodies = find_bodies(tx, postbacks).await?;
        Ok(Self { firsts, bodies })
    }

    /// Returns the earlier postbacks with the same deduplication key.
    pub(super) fn before(&self, app: AppId, postback: &ReceivedPostback) -> EarlierPostbacks {
        let key = (app, postback.key_digest());
        EarlierPostbacks {
            has_same_body: self.bodies.contains(&(key, postback.body_digest())),
            first_by_trust: self.firsts.get(&key).cloned().unwrap_or_default(),
        }
    }

    /// Adds a postback that will be stored, so that later postbacks in the batch see it.
    pub(super) fn add(&mut self, app: AppId, postback: &ReceivedPostback, is_first: bool) {
        let (key, body) = ((app, postback.key_digest()), postback.body_digest());
        self.bodies.insert((key, body));
        if is_first {
            let first = (postback.trust(), body);
            self.firsts.entry(key).or_default().push(first);
        }
    }
}

/// Finds which of these bodies are stored already.
async fn find_bodies(
    tx: &Tx,
    postbacks: &[(AppId, &ReceivedPostback)],
) -> Result<HashSet<(Key, Digest)>, Failure> {
    let bodies: BTreeSet<(AppId, Digest, Digest)> = postbacks
        .iter()
        .map(|(app, postback)| (*app, postback.key_digest(), postback.body_digest()))
        .collect();
    let bodies: Vec<(AppId, Digest, Digest)> = bodies.into_iter().collect();
    let rows = tx
        .query(
            "select stored.app_id, stored.key_digest, stored.body_digest
             from unnest($1, $2, $3) as wanted (app_id, key_digest, body_digest)
             cross join lateral
                  (select app_id, key_digest, body_digest from postbacks
                   where app_id = wanted.app_id and key_digest = wanted.key_digest
                     and body_digest = wanted.body_digest limit 1) as stored",
            &[
                &column(&bodies, |(app, ..)| uuid(app.as_bytes())),
                &column(&bodies, |(_, key, _)| key.as_bytes().as_slice()),
                &column(&bodies, |(.., body)| body.as_bytes().as_slice()),
            ],
        )
        .await?;
    let body = |row: &Row| {
        let app = AppId::from_bytes(id(row, 0)?);
        let key = (app, digest(row.try_get(1)?, app)?);
        Ok((key, digest(row.try_get(2)?, app)?))
    };
    rows.iter().map(body).collect()
}

fn digest(bytes: &[u8], app: AppId) -> Result<Digest, Failure> {
    let bytes = <[u8; 32]>::try_from(bytes);
    let bytes = bytes.map_err(|_| StoreError::corrupt("postbacks", "digest", app))?;
    Ok(Digest::from_bytes(bytes))
}
