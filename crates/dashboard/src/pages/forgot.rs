//! `/forgot` — sends a link for a new password by e-mail.
//!
//! The response is the same, and takes as long, whether or not the address has an account.

use crate::access::answer_reset;
use crate::failure::Failure;
use crate::pages::sign_in::with_wait;
use crate::response::app_page;
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use crate::text::too_many_requests_message;
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::person::Email;
use tributary_domain::audit::Client;
use tributary_fields::Form;

/// The form, the confirmation, or the advice to ask the operator.
#[derive(Template)]
#[template(path = "forgot.html")]
struct ForgotPage<'a> {
    email: &'a str,
    fault: Option<String>,
    is_done: bool,
    sends_mail: bool,
}

impl ForgotPage<'_> {
    fn answer(&self, status: StatusCode, handles: &DashboardHandles) -> Response {
        app_page(status, self, handles.own_origin.is_trustworthy())
    }
}

/// Shows the form.
pub(crate) async fn show(State(handles): State<DashboardHandles>) -> Response {
    let form = ForgotPage {
        email: "",
        fault: None,
        is_done: false,
        sends_mail: handles.account_mail.is_some(),
    };
    form.answer(StatusCode::OK, &handles)
}

/// Accepts a request for a new password.
pub(crate) async fn request(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
    client: Option<Extension<Client>>,
    form: Form,
) -> Result<Response, Failure> {
    let typed = form.field("email");
    let page = |fault, is_done| ForgotPage {
        email: &typed,
        fault,
        is_done,
        sends_mail: handles.account_mail.is_some(),
    };
    let Some(mail) = handles.account_mail.clone() else {
        return Ok(page(None, false).answer(StatusCode::NOT_FOUND, &handles));
    };
    let email = match Email::parse(&typed) {
        Ok(email) => email,
        Err(problem) => {
            let form = page(Some(problem.message), false);
            return Ok(form.answer(StatusCode::UNPROCESSABLE_ENTITY, &handles));
        }
    };
    let client = client.map(|Extension(client)| client);
    let address = client.as_ref().map(|client| client.address);
    match mail.admit_reset(&handles, &email, address).await? {
        Ok(slot) => {
            answer_reset(handles.clone(), mail, email, client, slot);
            Ok(page(None, true).answer(StatusCode::OK, &handles))
        }
        Err(wait) => {
            let form = page(Some(too_many_requests_message(wait)), false);
            Ok(with_wait(
                form.answer(StatusCode::TOO_MANY_REQUESTS, &handles),
                wait,
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::SendAccountMail;
    use crate::testing::{FORM, PASSWORD, PageResponse, SAME_ORIGIN, TestDashboard};
    use axum::http::StatusCode;
    use rstest::rstest;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tributary_domain::access::person::Role;
    use tributary_domain::notice::Message;

    const EMAIL: &str = "you@example.com";
    const NEW: &str = "six-lamps-on-the-quiet-pier";

    /// A dashboard whose e-mails are kept.
    struct Mailing {
        dashboard: TestDashboard,
        sent: Arc<Mutex<Vec<(String, Message)>>>,
    }

    impl Mailing {
        async fn start() -> Self {
            let sent = Arc::<Mutex<Vec<_>>>::default();
            let kept = sent.clone();
            let mail: SendAccountMail = Arc::new(move |to, message| {
                kept.lock().unwrap().push((to.as_str().to_owned(), message));
                Box::pin(async { Ok(()) })
            });
            Self {
                dashboard: TestDashboard::with_mail(mail).await,
                sent,
            }
        }

        async fn post(&self, path: &str, body: &str) -> PageResponse {
            self.dashboard.post(path, &[SAME_ORIGIN, FORM], body).await
        }

        async fn account(&self, role: Role) {
            let link = self.dashboard.setup_link(|link| link.role = role).await;
            let body = format!("email={EMAIL}&password={PASSWORD}");
            let created = self.post(&format!("/setup/{link}"), &body).await;
            assert_eq!(created.status, StatusCode::OK);
        }

        async fn ask(&self, email: &str) -> PageResponse {
            self.post("/forgot", &format!("email={email}")).await
        }

        /// Waits for this many e-mails, which are sent after the response.
        async fn mails(&self, count: usize) -> Vec<(String, Message)> {
            let enough = async {
                while self.sent.lock().unwrap().len() < count {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), enough)
                .await
                .expect("the e-mails are sent");
            self.sent.lock().unwrap().clone()
        }
    }

    fn path_of(link: &str) -> String {
        format!("/{}", link.splitn(4, '/').last().unwrap())
    }

    #[tokio::test]
    async fn a_mailed_link_sets_a_new_password_once() {
        let mailing = Mailing::start().await;
        mailing.account(Role::Viewer).await;
        let sign_in = mailing.dashboard.get("/sign-in").await;
        assert!(sign_in.text.contains("href=\"/forgot\""));
        assert_eq!(mailing.ask(EMAIL).await.status, StatusCode::OK);
        let mails = mailing.mails(1).await;
        assert_eq!(mails[0].0, EMAIL);
        let old = format!("email={EMAIL}&password={PASSWORD}");
        let signed_in = mailing.post("/sign-in", &old).await;
        assert_eq!(signed_in.status, StatusCode::SEE_OTHER, "it still works");

        let path = path_of(&mails[0].1.link);
        let body = format!("password={NEW}");
        assert_eq!(mailing.post(&path, &body).await.status, StatusCode::OK);
        let again = mailing.post(&path, &body).await;
        assert_eq!(again.status, StatusCode::NOT_FOUND);
        let refused = mailing.post("/sign-in", &old).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        let cookie = signed_in.header("set-cookie").split(';').next().unwrap();
        let headers = [("cookie", cookie)];
        let account = mailing
            .dashboard
            .send(axum::http::Method::GET, "/account", &headers, "");
        assert_eq!(account.await.status, StatusCode::SEE_OTHER, "signed out");
    }

    #[tokio::test]
    async fn known_and_unknown_addresses_get_the_same_response() {
        let mailing = Mailing::start().await;
        mailing.account(Role::Viewer).await;
        let unknown = "me@example.org";
        let mut answers = Vec::new();
        for email in [unknown, EMAIL] {
            let mut pages = Vec::new();
            for _ in 0..7 {
                let page = mailing.ask(email).await;
                let text = page.text.replace(email, "…");
                pages.push((page.status, text));
            }
            answers.push(pages);
        }
        assert_eq!(answers[0], answers[1]);
        let statuses: Vec<u16> = answers[0]
            .iter()
            .map(|(status, _)| status.as_u16())
            .collect();
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429]);
        let mails = mailing.mails(5).await;
        assert!(mails.iter().all(|(to, _)| to == EMAIL), "{mails:?}");
    }

    #[rstest]
    #[case::member(Role::Viewer, false)]
    #[case::owner(Role::Owner, true)]
    #[tokio::test]
    async fn members_who_must_use_the_provider_get_no_link(
        #[case] role: Role,
        #[case] gets_link: bool,
    ) {
        let mailing = Mailing::start().await;
        mailing.account(role).await;
        let owner = mailing.dashboard.sign_in_as(Role::Owner).await;
        let settings = "issuer=https%3A%2F%2Flogin.example.com&clientId=client&clientSecret=secret\
                        &emailDomains=example.com&defaultRole=viewer";
        let saved = owner.post("/team/single-sign-on", settings).await;
        assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
        mailing.ask(EMAIL).await;
        let mails = mailing.mails(1).await;
        assert_eq!(mails[0].1.link.contains("/reset/"), gets_link, "{mails:?}");
    }

    #[tokio::test]
    async fn an_invalid_address_is_named_and_other_origins_are_refused() {
        let mailing = Mailing::start().await;
        let refused = mailing.ask("you").await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.text.contains("email address"), "{}", refused.text);
        let body = format!("email={EMAIL}");
        let foreign = mailing.dashboard.post("/forgot", &[FORM], &body).await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    }

    #[tokio::test]
    async fn without_a_mail_server_the_operator_helps() {
        let dashboard = TestDashboard::start().await;
        let sign_in = dashboard.get("/sign-in").await;
        assert!(sign_in.text.contains("tributary admin user reset"));
        assert!(!sign_in.text.contains("href=\"/forgot\""));
        let page = dashboard.get("/forgot").await;
        assert!(page.text.contains("tributary admin user reset"));
        let headers = [SAME_ORIGIN, FORM];
        let body = format!("email={EMAIL}");
        let refused = dashboard.post("/forgot", &headers, &body).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn an_invitation_is_mailed_and_shown_once() {
        let mailing = Mailing::start().await;
        let owner = mailing.dashboard.sign_in_as(Role::Owner).await;
        let invited = |email: &str| format!("email={email}&role=viewer");
        let first = owner
            .post("/team/invite", &invited("new@example.com"))
            .await;
        assert_eq!(first.status, StatusCode::OK, "{}", first.text);
        assert!(first.text.contains("It was sent to"), "{}", first.text);
        let mails = mailing.mails(1).await;
        assert_eq!(mails[0].0, "new@example.com");
        assert!(first.text.contains(&mails[0].1.link), "the link is shown");
        for _ in 0..4 {
            owner
                .post("/team/invite", &invited("new@example.com"))
                .await;
        }
        let sixth = owner
            .post("/team/invite", &invited("other@example.com"))
            .await;
        assert!(
            sixth.text.contains("It was not sent by email"),
            "{}",
            sixth.text
        );
        assert!(sixth.text.contains("/setup/setup_"), "the link still works");
        assert_eq!(mailing.mails(5).await.len(), 5);
    }
}
