//! `/team` — the people of the organization, their roles, and invitations by link.

use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::person::{
    Email, Role, SETUP_LINK_LIFETIME, SetupLink, User, setup_url,
};
use tributary_domain::access::{AppsRead, Environment, MembersWrite};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::{Digest, from_hex, hex};
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::UserId;
use tributary_store::{Invitation, NewSetupLink};

#[derive(Template)]
#[template(path = "team.html")]
struct TeamPage {
    shell: Shell,
    me: UserId,
    members: Vec<User>,
    invitations: Vec<InvitationRow>,
    form: FormState,
    /// A link that was just made: it is shown this once.
    new_link: Option<String>,
}

struct InvitationRow {
    id: String,
    email: String,
    role: &'static str,
    ends: String,
    is_over: bool,
}

const ROLES: [(Role, &str); 4] = [
    (Role::Owner, "Everything, members included."),
    (Role::Admin, "Everything but members."),
    (Role::Analyst, "Sees everything, changes nothing."),
    (Role::Viewer, "Sees reports, events and devices."),
];

impl TeamPage {
    async fn load<S>(
        handles: &DashboardHandles,
        reader: &PageContext<S>,
        form: FormState,
        new_link: Option<String>,
    ) -> Result<Self, Failure> {
        let visitor = &reader.session;
        let caller = visitor.authorize::<AppsRead>(Environment::Live)?;
        let members = handles.store.members(&caller).await?;
        let shell = reader.shell(Section::Team);
        let invitations = if shell.manages_members {
            let owner = visitor.authorize::<MembersWrite>(Environment::Live)?;
            handles.store.invitations(&owner).await?
        } else {
            Vec::new()
        };
        let now = handles.source.now();
        let row = |invitation: Invitation| InvitationRow {
            id: hex(invitation.digest.as_bytes()),
            email: invitation
                .link
                .email
                .as_ref()
                .map_or("anybody", Email::as_str)
                .to_owned(),
            role: invitation.link.role.as_str(),
            ends: text::moment_utc(invitation.link.expires_at),
            is_over: !invitation.link.is_valid(now),
        };
        Ok(Self {
            shell,
            me: visitor.user.id,
            members,
            invitations: invitations.into_iter().map(row).collect(),
            form,
            new_link,
        })
    }

    fn roles(&self) -> [(Role, &'static str); 4] {
        ROLES
    }
}

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = TeamPage::load(&handles, &reader, FormState::default(), None).await?;
    Ok(reader.page(&page))
}

fn role(text: &str) -> Result<Role, Problem> {
    Role::parse(text).ok_or_else(|| {
        let message = "Must be one of owner, admin, analyst, viewer.";
        Problem::new(FaultCode::UnknownValue, message)
    })
}

/// `POST /team/invite` — makes a link for somebody, and shows it once.
pub(crate) async fn invite(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let mut faults = Faults::new();
    let email = faults.check("email", Email::parse(&posted.form.field("email")));
    let role = faults.check("role", role(&posted.form.field("role")));
    if let Some(email) = &email
        && handles.store.user_by_email(email).await?.is_some()
    {
        let problem = Problem::new(FaultCode::NotAllowed, Refusal::EmailTaken.to_string());
        faults.add("email", problem);
    }
    let (Some(email), Some(role), true) = (email, role, faults.is_empty()) else {
        let form = FormState::from_form(&posted.form).with_faults(faults);
        let page = TeamPage::load(&handles, &posted.context, form, None).await?;
        return Ok(posted.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let token = handles.source.new_key(KeyKind::Setup, Environment::Live);
    let link = NewSetupLink {
        link: SetupLink {
            organization: posted.authorized.organization(),
            role,
            email: Some(email),
            expires_at: handles.source.now().plus(SETUP_LINK_LIFETIME),
            used_at: None,
        },
        digest: token.digest(),
    };
    let origin = posted.origin(&handles);
    handles.store.create_setup_link(link, origin).await?;
    let shown = Some(setup_url(&handles.base_url, &token));
    let page = TeamPage::load(&handles, &posted.context, FormState::default(), shown).await?;
    Ok(posted.page(&page))
}

/// `POST /team/invitations/{invitation}/withdraw` — makes an invitation useless.
pub(crate) async fn withdraw(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let bytes =
        from_hex(posted.path_parameter("invitation")).and_then(|bytes| bytes.try_into().ok());
    let digest = Digest::from_bytes(bytes.ok_or(Failure::NotFound)?);
    let origin = posted.origin(&handles);
    let withdrawn = handles
        .store
        .withdraw_invitation(&posted.authorized, digest, origin);
    withdrawn.await?;
    Ok(see_other("/team?notice=revoked"))
}

fn member<S>(posted: &FormSubmission<S>) -> Result<UserId, Failure> {
    UserId::parse(posted.path_parameter("member")).map_err(|_| Failure::NotFound)
}

/// `POST /team/{member}/role` — gives a member another role.
pub(crate) async fn change_role(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let role = role(&posted.form.field("role")).map_err(|_| Failure::NotFound)?;
    let (member, origin) = (member(&posted)?, posted.origin(&handles));
    let changed = handles
        .store
        .change_member_role(&posted.authorized, member, role, origin);
    changed.await?;
    Ok(see_other("/team?notice=saved"))
}

/// `POST /team/{member}/remove` — ends an account.
pub(crate) async fn remove(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let (member, origin) = (member(&posted)?, posted.origin(&handles));
    let removed = handles
        .store
        .remove_member(&posted.authorized, member, origin);
    removed.await?;
    Ok(see_other("/team?notice=removed"))
}
