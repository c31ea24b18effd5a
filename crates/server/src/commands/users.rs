//! `tributary admin user …`: the people who sign in to the dashboard.

use super::admin::{find_or_create_organization, format_time};
use super::print_line;
use super::second_factors::remove_factors;
use crate::cli::{CreateUser, RemoveUser, UserCommand};
use crate::config::Config;
use crate::first_run;
use crate::mail::Mailer;
use crate::wiring::mail_id;
use anyhow::Context as _;
use serde_json::{Value, json};
use tributary_domain::access::factor::FactorKind;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::access::key_management::is_lost;
use tributary_domain::access::letter::operator_reset_letter;
use tributary_domain::access::password_reset::{OPERATOR_RESET_LIFETIME, PasswordReset, reset_url};
use tributary_domain::access::person::{Email, Role};
use tributary_domain::access::{Actor, Authorized, Environment};
use tributary_domain::notice::MailAddress;
use tributary_domain::refusal::Refusal;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{AccountSummary, LastOwner, NewPasswordReset, Store, StoreError};

/// Runs a command.
pub(super) async fn execute(
    store: &dyn Store,
    runtime: &Runtime,
    config: &Config,
    command: UserCommand,
) -> anyhow::Result<()> {
    let base_url = config.stable_base_url();
    let base_url = base_url.as_deref();
    match command {
        UserCommand::Create(user) => create(store, runtime, base_url, user).await,
        UserCommand::List { json } => list(store, json).await,
        UserCommand::RemoveFactors { email } => remove_factors(store, runtime, &email).await,
        UserCommand::Reset {
            email,
            remove_factors,
            mail,
        } => {
            let mailer = if mail { Some(mailer(config)?) } else { None };
            reset(store, runtime, base_url, email, (remove_factors, mailer)).await
        }
        UserCommand::Remove(user) => remove(store, runtime, user).await,
    }
}

/// Returns the URL that one-time links start with.
fn link_base(base_url: Option<&str>) -> anyhow::Result<&str> {
    base_url.context(
        "cannot build the link, because `listen` uses port 0: set base_url (TRIBUTARY_BASE_URL) to \
         the address of the server",
    )
}

async fn create(
    store: &dyn Store,
    runtime: &Runtime,
    base_url: Option<&str>,
    user: CreateUser,
) -> anyhow::Result<()> {
    let base_url = link_base(base_url)?;
    let organization =
        find_or_create_organization(store, runtime, user.organization.as_deref()).await?;
    let accounts = store.users_by_email(&user.email).await?;
    if accounts
        .iter()
        .any(|(it, _)| it.organization == organization)
    {
        return Err(Refusal::EmailTaken.into());
    }
    let (role, email, actor) = (user.role.into(), Some(user.email), Actor::Operator);
    let link =
        first_run::issue_setup_link(store, runtime, base_url, organization, role, email, actor)
            .await?;
    print_line(link);
    Ok(())
}

async fn list(store: &dyn Store, as_json: bool) -> anyhow::Result<()> {
    let accounts = store.accounts().await?;
    let people: Vec<&[AccountSummary]> = accounts
        .chunk_by(|one, next| one.user.email == next.user.email)
        .collect();
    if as_json {
        let people: Vec<Value> = people.into_iter().map(person_json).collect();
        print_line(serde_json::to_string_pretty(&people)?);
    } else {
        for person in people {
            print_line(person_line(person));
        }
    }
    Ok(())
}

fn email_of(person: &[AccountSummary]) -> &str {
    person.first().map_or("", |one| one.user.email.as_str())
}

/// Describes a person in one line. The organizations come last, because their names may contain
/// spaces.
fn person_line(person: &[AccountSummary]) -> String {
    let created = person.iter().map(|one| one.user.created_at).min();
    let signed_in = person.iter().filter_map(|one| one.last_sign_in_at).max();
    let time = |at: Option<Timestamp>| at.map_or_else(|| "unknown".to_owned(), format_time);
    let roles: Vec<String> = person
        .iter()
        .map(|one| {
            format!(
                "{} in {}",
                one.user.role.as_str(),
                one.organization.name.as_str()
            )
        })
        .collect();
    [
        email_of(person).to_owned(),
        format!("created {}", time(created)),
        format!("last sign-in {}", time(signed_in)),
        roles.join(", "),
    ]
    .join("  ")
}

fn person_json(person: &[AccountSummary]) -> Value {
    let accounts: Vec<Value> = person
        .iter()
        .map(|one| {
            json!({
                "userId": one.user.id.to_string(),
                "organizationId": one.organization.id.to_string(),
                "organization": one.organization.name.as_str(),
                "role": one.user.role.as_str(),
                "createdAt": format_time(one.user.created_at),
                "lastSignInAt": one.last_sign_in_at.map(format_time),
            })
        })
        .collect();
    json!({"email": email_of(person), "accounts": accounts})
}

/// Returns the mailer, or an error before anything changes.
fn mailer(config: &Config) -> anyhow::Result<Mailer> {
    let mailer = Mailer::new(config)?;
    anyhow::ensure!(
        mailer.is_set_up(),
        "e-mail is not set up: set mail.url and mail.from, or leave out --mail"
    );
    Ok(mailer)
}

/// Prints a one-time link with which a person sets a new password, or sends it to the person, and
/// locks the person out until then.
async fn reset(
    store: &dyn Store,
    runtime: &Runtime,
    base_url: Option<&str>,
    email: Email,
    (removes_factors, mailer): (bool, Option<Mailer>),
) -> anyhow::Result<()> {
    let base_url = link_base(base_url)?;
    let token = runtime.new_key(KeyKind::Reset, Environment::Live);
    let mailed = mailer.map(|mailer| MailAddress::parse(email.as_str()).map(|to| (mailer, to)));
    let mailed = mailed.transpose().map_err(|_| {
        anyhow::anyhow!("this address cannot receive e-mail from the server; leave out --mail")
    })?;
    let new = NewPasswordReset {
        reset: PasswordReset {
            email: email.clone(),
            expires_at: runtime.now().plus(OPERATOR_RESET_LIFETIME),
        },
        digest: token.digest(),
    };
    // A password that was never written anywhere: the old one ends now.
    let password = runtime.new_key(KeyKind::Reset, Environment::Live);
    let locked = tributary_dashboard::password_hash(password.reveal(), runtime.random_bytes())
        .map_err(|error| anyhow::anyhow!("cannot hash a password: {error}"))?;
    let origin = runtime.origin(Actor::Operator, None, None);
    let reset = new.reset.clone();
    // Before the reset, which ends the sessions that one of the factors may have begun.
    if removes_factors {
        remove_factors(store, runtime, &email).await?;
    }
    store.reset_accounts(new, locked, origin).await?;
    let sent = match mailed {
        None => {
            print_line(reset_url(base_url, &token));
            Ok(())
        }
        Some(to) => send_reset_link(runtime, base_url, &token, &reset, to).await,
    };
    if !removes_factors {
        print_line(kept_factors(store, &email).await?);
    }
    sent
}

/// Sends the link by e-mail, or prints it if the mail server does not accept it: the person is locked
/// out already.
async fn send_reset_link(
    runtime: &Runtime,
    base_url: &str,
    token: &KeyText,
    reset: &PasswordReset,
    (mailer, to): (Mailer, MailAddress),
) -> anyhow::Result<()> {
    let letter = operator_reset_letter(base_url, token, reset, runtime.now());
    let sent = mailer
        .send_message(vec![to], &letter, mail_id(runtime))
        .await;
    if let Err(error) = sent {
        print_line(reset_url(base_url, token));
        anyhow::bail!("the link was not sent; pass it on yourself: {error}");
    }
    print_line("The link was sent by e-mail.");
    Ok(())
}

/// Says which second factors a reset keeps.
async fn kept_factors(store: &dyn Store, email: &Email) -> anyhow::Result<String> {
    let (mut passkeys, mut others) = (0, 0);
    for (user, _) in store.users_by_email(email).await? {
        for factor in store.factors_of(user.id).await? {
            match factor.kind() {
                FactorKind::Passkey => passkeys += 1,
                FactorKind::Totp => others += 1,
            }
        }
    }
    Ok(format!(
        "kept {passkeys} passkeys, which still sign in, and {others} other second factors; \
         --remove-factors removes them"
    ))
}

async fn remove(store: &dyn Store, runtime: &Runtime, user: RemoveUser) -> anyhow::Result<()> {
    let RemoveUser { email, force, yes } = user;
    let rule = if force {
        LastOwner::Goes
    } else {
        LastOwner::Stays
    };
    let owned = last_owner_of(store, &email).await?;
    let losses = losses(store, &email, runtime.now()).await?;
    if !losses.is_empty() && !yes {
        anyhow::bail!(
            "the person was not removed, because this ends with the account:\n  {}\nTo keep a key or \
             notice, remove the person in the dashboard, where you can take it over. Otherwise repeat \
             the command with --yes",
            losses.join("\n  ")
        );
    }
    let origin = runtime.origin(Actor::Operator, None, None);
    let removed = match store.remove_accounts(email, rule, origin).await {
        Err(StoreError::Refused(Refusal::LastOwner)) => anyhow::bail!(
            "this is the last owner of {}; make another member an owner first, or repeat the \
             command with --force, which leaves the organization without an owner until you invite \
             one with `tributary admin user create --role owner`",
            owned.join(", ")
        ),
        removed => removed?,
    };
    let names = store.organizations().await?;
    for user in removed {
        let name = names.iter().find(|one| one.id == user.organization);
        let name = name.map_or("an organization", |one| one.name.as_str());
        print_line(format!("Removed from {name}."));
    }
    for line in losses {
        print_line(format!("Ended: {line}"));
    }
    if force {
        for name in owned {
            print_line(format!(
                "{name} has no owner now. Invite one with `tributary admin user create --role owner`."
            ));
        }
    }
    Ok(())
}

/// Describes the keys, notices and invitations that end with the accounts of a person.
async fn losses(store: &dyn Store, email: &Email, now: Timestamp) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    let accounts = store.accounts().await?;
    for account in accounts.iter().filter(|one| one.user.email == *email) {
        let (user, organization) = (&account.user, &account.organization);
        let caller = Authorized::operator(organization.id);
        let keys = store.keys(organization.id).await?.into_iter();
        for key in keys.filter(|key| is_lost(key, user.id, None, now)) {
            lines.push(format!("API key {} (…{})", key.name, key.hint));
        }
        for notice in store.active_notices(&caller, Some(user.id)).await? {
            lines.push(format!("notice {}", notice.settings.name.as_str()));
        }
        for invitation in store.invitations(&caller).await? {
            let link = invitation.link;
            if link.is_valid(now) && link.is_lost(user, None) {
                let to = link.email.as_ref().map_or("the first owner", Email::as_str);
                lines.push(format!("invitation of {to} as {}", link.role.as_str()));
            }
        }
    }
    Ok(lines)
}

/// Returns the names of the organizations that have no other owner.
async fn last_owner_of(store: &dyn Store, email: &Email) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let accounts = store.accounts().await?;
    for account in accounts.iter().filter(|one| one.user.email == *email) {
        let caller = Authorized::operator(account.organization.id);
        let members = store.members(&caller).await?;
        let mut owners = members.iter().filter(|one| one.role == Role::Owner);
        if account.user.role == Role::Owner && owners.all(|one| one.id == account.user.id) {
            names.push(account.organization.name.as_str().to_owned());
        }
    }
    Ok(names)
}
