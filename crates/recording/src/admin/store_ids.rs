//! Claims of App Store ids, and which app receives the postbacks of an id.

use crate::tables::Tables;
use std::collections::BTreeSet;
use tributary_domain::app::App;
use tributary_domain::audit::{Action, AuditContext, Changes};
use tributary_domain::ownership::store_id::{
    StoreIdClaim, StoreIdProof, accepts_proof, check_claim, receiver,
};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::CLAIMED_AT_ONCE_MAX;
use tributary_store::records::audit_row;

/// Moves an app's claim from its previous App Store id to its current one. Both ids are locked in a
/// fixed order, so that two apps that swap ids are both refused instead of deadlocking.
pub(super) async fn claim_store_id<T: Tables>(
    tables: &T,
    app: &App,
    previous: Option<&str>,
    at: Timestamp,
) -> Result<(), T::Failure> {
    let current = app.ios.app_store_id.as_deref();
    if current == previous {
        return Ok(());
    }
    let changed: BTreeSet<&str> = previous.into_iter().chain(current).collect();
    for id in &changed {
        tables.lock_store_id(id).await?;
    }
    if let Some(id) = current {
        let claims = tables.store_id_claims(id).await?;
        check_claim(&claims, app.id, app.organization)?;
        let claim = StoreIdClaim {
            app: app.id,
            organization: app.organization,
            claimed_at: at,
            proof: None,
            has_postback: false,
        };
        tables.insert_store_id_claim(id, &claim).await?;
    }
    if let Some(id) = previous {
        tables.remove_store_id_claim(id, app.id).await?;
    }
    for id in &changed {
        settle_receiver(tables, id).await?;
    }
    Ok(())
}

/// Stores evidence for an app's claim, if it decides anything. Returns whether it did.
pub async fn prove_store_id<T: Tables>(
    tables: &T,
    app: AppId,
    app_store_id: &str,
    proof: StoreIdProof,
    origin: &AuditContext,
) -> Result<bool, T::Failure> {
    tables.lock_store_id(app_store_id).await?;
    let claims = tables.store_id_claims(app_store_id).await?;
    let own = claims.iter().find(|claim| claim.app == app);
    let Some(own) = own.filter(|_| accepts_proof(&claims, app, proof)) else {
        return Ok(false);
    };
    // The operator decides for one app only.
    let overruled = claims.iter().filter(|claim| claim.proof == Some(proof));
    for claim in overruled {
        tables
            .write_store_id_proof(app_store_id, claim.app, None)
            .await?;
    }
    tables
        .write_store_id_proof(app_store_id, app, Some(proof))
        .await?;
    settle_receiver(tables, app_store_id).await?;
    let mut changes = Changes::new();
    let word = |proof: StoreIdProof| proof.as_str().to_owned();
    changes.compare(
        "ios.appStoreId.proof",
        own.proof.map(word),
        Some(word(proof)),
    );
    let (action, changes) = (Action::AppUpdated, changes.into_vec());
    let row = audit_row(own.organization, origin, action, Some(app), app, &changes);
    tables.insert_audit(&row).await?;
    Ok(true)
}

/// Writes which app receives the postbacks of an id. The app also gets the postbacks that wait for
/// the id.
async fn settle_receiver<T: Tables>(tables: &T, app_store_id: &str) -> Result<(), T::Failure> {
    let receiver = receiver(&tables.store_id_claims(app_store_id).await?);
    tables.write_receiver(app_store_id, receiver).await?;
    if let Some(app) = receiver {
        let limit = CLAIMED_AT_ONCE_MAX;
        tables.claim_postbacks(app, app_store_id, limit).await?;
    }
    Ok(())
}
