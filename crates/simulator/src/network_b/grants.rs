//! Grants access tokens.

use super::jwt;
use super::responses;
use super::tokens::{ADS_SCOPE, SCOPE, TokenHolder};
use crate::accounts::{AdsAccount, SimulatedServiceAccount};
use crate::registry::is_valid_credential;
use crate::reply::SimulatedOutcome;
use std::collections::HashMap;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const REVOKED: &str = "Token has been expired or revoked.";

/// Fields of a token request.
pub(super) struct TokenForm<'a> {
    pub(super) pairs: &'a [(String, String)],
    /// URL of the token endpoint as the caller sees it. Key files may use this URL as `token_uri`.
    pub(super) own_address: Option<String>,
}

impl TokenForm<'_> {
    fn require(&self, name: &str) -> Result<&str, SimulatedOutcome> {
        let found = self.pairs.iter().find(|(one, _)| one == name);
        let value = found.map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty()).ok_or_else(|| {
            let message = format!("Missing required parameter: {name}");
            responses::token_error("invalid_request", &message)
        })
    }
}

/// A granted token.
pub(super) struct TokenGrantResult {
    pub(super) holder: TokenHolder,
    pub(super) scope: String,
    /// Issued only in exchange for an authorization code.
    pub(super) refresh_token: Option<String>,
}

type Accounts = HashMap<String, AdsAccount>;

pub(super) fn grant(
    form: &TokenForm<'_>,
    accounts: &Accounts,
    is_open: bool,
    now: i64,
) -> Result<TokenGrantResult, SimulatedOutcome> {
    match form.require("grant_type")? {
        "refresh_token" => {
            let client = client(form, accounts, is_open)?;
            let given = form.require("refresh_token")?;
            let known = registered(accounts, &client, |one| one.refresh_token.as_deref());
            if !is_one_of(given, &known) {
                return Err(responses::invalid_grant(REVOKED));
            }
            Ok(TokenGrantResult {
                holder: TokenHolder::Client(client),
                scope: consented_scopes(),
                refresh_token: None,
            })
        }
        "authorization_code" => {
            let client = client(form, accounts, is_open)?;
            form.require("redirect_uri")?;
            if !is_valid_credential(form.require("code")?, None) {
                return Err(responses::invalid_grant("Malformed auth code."));
            }
            let known = registered(accounts, &client, |one| one.refresh_token.as_deref());
            let refresh_token = known.first().map_or("1//simulated", |one| one);
            Ok(TokenGrantResult {
                holder: TokenHolder::Client(client),
                scope: consented_scopes(),
                refresh_token: Some(refresh_token.to_owned()),
            })
        }
        JWT_BEARER => {
            let service = |email: &str| service_account(accounts, email);
            let own_address = form.own_address.as_deref();
            let claims = jwt::check(form.require("assertion")?, service, own_address, now)
                .map_err(|message| responses::invalid_grant(&message))?;
            let is_known = service_account(accounts, &claims.email).is_some();
            let is_good = is_known || (is_open && is_valid_credential(&claims.email, None));
            if !is_good {
                return Err(responses::invalid_grant("Invalid grant: account not found"));
            }
            Ok(TokenGrantResult {
                holder: TokenHolder::Service(claims.email),
                scope: claims.scope,
                refresh_token: None,
            })
        }
        _ => Err(responses::token_error(
            "unsupported_grant_type",
            "Invalid grant_type.",
        )),
    }
}

/// Returns the scopes that simulated users agree to.
fn consented_scopes() -> String {
    format!("{SCOPE} {ADS_SCOPE}")
}

/// Checks the OAuth client's id and secret.
fn client(
    form: &TokenForm<'_>,
    accounts: &Accounts,
    is_open: bool,
) -> Result<String, SimulatedOutcome> {
    let (id, secret) = (form.require("client_id")?, form.require("client_secret")?);
    let is_known = accounts
        .values()
        .any(|one| one.client_id.as_deref() == Some(id));
    let is_taken = is_known || (is_open && is_valid_credential(id, None));
    if !is_taken {
        return Err(responses::invalid_client("The OAuth client was not found."));
    }
    let known = registered(accounts, id, |one| one.client_secret.as_deref());
    if !is_one_of(secret, &known) {
        return Err(responses::invalid_client("Unauthorized"));
    }
    Ok(id.to_owned())
}

/// Returns one credential from each account that is registered for a client.
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
        [] => is_valid_credential(given, None),
        known => known.contains(&given),
    }
}

fn service_account<'a>(accounts: &'a Accounts, email: &str) -> Option<&'a SimulatedServiceAccount> {
    let mut services = accounts
        .values()
        .filter_map(|one| one.service_account.as_ref());
    services.find(|one| one.client_email == email)
}
