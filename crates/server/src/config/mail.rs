//! The mail server's URL.

use super::parse::ParseResult;
use secrecy::SecretString;
use tributary_domain::notice::MailAddress;
use url::Url;
use url::form_urlencoded;

/// How the connection to the mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailEncryption {
    /// TLS from the start.
    Tls,
    /// TLS after the command STARTTLS, which the server must know.
    StartTls,
    /// Not encrypted.
    Plain,
}

/// A mail server, with the login if it needs one.
#[derive(Debug, Clone)]
pub struct MailServer {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Encryption.
    pub encryption: MailEncryption,
    /// User and password.
    pub login: Option<(String, SecretString)>,
}

const EXPECTED: &str = "must be smtps://USER:PASSWORD@HOST (TLS), smtp://USER:PASSWORD@HOST (STARTTLS) \
                        or smtp+plain://HOST (not encrypted), with an optional :PORT and nothing after \
                        it; special characters of user and password are percent-encoded";
const PLAIN_PASSWORD: &str = "must not contain a password with smtp+plain:// unless the host is this \
                              machine (127.0.0.1), because it would not be encrypted; use smtps:// or \
                              smtp://";

impl MailServer {
    /// Parses a URL, or returns what is expected.
    pub fn parse(text: &str) -> ParseResult<Self> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(EXPECTED);
        }
        let url = Url::parse(text).map_err(|_| EXPECTED)?;
        let (encryption, port) = match url.scheme() {
            "smtps" => (MailEncryption::Tls, 465),
            "smtp" => (MailEncryption::StartTls, 587),
            "smtp+plain" => (MailEncryption::Plain, 25),
            _ => return Err(EXPECTED),
        };
        let host = url
            .host_str()
            .filter(|host| is_host(host))
            .ok_or(EXPECTED)?;
        let is_bare =
            matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            ("", Some(_)) | (_, None) => return Err(EXPECTED),
            (user, Some(password)) => Some((decoded(user), SecretString::from(decoded(password)))),
        };
        if !is_bare {
            return Err(EXPECTED);
        }
        let is_this_machine = matches!(host, "127.0.0.1" | "[::1]" | "localhost");
        if encryption == MailEncryption::Plain && login.is_some() && !is_this_machine {
            return Err(PLAIN_PASSWORD);
        }
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(port),
            encryption,
            login,
        })
    }
}

fn is_host(host: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-[]:".contains(&byte);
    !host.is_empty() && host.bytes().all(is_allowed)
}

/// Decodes `%40`. A plus sign means itself, unlike in a form.
fn decoded(text: &str) -> String {
    let form = text.replace('+', "%2B").replace('&', "%26");
    let mut pairs = form_urlencoded::parse(form.as_bytes());
    pairs
        .next()
        .map_or_else(String::new, |(name, _)| name.into_owned())
}

/// Parses the sender's address.
pub(super) fn sender(text: &str) -> ParseResult<MailAddress> {
    MailAddress::parse(text).map_err(|_| "must be an email address, such as reports@example.com")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use secrecy::ExposeSecret as _;

    #[rstest]
    #[case::tls("smtps://me:secret@mail.example.com", Some(("mail.example.com", 465, MailEncryption::Tls, "me:secret")))]
    #[case::start_tls("smtp://me:secret@mail.example.com", Some(("mail.example.com", 587, MailEncryption::StartTls, "me:secret")))]
    #[case::port("smtp://mail.example.com:2525", Some(("mail.example.com", 2525, MailEncryption::StartTls, "")))]
    #[case::plain("smtp+plain://10.0.0.5", Some(("10.0.0.5", 25, MailEncryption::Plain, "")))]
    #[case::plain_here("smtp+plain://me:secret@127.0.0.1:2525", Some(("127.0.0.1", 2525, MailEncryption::Plain, "me:secret")))]
    #[case::encoded("smtps://me%40example.com:a%2Fb+c%26d%3D%25@h.example.com", Some(("h.example.com", 465, MailEncryption::Tls, "me@example.com:a/b+c&d=%")))]
    #[case::v6("smtp://[::1]:25", Some(("::1", 25, MailEncryption::StartTls, "")))]
    #[case::plain_password("smtp+plain://me:secret@10.0.0.5", None)]
    #[case::no_password("smtps://me@mail.example.com", None)]
    #[case::no_user("smtps://:secret@mail.example.com", None)]
    #[case::path("smtps://mail.example.com/inbox", None)]
    #[case::query("smtps://mail.example.com?tls=none", None)]
    #[case::scheme("https://mail.example.com", None)]
    #[case::no_host("smtps://", None)]
    #[case::line_break("smtps://mail.example.com\n", None)]
    #[case::bare("mail.example.com", None)]
    fn parses_mail_servers(
        #[case] url: &str,
        #[case] expected: Option<(&str, u16, MailEncryption, &str)>,
    ) {
        let parsed = MailServer::parse(url).ok();
        let login = |server: &MailServer| {
            let login = server.login.as_ref();
            login.map_or_else(String::new, |(user, password)| {
                format!("{user}:{}", password.expose_secret())
            })
        };
        let found = parsed.map(|server| {
            let login = login(&server);
            (server.host, server.port, server.encryption, login)
        });
        let expected = expected.map(|(host, port, encryption, login)| {
            (host.to_owned(), port, encryption, login.to_owned())
        });
        assert_eq!(found, expected);
    }
}
