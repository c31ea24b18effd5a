//! Earlier postbacks, read for a whole batch.

use crate::Failure;
use crate::params::column;
use crate::rows::{id, uuid};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tokio_postgres::Row;
use tributary_domain::report::postback::{EarlierPostbacks, ReceivedPostback, VARIANTS_MAX};
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

/// App id and digest of the deduplication key.
type Key = (AppId, Digest);

/// Earlier postbacks, including those earlier in the same batch.
#[derive(Default)]
pub(super) struct PostbackHistory {
    firsts: HashMap<Key, Vec<(Trust, Digest)>>,
    bodies: HashSet<(Key, Digest)>,
    variants: HashMap<Key, u32>,
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
                // One index lookup per key, here and below, because of the grouping (see
                // `devices::bulk::rows_of`).
                "select stored.app_id, stored.key_digest, stored.trust, stored.body_digest
                 from unnest($1, $2) as wanted (app_id, key_digest)
                 cross join lateral
                      (select app_id, key_digest, trust, body_digest from postback_keys
                       where app_id = wanted.app_id and key_digest = wanted.key_digest
                         /* distributed: and app_id = any($1) */
                       group by app_id, key_digest, trust) as stored",
                &[&apps, &digests],
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
        let variants = count_variants(tx, &keys).await?;
        Ok(Self {
            firsts,
            bodies,
            variants,
        })
    }

    /// Returns the earlier postbacks with the same deduplication key.
    pub(super) fn before(&self, app: AppId, postback: &ReceivedPostback) -> EarlierPostbacks {
        let key = (app, postback.key_digest());
        EarlierPostbacks {
            has_same_body: self.bodies.contains(&(key, postback.body_digest())),
            first_by_trust: self.firsts.get(&key).cloned().unwrap_or_default(),
            variants: self.variants.get(&key).copied().unwrap_or_default(),
        }
    }

    /// Adds a postback that will be stored, so that later postbacks in the batch see it.
    pub(super) fn add(&mut self, app: AppId, postback: &ReceivedPostback, is_first: bool) {
        let (key, body) = ((app, postback.key_digest()), postback.body_digest());
        self.bodies.insert((key, body));
        *self.variants.entry(key).or_default() += 1;
        if is_first {
            let first = (postback.trust(), body);
            self.firsts.entry(key).or_default().push(first);
        }
    }
}

/// Counts the stored postbacks per deduplication key, up to [`VARIANTS_MAX`]. Batches that run at the
/// same time do not see each other's, so together they may store a few more. Further ones are not
/// stored, so there are few to count.
async fn count_variants(tx: &Tx, keys: &[Key]) -> Result<HashMap<Key, u32>, Failure> {
    let rows = tx
        .query(
            "select wanted.app_id, wanted.key_digest, stored.variants
             from unnest($1, $2) as wanted (app_id, key_digest)
             cross join lateral
                  (select count(*) as variants from postbacks
                   where app_id = wanted.app_id and key_digest = wanted.key_digest
                     /* distributed: and app_id = any($1) */
                   group by app_id, key_digest) as stored",
            &[
                &column(keys, |(app, _)| uuid(app.as_bytes())),
                &column(keys, |(_, key)| key.as_bytes().as_slice()),
            ],
        )
        .await?;
    let count = |row: &Row| {
        let app = AppId::from_bytes(id(row, 0)?);
        let variants: i64 = row.try_get(2)?;
        let variants = u32::try_from(variants).unwrap_or(VARIANTS_MAX);
        let variants = variants.min(VARIANTS_MAX);
        Ok(((app, digest(row.try_get(1)?, app)?), variants))
    };
    rows.iter().map(count).collect()
}

/// App Store id, digest of the deduplication key, and state of the signature.
type WaitingKey = (String, Digest, &'static str);

/// Bodies of waiting postbacks, including those earlier in the same batch.
#[derive(Default)]
pub(super) struct WaitingPostbacks(HashMap<WaitingKey, Vec<Digest>>);

impl WaitingPostbacks {
    fn key(postback: &ReceivedPostback) -> WaitingKey {
        let signature = postback.parsed.signature.as_str();
        (postback.app_store_id(), postback.key_digest(), signature)
    }

    /// Reads the waiting postbacks from the database.
    pub(super) async fn gather(tx: &Tx, postbacks: &[&ReceivedPostback]) -> Result<Self, Failure> {
        if postbacks.is_empty() {
            return Ok(Self::default());
        }
        let keys: BTreeSet<WaitingKey> = postbacks.iter().map(|one| Self::key(one)).collect();
        let keys: Vec<WaitingKey> = keys.into_iter().collect();
        let numbers: Vec<i64> = (0..).take(keys.len()).collect();
        let rows = tx
            .query(
                "select wanted.number, stored.body_digest
                 from unnest($1, $2, $3, $4)
                      as wanted (number, app_store_id, key_digest, signature)
                 cross join lateral
                      (select body_digest from unclaimed_postbacks
                       where app_store_id = wanted.app_store_id
                         and key_digest = wanted.key_digest and signature = wanted.signature
                       group by app_store_id, key_digest, body_digest) as stored",
                &[
                    &numbers,
                    &column(&keys, |(store_id, ..)| store_id.as_str()),
                    &column(&keys, |(_, key, _)| key.as_bytes().as_slice()),
                    &column(&keys, |(.., signature)| *signature),
                ],
            )
            .await?;
        let mut waiting = Self::default();
        for row in &rows {
            let number: i64 = row.try_get(0)?;
            let key = usize::try_from(number).ok().and_then(|at| keys.get(at));
            let corrupt = || StoreError::corrupt("unclaimed_postbacks", "body_digest", number);
            let key = key.ok_or_else(corrupt)?.clone();
            let body = <[u8; 32]>::try_from(row.try_get::<_, &[u8]>(1)?);
            let body = Digest::from_bytes(body.map_err(|_| corrupt())?);
            waiting.0.entry(key).or_default().push(body);
        }
        Ok(waiting)
    }

    /// Returns the bodies of the waiting postbacks with the same deduplication key and state of the
    /// signature.
    pub(super) fn bodies(&mut self, postback: &ReceivedPostback) -> &mut Vec<Digest> {
        self.0.entry(Self::key(postback)).or_default()
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
                     and body_digest = wanted.body_digest
                     /* distributed: and app_id = any($1) */
                   group by app_id, key_digest, body_digest) as stored",
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
