//! Sends e-mail through the operator's mail server. Everything that sends e-mail uses this mailer.
//!
//! A message is sent at least once: if the server stops between sending and recording, the message is
//! sent again with the same Message-ID, by which mail programs recognise the repeat.

use crate::config::{Config, MailEncryption, MailServer};
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use secrecy::ExposeSecret as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tributary_domain::notice::{self, MailAddress, RECIPIENTS_MAX, SUBJECT_CHARS_MAX};

/// Timeout for one message, from connecting to the server's confirmation.
pub const SEND_MAX: Duration = Duration::from_secs(20);
/// Connections to the mail server at a time. Mail servers allow few per client.
const CONNECTIONS_MAX: usize = 4;
/// Maximum size of a message's text and of its HTML, in bytes.
const PART_BYTES_MAX: usize = 256 * 1_024;

/// Codes that refuse a login.
const LOGIN_CODES: [u16; 4] = [530, 534, 535, 538];

/// A message to people.
#[derive(Debug, Clone)]
pub struct Mail {
    /// Recipients. All see each other.
    pub to: Vec<MailAddress>,
    /// One line.
    pub subject: String,
    /// The message as plain text.
    pub text: String,
    /// The message as HTML.
    pub html: String,
    /// Identifies the message. A repeat has the same id.
    pub id: String,
}

/// Why a message was not sent. The texts are shown to people and contain neither addresses nor
/// anything that the mail server wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// No mail server is configured.
    #[error("E-mail is not set up. Ask the operator to set mail.url and mail.from.")]
    NotConfigured,
    /// The mail server cannot be reached.
    #[error("The mail server cannot be reached.")]
    Unreachable,
    /// The mail server did not answer in time.
    #[error("The mail server did not answer in time.")]
    TimedOut,
    /// TLS failed.
    #[error("The connection to the mail server cannot be encrypted.")]
    Tls,
    /// The login was refused.
    #[error("The mail server refused the login (code {0}). Ask the operator to check mail.url.")]
    Login(u16),
    /// The message was refused for now.
    #[error("The mail server does not take the message at the moment (code {0}).")]
    Deferred(u16),
    /// The message was refused.
    #[error("The mail server refused the message (code {0}). Check the recipients.")]
    Refused(u16),
    /// The message cannot be written as an e-mail.
    #[error("The message is too large or has an invalid subject or recipient.")]
    Invalid,
}

impl MailError {
    fn of(error: &lettre::transport::smtp::Error) -> Self {
        match error.status().map(u16::from) {
            Some(code) if LOGIN_CODES.contains(&code) => Self::Login(code),
            Some(code) if error.is_transient() => Self::Deferred(code),
            Some(code) => Self::Refused(code),
            None if error.is_timeout() => Self::TimedOut,
            None if error.is_tls() => Self::Tls,
            None => Self::Unreachable,
        }
    }
}

struct Connection {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    host: String,
    slots: Semaphore,
}

/// Sends e-mail, if a mail server is configured.
#[derive(Clone, Default)]
pub struct Mailer(Option<Arc<Connection>>);

impl Mailer {
    /// Returns whether a mail server is configured.
    pub const fn is_set_up(&self) -> bool {
        self.0.is_some()
    }

    /// Creates the mailer from the settings. Connects only when there is a message.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let (Some(url), Some(from)) = (&config.mail.url, &config.mail.from) else {
            return Ok(Self(None));
        };
        let server = MailServer::parse(url.expose_secret()).map_err(anyhow::Error::msg)?;
        let name = config.configured_base_url().and_then(|url| url.domain());
        let connection = Connection {
            transport: transport(&server, name)?,
            from: Mailbox::new(
                Some("Tributary".to_owned()),
                from.as_str().parse::<Address>()?,
            ),
            host: from.host().to_owned(),
            slots: Semaphore::new(CONNECTIONS_MAX),
        };
        Ok(Self(Some(Arc::new(connection))))
    }

    /// Sends a message to all its recipients, or to none.
    pub async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let connection = self.0.as_ref().ok_or(MailError::NotConfigured)?;
        let message = connection.message(mail).ok_or(MailError::Invalid)?;
        let sending = async {
            // The semaphore is never closed.
            let _slot = connection.slots.acquire().await;
            connection.transport.send(message).await
        };
        let sent = timeout(SEND_MAX, sending).await;
        let sent = sent.map_err(|_elapsed| MailError::TimedOut)?;
        sent.map(drop).map_err(|error| MailError::of(&error))
    }

    /// Sends a message in all its forms.
    pub async fn send_message(
        &self,
        to: Vec<MailAddress>,
        message: &notice::Message,
        id: String,
    ) -> Result<(), MailError> {
        let mail = Mail {
            to,
            subject: message.subject.clone(),
            text: message.text(),
            html: message.html(),
            id,
        };
        self.send(&mail).await
    }

    /// Connects, logs in and sends nothing.
    pub async fn check(&self) -> Result<(), MailError> {
        let connection = self.0.as_ref().ok_or(MailError::NotConfigured)?;
        let tested = timeout(SEND_MAX, connection.transport.test_connection()).await;
        match tested.map_err(|_elapsed| MailError::TimedOut)? {
            Ok(true) => Ok(()),
            Ok(false) => Err(MailError::Unreachable),
            Err(error) => Err(MailError::of(&error)),
        }
    }
}

fn transport(
    server: &MailServer,
    name: Option<&str>,
) -> anyhow::Result<AsyncSmtpTransport<Tokio1Executor>> {
    let parameters = || TlsParameters::new_rustls(server.host.clone());
    let tls = match server.encryption {
        MailEncryption::Tls => Tls::Wrapper(parameters()?),
        MailEncryption::StartTls => Tls::Required(parameters()?),
        MailEncryption::Plain => Tls::None,
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&server.host)
        .port(server.port)
        .tls(tls)
        .timeout(Some(SEND_MAX));
    if let Some(name) = name {
        builder = builder.hello_name(ClientId::Domain(name.to_owned()));
    }
    if let Some((user, password)) = &server.login {
        let password = password.expose_secret().to_owned();
        builder = builder.credentials(Credentials::new(user.clone(), password));
    }
    Ok(builder.build())
}

impl Connection {
    fn message(&self, mail: &Mail) -> Option<Message> {
        let is_line = !mail.subject.chars().any(char::is_control)
            && mail.subject.chars().count() <= SUBJECT_CHARS_MAX;
        let is_id = mail
            .id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let fits = mail.text.len() <= PART_BYTES_MAX && mail.html.len() <= PART_BYTES_MAX;
        if !is_line || !is_id || !fits || !(1..=RECIPIENTS_MAX).contains(&mail.to.len()) {
            return None;
        }
        let mut builder = Message::builder()
            .from(self.from.clone())
            .subject(mail.subject.clone())
            .message_id(Some(format!("<{}@{}>", mail.id, self.host)));
        for address in &mail.to {
            builder = builder.to(Mailbox::new(None, address.as_str().parse().ok()?));
        }
        let part = |kind, body: &str| SinglePart::builder().header(kind).body(body.to_owned());
        let parts = MultiPart::alternative()
            .singlepart(part(ContentType::TEXT_PLAIN, &mail.text))
            .singlepart(part(ContentType::TEXT_HTML, &mail.html));
        builder.multipart(parts).ok()
    }
}
