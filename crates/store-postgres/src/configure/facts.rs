//! Facts about claims of users, and data that calls affect besides their own.
//!
//! Each statement gets the position of the query with every row, and returns it.

use crate::Failure;
use crate::candidates::{position, to_number};
use crate::devices::DeviceColumns;
use crate::params::{Param, column, placeholders};
use crate::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tributary_domain::device::{ADDRESS_CLAIMS_MAX, ClaimFacts, SIGNED_USER_LINKS_MAX, UserKey};
use tributary_domain::event::SELF_CREDITED_SOURCE;
use tributary_recording::{ClaimQuery, ConfigureQuery, RelatedQuery};

/// A claim with the position of its query.
type NumberedClaim<'a> = (usize, &'a ClaimQuery<'a>);

/// Reads the facts about each query's claim of a user.
pub(super) async fn claims(
    tx: &Tx,
    queries: &[ConfigureQuery<'_>],
) -> Result<Vec<ClaimFacts>, Failure> {
    let mut facts = vec![ClaimFacts::default(); queries.len()];
    let claims = queries.iter().enumerate();
    let claims: Vec<NumberedClaim<'_>> = claims
        .filter_map(|(position, query)| Some((position, query.claim.as_ref()?)))
        .collect();
    if claims.is_empty() {
        return Ok(facts);
    }
    // Pipelined: these reads are independent.
    let (users, from_address, of_user) = tokio::try_join!(
        claimed_users(tx, &claims),
        claims_from_address(tx, &claims),
        links_of_user(tx, &claims)
    )?;
    for row in &users {
        if let Some(facts) = facts.get_mut(position(row)?) {
            let user = UserKey::stored(row.try_get("user_id")?);
            if row.try_get("is_signed")? {
                facts.signed.insert(user.clone());
            }
            facts.users.insert(user);
        }
    }
    for (position, facts) in facts.iter_mut().enumerate() {
        let of_query = |counts: &Counts| counts.get(&position).copied().unwrap_or_default();
        facts.claims_from_address = of_query(&from_address);
        facts.links_of_user = of_query(&of_user);
    }
    Ok(facts)
}

async fn claimed_users(tx: &Tx, claims: &[NumberedClaim<'_>]) -> Result<Vec<Row>, Failure> {
    tx.query(
        "select wanted.number, links.user_id, links.is_signed
         from unnest($1, $2, $3, $4) as wanted (number, app_id, environment, device_id)
         join user_links as links
           on links.app_id = wanted.app_id and links.environment = wanted.environment
          and links.device_id = wanted.device_id
         /* distributed: where links.app_id = any($2) */",
        &[
            &column(claims, |(position, _)| to_number(*position)),
            &column(claims, |(_, claim)| claim.device.app()),
            &column(claims, |(_, claim)| claim.device.environment.as_str()),
            &column(claims, |(_, claim)| claim.device.device()),
        ],
    )
    .await
}

async fn claims_from_address(tx: &Tx, claims: &[NumberedClaim<'_>]) -> Result<Counts, Failure> {
    let with_address = claims.iter().filter(|(_, claim)| claim.address.is_some());
    let claims: Vec<_> = with_address.copied().collect();
    if claims.is_empty() {
        return Ok(Counts::new());
    }
    let hashes = column(&claims, |(_, claim)| {
        let address = claim.address.as_ref();
        address.map(|(hash, _)| hash.as_bytes().as_slice())
    });
    let since = column(&claims, |(_, claim)| {
        claim.address.map(|(_, since)| since.as_millis())
    });
    let condition = "links.address_hash = wanted.address_hash
                     and links.first_linked_at >= wanted.since";
    let wanted = LinkCount {
        columns: "address_hash, since",
        condition,
        limit: ADDRESS_CLAIMS_MAX,
    };
    wanted.count(tx, &claims, &[&hashes, &since]).await
}

async fn links_of_user(tx: &Tx, claims: &[NumberedClaim<'_>]) -> Result<Counts, Failure> {
    let users = column(claims, |(_, claim)| claim.user.as_str());
    let wanted = LinkCount {
        columns: "user_id",
        condition: "links.user_id = wanted.user_id",
        limit: SIGNED_USER_LINKS_MAX,
    };
    wanted.count(tx, claims, &[&users]).await
}

/// Numbers of links, by the position of the query.
type Counts = BTreeMap<usize, usize>;

/// Which links in the app and environment of a claim are counted.
struct LinkCount {
    /// Values of the claim, besides its app and environment.
    columns: &'static str,
    condition: &'static str,
    /// Where counting stops, because anyone can send any number of claims.
    limit: usize,
}

impl LinkCount {
    async fn count(
        &self,
        tx: &Tx,
        claims: &[NumberedClaim<'_>],
        values: &[&dyn Param],
    ) -> Result<Counts, Failure> {
        let Self {
            columns,
            condition,
            limit,
        } = self;
        let numbers = column(claims, |(position, _)| to_number(*position));
        let apps = column(claims, |(_, claim)| claim.device.app());
        let environments = column(claims, |(_, claim)| claim.device.environment.as_str());
        let mut params: Vec<&dyn Param> = vec![&numbers, &apps, &environments];
        params.extend(values);
        // The window makes the server look up each claim in the index, and stop at the limit.
        let sql = format!(
            "select wanted.number, count(*) as count
             from unnest({}) as wanted (number, app_id, environment, {columns})
             cross join lateral
                  (select row_number() over (/* distributed: partition by app_id */) as place
                   from user_links as links
                   where links.app_id = wanted.app_id
                     and links.environment = wanted.environment and {condition}
                     /* distributed: and links.app_id = any($2) */) as found
             where found.place <= {limit}
             group by wanted.number",
            placeholders(params.len())
        );
        let mut counts = Counts::new();
        for row in tx.query(&sql, &params).await? {
            let count: i64 = row.try_get("count")?;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            counts.insert(position(&row)?, count);
        }
        Ok(counts)
    }
}

/// Returns the queries for which a subscription is waiting.
pub(super) async fn with_subscriptions(
    tx: &Tx,
    queries: &[RelatedQuery<'_>],
) -> Result<BTreeSet<usize>, Failure> {
    let mut keys = Vec::new();
    for (position, query) in queries.iter().enumerate() {
        keys.extend(query.keys.iter().map(|key| (position, query.device, key)));
    }
    if keys.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rows = tx
        .query(
            "select distinct wanted.number
             from unnest($1, $2, $3, $4) as wanted (number, app_id, environment, lookup_key)
             join billing_keys as keys
               on keys.app_id = wanted.app_id and keys.environment = wanted.environment
              and keys.lookup_key = wanted.lookup_key
             /* distributed: where keys.app_id = any($2) */",
            &[
                &column(&keys, |(position, ..)| to_number(*position)),
                &column(&keys, |(_, device, _)| device.app()),
                &column(&keys, |(_, device, _)| device.environment.as_str()),
                &column(&keys, |(.., key)| key.as_str()),
            ],
        )
        .await?;
    rows.iter().map(position).collect()
}

/// Returns the queries whose devices have events that change. The window in the lateral subquery makes the
/// server look up each device in the index, and stop at its first event.
pub(super) async fn with_events(
    tx: &Tx,
    queries: &[RelatedQuery<'_>],
) -> Result<BTreeSet<usize>, Failure> {
    let changed = queries.iter().enumerate();
    let changed: Vec<_> = changed.filter(|(_, query)| query.changes_events).collect();
    if changed.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rows = tx
        .query(
            "select wanted.number
             from unnest($1, $2, $3, $4) as wanted (number, app_id, environment, device_id)
             cross join lateral
                  (select row_number() over (/* distributed: partition by app_id */
                                             order by app_id, environment, device_id, event_id)
                          as place
                   from events
                   where app_id = wanted.app_id and environment = wanted.environment
                     and device_id = wanted.device_id and source <> $5
                     /* distributed: and app_id = any($2) */) as found
             where found.place <= 1",
            &[
                &column(&changed, |(position, _)| to_number(*position)),
                &column(&changed, |(_, query)| query.device.app()),
                &column(&changed, |(_, query)| query.device.environment.as_str()),
                &column(&changed, |(_, query)| query.device.device()),
                &SELF_CREDITED_SOURCE.as_str(),
            ],
        )
        .await?;
    rows.iter().map(position).collect()
}
