//! `/team` — members, roles and invitations.

mod change;
#[cfg(test)]
mod tests;

pub(crate) use change::{change_role, end_sessions, remove};

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
use std::collections::BTreeSet;
use tributary_domain::access::factor::FactorState;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::letter::{InvitationFacts, invitation_letter};
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
    /// Members with a second factor; empty for those who do not manage members.
    with_factor: BTreeSet<UserId>,
    factors: FactorState,
    invitations: Vec<InvitationRow>,
    form: FormState,
    /// A new invitation link, shown once.
    new_link: Option<NewLink>,
}

/// A new invitation link.
struct NewLink {
    url: String,
    email: String,
    /// Whether it was sent by e-mail, or why not; `None` if e-mail is not set up.
    mailed: Option<Result<(), String>>,
}

struct InvitationRow {
    id: String,
    email: String,
    role: &'static str,
    ends: String,
    is_over: bool,
}

const ROLES: [(Role, &str); 4] = [
    (
        Role::Owner,
        "Can do everything, including managing members.",
    ),
    (Role::Admin, "Can change everything except members."),
    (Role::Analyst, "Can view everything."),
    (
        Role::Viewer,
        "Can view an app's figures, reports and events.",
    ),
];

impl TeamPage {
    async fn load<S>(
        handles: &DashboardHandles,
        context: &PageContext<S>,
        form: FormState,
        new_link: Option<NewLink>,
    ) -> Result<Self, Failure> {
        let session = &context.session;
        let caller = session.authorize::<AppsRead>(Environment::Live)?;
        let members = handles.store.members(&caller).await?;
        let shell = context.shell(Section::Team);
        let (invitations, with_factor) = if shell.manages_members {
            let owner = session.authorize::<MembersWrite>(Environment::Live)?;
            let with_factor = handles.store.members_with_factors(&owner).await?;
            (handles.store.invitations(&owner).await?, with_factor)
        } else {
            (Vec::new(), BTreeSet::new())
        };
        let now = handles.runtime.now();
        let row = |invitation: Invitation| InvitationRow {
            id: hex(invitation.digest.as_bytes()),
            email: invitation
                .link
                .email
                .as_ref()
                .map_or("anyone with the link", Email::as_str)
                .to_owned(),
            role: invitation.link.role.as_str(),
            ends: text::moment_utc(invitation.link.expires_at),
            is_over: !invitation.link.is_valid(now),
        };
        Ok(Self {
            shell,
            me: session.user.id,
            members,
            with_factor,
            factors: session.factors,
            invitations: invitations.into_iter().map(row).collect(),
            form,
            new_link,
        })
    }

    fn roles(&self) -> [(Role, &'static str); 4] {
        ROLES
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = TeamPage::load(&handles, &context, FormState::default(), None).await?;
    Ok(context.page(&page))
}

fn role(text: &str) -> Result<Role, Problem> {
    Role::parse(text).ok_or_else(|| {
        let message = "Must be one of owner, admin, analyst, viewer.";
        Problem::new(FaultCode::UnknownValue, message)
    })
}

/// `POST /team/invite` — creates an invitation link, shows it once, and sends it by e-mail.
pub(crate) async fn invite(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let mut faults = Faults::new();
    let email = faults.check("email", Email::parse(&submission.form.field("email")));
    let role = faults.check("role", role(&submission.form.field("role")));
    // Only members count. Whether the address has an account elsewhere is not the inviter's business.
    let reader = submission
        .session
        .authorize::<AppsRead>(Environment::Live)?;
    let members = handles.store.members(&reader).await?;
    if members
        .iter()
        .any(|member| Some(&member.email) == email.as_ref())
    {
        let problem = Problem::new(FaultCode::NotAllowed, Refusal::EmailTaken.to_string());
        faults.add("email", problem);
    }
    let (Some(email), Some(role), true) = (email, role, faults.is_empty()) else {
        let form = FormState::from_form(&submission.form).with_faults(faults);
        let page = TeamPage::load(&handles, &submission.context, form, None).await?;
        return Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let token = handles.runtime.new_key(KeyKind::Setup, Environment::Live);
    let link = NewSetupLink {
        link: SetupLink {
            organization: submission.authorized.organization(),
            role,
            email: Some(email.clone()),
            expires_at: handles.runtime.now().plus(SETUP_LINK_LIFETIME),
            used_at: None,
            created_by: None,
        },
        digest: token.digest(),
    };
    let origin = submission.origin(&handles);
    handles.store.create_setup_link(link, origin).await?;
    let url = setup_url(&handles.base_url, &token);
    let mailed = send_invitation(&handles, &submission, (&email, role), &url).await?;
    let shown = NewLink {
        url,
        email: email.as_str().to_owned(),
        mailed,
    };
    let form = FormState::default();
    let page = TeamPage::load(&handles, &submission.context, form, Some(shown)).await?;
    Ok(submission.page(&page))
}

/// Sends an invitation by e-mail, if e-mail is set up. The error says why it was not sent.
async fn send_invitation(
    handles: &DashboardHandles,
    submission: &FormSubmission<MembersWrite>,
    (email, role): (&Email, Role),
    link: &str,
) -> Result<Option<Result<(), String>>, Failure> {
    let Some(mail) = &handles.account_mail else {
        return Ok(None);
    };
    let session = &submission.session;
    let letter = invitation_letter(&InvitationFacts {
        organization: &session.organization.name,
        inviter: &session.user.email,
        role,
        link,
    });
    let sent = mail.invite(handles, session.organization.id, email, letter);
    Ok(Some(sent.await?))
}

/// `POST /team/second-factor` — requires a second factor of all members, or no longer.
pub(crate) async fn require_second_factor(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let (owner, origin) = (submission.session.user.id, submission.origin(&handles));
    let is_required = submission.form.is_checked("required");
    let caller = &submission.authorized;
    let changed = handles
        .store
        .require_second_factor(caller, owner, is_required, origin);
    changed.await?;
    Ok(see_other("/team?notice=saved"))
}

/// `POST /team/invitations/{invitation}/withdraw` — revokes an invitation.
pub(crate) async fn withdraw(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let bytes =
        from_hex(submission.path_parameter("invitation")).and_then(|bytes| bytes.try_into().ok());
    let digest = Digest::from_bytes(bytes.ok_or(Failure::NotFound)?);
    let origin = submission.origin(&handles);
    let withdrawn = handles
        .store
        .withdraw_invitation(&submission.authorized, digest, origin);
    withdrawn.await?;
    Ok(see_other("/team?notice=revoked"))
}
