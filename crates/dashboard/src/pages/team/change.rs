//! Changes to a member, which first list the keys that the member loses.

use super::role;
use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::pages::keys::{KeyLine, KeyNames};
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeSet;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::key_management::is_lost;
use tributary_domain::access::person::{Role, User};
use tributary_domain::access::{AppsRead, Environment, MembersWrite};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{KeyId, UserId};
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_store::KeyFilter;

/// Form field of a change whose keys the user has seen.
const CONFIRMED: &str = "confirmed";
/// Prefix of the checkboxes for the keys that the user takes over.
const TAKE_OVER: &str = "take.";

#[derive(Template)]
#[template(path = "member_change.html")]
struct MemberChangePage {
    shell: Shell,
    email: String,
    member: UserId,
    /// The new role; `None` if the member is removed.
    role: Option<Role>,
    keys: Vec<KeyLine>,
    /// Whether the user can take over keys: not from themselves.
    takes_over: bool,
    /// Number of valid keys without a known owner, which the member may know.
    unknown: usize,
}

/// A change to a member: the new role, or the removal.
struct MemberChange {
    member: User,
    members: Vec<User>,
    role: Option<Role>,
    lost: Vec<ApiKey>,
    unknown: usize,
}

impl MemberChange {
    async fn load(
        handles: &DashboardHandles,
        submission: &FormSubmission<MembersWrite>,
        role: Option<Role>,
    ) -> Result<Self, Failure> {
        let id = UserId::parse(submission.path_parameter("member"));
        let id = id.map_err(|_| Failure::NotFound)?;
        let reader = submission
            .session
            .authorize::<AppsRead>(Environment::Live)?;
        let members = handles.store.members(&reader).await?;
        let member = members.iter().find(|one| one.id == id).cloned();
        let member = member.ok_or(Failure::Refused(Refusal::MemberNotFound))?;
        let now = handles.runtime.now();
        let filter = KeyFilter {
            valid_at: Some(now),
            owner: None,
        };
        // One page holds all valid keys of an organization.
        let page = PageRequest {
            limit: Limit::MAX,
            before: None,
        };
        let keys = handles.store.key_page(&reader, filter, page).await?.items;
        let is_unknown = |key: &&ApiKey| key.owner.is_none() && key.created_by.is_none();
        Ok(Self {
            unknown: keys.iter().filter(is_unknown).count(),
            lost: keys
                .into_iter()
                .filter(|key| is_lost(key, id, role, now))
                .collect(),
            member,
            members,
            role,
        })
    }

    fn confirmation(
        self,
        handles: &DashboardHandles,
        submission: &FormSubmission<MembersWrite>,
    ) -> Response {
        let names = KeyNames {
            members: &self.members,
            apps: submission.apps(),
            me: submission.session.user.id,
            now: handles.runtime.now(),
        };
        let page = MemberChangePage {
            shell: submission.shell(Section::Team),
            email: self.member.email.as_str().to_owned(),
            member: self.member.id,
            role: self.role,
            keys: self.lost.into_iter().map(|key| names.line(key)).collect(),
            takes_over: self.member.id != submission.session.user.id,
            unknown: self.unknown,
        };
        submission.page(&page)
    }
}

/// Returns the keys that the user ticked.
fn ticked(submission: &FormSubmission<MembersWrite>) -> BTreeSet<KeyId> {
    let fields = submission.form.fields();
    let ids = fields.filter_map(|(name, _)| name.strip_prefix(TAKE_OVER));
    ids.filter_map(|id| KeyId::parse(id).ok()).collect()
}

/// `POST /team/{member}/role` — changes a member's role. If the member loses keys, the first answer
/// lists them.
pub(crate) async fn change_role(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let role = role(&submission.form.field("role")).map_err(|_| Failure::NotFound)?;
    let change = MemberChange::load(&handles, &submission, Some(role)).await?;
    if !change.lost.is_empty() && !submission.form.is_checked(CONFIRMED) {
        return Ok(change.confirmation(&handles, &submission));
    }
    let (member, origin) = (change.member.id, submission.origin(&handles));
    let (caller, keys) = (&submission.authorized, ticked(&submission));
    let changed = handles
        .store
        .change_member_role(caller, member, role, keys, origin);
    changed.await?;
    Ok(see_other("/team?notice=saved"))
}

/// `POST /team/{member}/remove` — lists the member's keys; once confirmed, deletes the account.
pub(crate) async fn remove(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let change = MemberChange::load(&handles, &submission, None).await?;
    if !submission.form.is_checked(CONFIRMED) {
        return Ok(change.confirmation(&handles, &submission));
    }
    let (member, origin) = (change.member.id, submission.origin(&handles));
    let (caller, keys) = (&submission.authorized, ticked(&submission));
    let removed = handles.store.remove_member(caller, member, keys, origin);
    removed.await?;
    Ok(see_other("/team?notice=removed"))
}

/// `POST /team/{member}/sessions` — signs a member out everywhere.
pub(crate) async fn end_sessions(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let member = UserId::parse(submission.path_parameter("member"));
    let member = member.map_err(|_| Failure::NotFound)?;
    let origin = submission.origin(&handles);
    let caller = &submission.authorized;
    let ended = handles.store.end_member_sessions(caller, member, origin);
    ended.await?;
    Ok(see_other("/team?notice=sessions"))
}
