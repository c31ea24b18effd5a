//! Changes to a member, which first list the keys, notices and invitations that the member loses.

use super::role;
use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::pages::keys::{KeyLine, KeyNames};
use crate::pages::notices::list::receiver;
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
use tributary_domain::notice::Notice;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{KeyId, NoticeId, UserId};
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_store::{Invitation, KeyFilter, TakeOver};

/// Form field of a change whose keys the user has seen.
const CONFIRMED: &str = "confirmed";
/// Prefix of the checkboxes for the keys that the user takes over.
const TAKE_OVER: &str = "take.";
/// Prefix of the checkboxes for the notices that the user keeps.
const KEEP: &str = "keep.";

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
    notices: Vec<NoticeLine>,
    /// Number of notices without a known owner that send messages.
    unknown_notices: usize,
    invitations: Vec<InvitationLine>,
}

/// A notice that a removal pauses.
struct NoticeLine {
    id: NoticeId,
    name: String,
    app: String,
    to: String,
}

/// An invitation that the change withdraws.
struct InvitationLine {
    email: String,
    role: &'static str,
}

/// A change to a member: the new role, or the removal.
struct MemberChange {
    member: User,
    members: Vec<User>,
    role: Option<Role>,
    lost: Vec<ApiKey>,
    unknown: usize,
    notices: Vec<Notice>,
    unknown_notices: usize,
    invitations: Vec<Invitation>,
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
        let caller = &submission.authorized;
        let mut invitations = handles.store.invitations(caller).await?;
        invitations.retain(|one| one.link.is_valid(now) && one.link.is_lost(&member, role));
        let (notices, unknown_notices) = if role.is_none() {
            let unknown = handles.store.active_notices(caller, None).await?;
            let owned = handles.store.active_notices(caller, Some(id)).await?;
            (owned, unknown.len())
        } else {
            (Vec::new(), 0)
        };
        let is_unknown = |key: &&ApiKey| key.owner.is_none() && key.created_by.is_none();
        Ok(Self {
            unknown: keys.iter().filter(is_unknown).count(),
            lost: keys
                .into_iter()
                .filter(|key| is_lost(key, id, role, now))
                .collect(),
            notices,
            unknown_notices,
            invitations,
            member,
            members,
            role,
        })
    }

    /// Returns whether a changed role costs the member something that a page lists first.
    fn needs_confirmation(&self) -> bool {
        !(self.lost.is_empty() && self.invitations.is_empty())
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
        let apps = submission.apps();
        let notice = |notice: &Notice| NoticeLine {
            id: notice.id,
            name: notice.settings.name.as_str().to_owned(),
            app: apps.iter().find(|app| app.id == notice.app).map_or_else(
                || notice.app.to_string(),
                |app| app.name.as_str().to_owned(),
            ),
            to: receiver(notice),
        };
        let invitation = |one: &Invitation| InvitationLine {
            email: one
                .link
                .email
                .as_ref()
                .map_or_else(String::new, |email| email.as_str().to_owned()),
            role: one.link.role.as_str(),
        };
        let page = MemberChangePage {
            shell: submission.shell(Section::Team),
            email: self.member.email.as_str().to_owned(),
            member: self.member.id,
            role: self.role,
            keys: self.lost.into_iter().map(|key| names.line(key)).collect(),
            takes_over: self.member.id != submission.session.user.id,
            unknown: self.unknown,
            notices: self.notices.iter().map(notice).collect(),
            unknown_notices: self.unknown_notices,
            invitations: self.invitations.iter().map(invitation).collect(),
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

/// Returns the notices that the user ticked.
fn kept_notices(submission: &FormSubmission<MembersWrite>) -> BTreeSet<NoticeId> {
    let fields = submission.form.fields();
    let ids = fields.filter_map(|(name, _)| name.strip_prefix(KEEP));
    ids.filter_map(|id| NoticeId::parse(id).ok()).collect()
}

/// `POST /team/{member}/role` — changes a member's role. If the member loses keys or invitations, the
/// first answer lists them.
pub(crate) async fn change_role(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let role = role(&submission.form.field("role")).map_err(|_| Failure::NotFound)?;
    let change = MemberChange::load(&handles, &submission, Some(role)).await?;
    if change.needs_confirmation() && !submission.form.is_checked(CONFIRMED) {
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

/// `POST /team/{member}/remove` — lists what the member loses; once confirmed, deletes the account.
pub(crate) async fn remove(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let change = MemberChange::load(&handles, &submission, None).await?;
    if !submission.form.is_checked(CONFIRMED) {
        return Ok(change.confirmation(&handles, &submission));
    }
    let (member, origin) = (change.member.id, submission.origin(&handles));
    let (caller, take_over) = (
        &submission.authorized,
        TakeOver {
            keys: ticked(&submission),
            notices: kept_notices(&submission),
        },
    );
    let removed = handles
        .store
        .remove_member(caller, member, take_over, origin);
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
