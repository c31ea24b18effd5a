//! `tributary admin user remove-factors` — for people who lost their passkeys, or other second factors and
//! recovery codes.

use super::print_line;
use tributary_domain::access::Actor;
use tributary_domain::access::person::Email;
use tributary_domain::refusal::Refusal;
use tributary_domain::runtime::Runtime;
use tributary_store::Store;

/// Removes the factors and recovery codes of all accounts of an email address.
pub(super) async fn remove_factors(
    store: &dyn Store,
    runtime: &Runtime,
    email: &Email,
) -> anyhow::Result<()> {
    let accounts = store.users_by_email(email).await?;
    if accounts.is_empty() {
        return Err(Refusal::MemberNotFound.into());
    }
    let mut removed = 0;
    for (user, _) in accounts {
        let origin = runtime.origin(Actor::Operator, None, None);
        removed += store.remove_factors(user.id, origin).await?;
    }
    print_line(format!(
        "removed {removed} passkeys and other second factors"
    ));
    Ok(())
}
