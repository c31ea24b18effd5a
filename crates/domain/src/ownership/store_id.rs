//! App Store ids. Apple's postbacks name the advertised app by its App Store id and no organization,
//! so one app of the instance must receive the postbacks of an id.
//!
//! Organizations may claim the same id. Evidence decides, in this order: the operator's word; a
//! notification that Apple signed for the app and sent to the app's own webhook URL, which only the
//! developer can configure; an earlier genuine postback. A postback is weak evidence, because ad
//! networks receive it too and could replay it. It only protects an app that receives postbacks
//! from a later claim.

use crate::access::Environment;
use crate::refusal::Refusal;
use crate::vocabulary::id::{AppId, OrganizationId};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Maximum number of claims of one id. Far more than there are honest ones.
pub const STORE_ID_CLAIMS_MAX: u32 = 100;
/// Age up to which a notification is evidence. Apple retries for less than a week. An older one may
/// be a copy from someone who no longer works for the developer.
const NOTIFICATION_AGE_MAX: Duration = Duration::from_hours(7 * 24);

/// Stored evidence for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreIdProof {
    /// The claim is from before claims needed evidence, when an id belonged to one app.
    Existing,
    /// Apple sent a signed notification about the app to the app's webhook URL.
    Notification,
    /// The operator decided.
    Operator,
}

crate::keywords! {
    StoreIdProof {
        Existing => "existing",
        Notification => "notification",
        Operator => "operator",
    }
}

impl StoreIdProof {
    const fn rank(self) -> ClaimRank {
        match self {
            Self::Existing => ClaimRank::Established,
            Self::Notification => ClaimRank::Proven,
            Self::Operator => ClaimRank::Decided,
        }
    }
}

/// Strength of a claim's evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ClaimRank {
    /// Nothing but the claim itself.
    Unproven,
    /// The app received genuine postbacks.
    Established,
    /// Apple's notification proves the claim. Others cannot claim the id any more.
    Proven,
    /// The operator decided.
    Decided,
}

/// An app's claim to an App Store id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreIdClaim {
    /// Claiming app.
    pub app: AppId,
    /// Its organization.
    pub organization: OrganizationId,
    /// When the app got the id.
    pub claimed_at: Timestamp,
    /// Stored evidence.
    pub proof: Option<StoreIdProof>,
    /// Whether a postback that Apple signed was stored for the app under this id when it arrived.
    pub has_postback: bool,
}

impl StoreIdClaim {
    fn rank(&self) -> ClaimRank {
        let postback = if self.has_postback {
            ClaimRank::Established
        } else {
            ClaimRank::Unproven
        };
        self.proof
            .map_or(postback, |proof| proof.rank().max(postback))
    }
}

/// Returns the app that receives the postbacks of an id: the claim with the strongest evidence, and
/// among equal ones the earliest. Without any evidence, a single claim is believed. Several claims
/// without evidence get nothing: their postbacks wait until one is proven.
pub fn receiver(claims: &[StoreIdClaim]) -> Option<AppId> {
    let strongest = claims.iter().map(StoreIdClaim::rank).max()?;
    if strongest == ClaimRank::Unproven && claims.len() > 1 {
        return None;
    }
    let mut candidates: Vec<&StoreIdClaim> = claims
        .iter()
        .filter(|claim| claim.rank() == strongest)
        .collect();
    candidates.sort_by_key(|claim| (claim.claimed_at, claim.app));
    candidates.first().map(|claim| claim.app)
}

/// Refuses a claim if another app of the organization has the id, or if another organization has
/// proven that it owns the id. An app that has the id keeps it.
pub fn check_claim(
    claims: &[StoreIdClaim],
    app: AppId,
    organization: OrganizationId,
) -> Result<(), Refusal> {
    if claims.iter().any(|claim| claim.app == app) {
        return Ok(());
    }
    let excludes = |claim: &StoreIdClaim| {
        claim.organization == organization || claim.rank() >= ClaimRank::Proven
    };
    let is_full = claims.len() >= STORE_ID_CLAIMS_MAX as usize;
    if is_full || claims.iter().any(excludes) {
        return Err(Refusal::StoreIdTaken);
    }
    Ok(())
}

/// Tells whether new evidence changes a claim. It must be stronger than the claim's own evidence
/// and than that of all other claims: the first proof wins. The operator overrides everything.
pub fn accepts_proof(claims: &[StoreIdClaim], app: AppId, proof: StoreIdProof) -> bool {
    let own = claims.iter().find(|claim| claim.app == app);
    let Some(own) = own.filter(|claim| claim.proof != Some(proof)) else {
        return false;
    };
    proof == StoreIdProof::Operator
        || (own.rank() < proof.rank() && claims.iter().all(|claim| claim.rank() < proof.rank()))
}

/// Tells whether an App Store notification proves that the app with its webhook URL owns its App
/// Store id. The caller has verified Apple's signature and compared bundle id and App Store id. The
/// sandbox sends no App Store id, and anyone can send old notifications again.
pub fn is_proving_notification(
    environment: Environment,
    happened_at: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    let is_recent = happened_at.is_some_and(|at| now < at.plus(NOTIFICATION_AGE_MAX));
    environment == Environment::Live && is_recent
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Builds claims of apps 1, 2, … in different organizations, in the order of their time.
    fn claims(evidence: &[&str]) -> Vec<StoreIdClaim> {
        (1_u8..)
            .zip(evidence)
            .map(|(number, evidence)| StoreIdClaim {
                app: app(number),
                organization: OrganizationId::from_bytes([number; 16]),
                claimed_at: Timestamp::from_millis(number.into()),
                proof: StoreIdProof::parse(evidence),
                has_postback: *evidence == "postback",
            })
            .collect()
    }

    fn app(number: u8) -> AppId {
        AppId::from_bytes([number; 16])
    }

    #[rstest]
    #[case::no_claim(&[], None)]
    #[case::one_claim(&[""], Some(1))]
    #[case::contested(&["", ""], None)]
    #[case::existing_before_a_new_claim(&["existing", ""], Some(1))]
    #[case::established_before_a_new_claim(&["postback", ""], Some(1))]
    #[case::the_later_claim_is_proven(&["", "notification"], Some(2))]
    #[case::proof_outranks_a_postback(&["postback", "notification"], Some(2))]
    #[case::proof_outranks_an_existing_claim(&["existing", "notification", ""], Some(2))]
    #[case::the_operator_outranks_a_proof(&["notification", "operator"], Some(2))]
    #[case::equal_evidence(&["", "postback", "existing"], Some(2))]
    fn postbacks_go_to(#[case] evidence: &[&str], #[case] expected: Option<u8>) {
        assert_eq!(receiver(&claims(evidence)), expected.map(app));
    }

    #[rstest]
    #[case::first(&[], true)]
    #[case::unproven(&["", ""], true)]
    #[case::existing(&["existing"], true)]
    #[case::postback(&["postback"], true)]
    #[case::proven(&["", "notification"], false)]
    #[case::decided(&["operator"], false)]
    fn another_organization_may_claim(#[case] evidence: &[&str], #[case] accepted: bool) {
        let other = OrganizationId::from_bytes([9; 16]);
        let checked = check_claim(&claims(evidence), app(9), other);
        assert_eq!(checked.is_ok(), accepted);
    }

    #[test]
    fn an_organization_has_an_id_once_and_keeps_it() {
        let claims = claims(&["", "notification"]);
        let own = claims[0].organization;
        assert_eq!(
            check_claim(&claims[..1], app(9), own),
            Err(Refusal::StoreIdTaken)
        );
        assert_eq!(check_claim(&claims, app(1), own), Ok(()));
    }

    #[test]
    fn the_number_of_claims_is_limited() {
        let all = vec![""; STORE_ID_CLAIMS_MAX as usize];
        let other = OrganizationId::from_bytes([255; 16]);
        assert!(check_claim(&claims(&all[1..]), app(255), other).is_ok());
        assert!(check_claim(&claims(&all), app(255), other).is_err());
    }

    #[rstest]
    #[case::contested(&["", ""], "notification", true)]
    #[case::against_a_postback(&["", "postback"], "notification", true)]
    #[case::against_an_existing_claim(&["", "existing"], "notification", true)]
    #[case::second_proof(&["", "notification"], "notification", false)]
    #[case::proven_before(&["notification", ""], "notification", false)]
    #[case::against_the_operator(&["", "operator"], "notification", false)]
    #[case::no_claim(&[], "notification", false)]
    #[case::the_operator_against_a_proof(&["", "notification"], "operator", true)]
    #[case::the_operator_against_the_operator(&["", "operator"], "operator", true)]
    #[case::the_operator_again(&["operator"], "operator", false)]
    fn new_evidence(#[case] evidence: &[&str], #[case] proof: &str, #[case] accepted: bool) {
        let proof = StoreIdProof::parse(proof).unwrap();
        assert_eq!(accepts_proof(&claims(evidence), app(1), proof), accepted);
    }

    #[rstest]
    #[case::now(Environment::Live, Some(1_000_000_000), true)]
    #[case::a_week_old(Environment::Live, Some(1_000_000_000 - 604_800_000), false)]
    #[case::less_than_a_week_old(Environment::Live, Some(1_000_000_000 - 604_799_999), true)]
    #[case::sandbox(Environment::Test, Some(1_000_000_000), false)]
    #[case::no_time(Environment::Live, None, false)]
    fn notifications_as_proof(
        #[case] environment: Environment,
        #[case] happened_at: Option<i64>,
        #[case] expected: bool,
    ) {
        let happened_at = happened_at.map(Timestamp::from_millis);
        let now = Timestamp::from_millis(1_000_000_000);
        assert_eq!(
            is_proving_notification(environment, happened_at, now),
            expected
        );
    }
}
