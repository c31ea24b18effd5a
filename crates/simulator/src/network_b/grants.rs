//! Who gets an access token, and what for.

use super::answer;
use super::jwt;
use super::tokens::{Holder, SCOPE};
use crate::accounts::{AdsAccount, ServiceAccount};
use crate::registry::is_credential;
use crate::reply::Outcome;
use std::collections::HashMap;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const REVOKED: &str = "Token has been expired or revoked.";

/// The fields of a form.
pub(super) struct Form<'a> {
    pub(super) pairs: &'a [(String, String)],
    /// This endpoint, as the caller knows it: key files may name it as `token_uri`.
    pub(super) own_address: Option<String>,
}

impl Form<'_> {
    fn need(&self, name: &str) -> Result<&str, Outcome> {
        let found = self.pairs.iter().find(|(one, _)| one == name);
        let value = found.map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty()).ok_or_else(|| {
            let words = format!("Missing required parameter: {name}");
            answer::token_error("invalid_request", &words)
        })
    }
}

/// What is granted.
pub(super) struct Granted {
    pub(super) holder: Holder,
    pub(super) scope: String,
    /// Only in exchange for a code.
    pub(super) refresh_token: Option<String>,
}

type Accounts = HashMap<String, AdsAccount>;

pub(super) fn grant(
    form: &Form<'_>,
    accounts: &Accounts,
    is_open: bool,
    now: i64,
) -> Result<Granted, Outcome> {
    match form.need("grant_type")? {
        "refresh_token" => {
            let client = client(form, accounts, is_open)?;
            let given = form.need("refresh_token")?;
            let known = registered(accounts, &client, |one| one.refresh_token.as_deref());
            if !is_one_of(given, &known) {
                return Err(answer::invalid_grant(REVOKED));
            }
            Ok(Granted {
                holder: Holder::Client(client),
                scope: SCOPE.to_owned(),
                refresh_token: None,
            })
        }
        "authorization_code" => {
            let client = client(form, accounts, is_open)?;
            form.need("redirect_uri")?;
            if !is_credential(form.need("code")?, None) {
                return Err(answer::invalid_grant("Malformed auth code."));
            }
            let known = registered(accounts, &client, |one| one.refresh_token.as_deref());
            let refresh_token = known.first().map_or("1//simulated", |one| one);
            Ok(Granted {
                holder: Holder::Client(client),
                scope: SCOPE.to_owned(),
                refresh_token: Some(refresh_token.to_owned()),
            })
        }
        JWT_BEARER => {
            let service = |email: &str| service_account(accounts, email);
            let own_address = form.own_address.as_deref();
            let claims = jwt::check(form.need("assertion")?, service, own_address, now)
                .map_err(|words| answer::invalid_grant(&words))?;
            let is_known = service_account(accounts, &claims.email).is_some();
            let is_good = is_known || (is_open && is_credential(&claims.email, None));
            if !is_good {
                return Err(answer::invalid_grant("Invalid grant: account not found"));
            }
            Ok(Granted {
                holder: Holder::Service(claims.email),
                scope: claims.scope,
                refresh_token: None,
            })
        }
        _ => Err(answer::token_error(
            "unsupported_grant_type",
            "Invalid grant_type.",
        )),
    }
}

/// The OAuth client, by id and secret.
fn client(form: &Form<'_>, accounts: &Accounts, is_open: bool) -> Result<String, Outcome> {
    let (id, secret) = (form.need("client_id")?, form.need("client_secret")?);
    let is_known = accounts
        .values()
        .any(|one| one.client_id.as_deref() == Some(id));
    let is_taken = is_known || (is_open && is_credential(id, None));
    if !is_taken {
        return Err(answer::invalid_client("The OAuth client was not found."));
    }
    let known = registered(accounts, id, |one| one.client_secret.as_deref());
    if !is_one_of(secret, &known) {
        return Err(answer::invalid_client("Unauthorized"));
    }
    Ok(id.to_owned())
}

/// What the accounts of a client say about a credential.
fn registered<'a>(
    accounts: &'a Accounts,
    client: &str,
    credential: fn(&AdsAccount) -> Option<&str>,
) -> Vec<&'a str> {
    accounts
        .values()
        .filter(|one| one.client_id.as_deref() == Some(client))
        .filter_map(credential)
        .collect()
}

fn is_one_of(given: &str, known: &[&str]) -> bool {
    match known {
        [] => is_credential(given, None),
        known => known.contains(&given),
    }
}

fn service_account<'a>(accounts: &'a Accounts, email: &str) -> Option<&'a ServiceAccount> {
    let mut services = accounts
        .values()
        .filter_map(|one| one.service_account.as_ref());
    services.find(|one| one.client_email == email)
}
