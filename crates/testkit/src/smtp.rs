//! A mail server on a free port that keeps the messages it gets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpBehavior {
    /// Accepts everything.
    Accepting,
    /// Refuses every login.
    RefusingLogin,
    /// Refuses every recipient for good.
    RefusingRecipients,
    /// Accepts connections and never says anything.
    Hanging,
}

/// A message as the server got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaughtMail {
    /// Envelope sender.
    pub from: String,
    /// Envelope recipients.
    pub to: Vec<String>,
    /// Headers and body, with line feeds only.
    pub data: String,
}

impl CaughtMail {
    /// Returns the value of a header on one line; empty if there is none.
    pub fn header(&self, name: &str) -> String {
        let head = self.data.split("\n\n").next().unwrap_or_default();
        let unfolded = head.replace("\n ", " ");
        let prefix = format!("{}:", name.to_lowercase());
        let found = unfolded
            .lines()
            .find(|line| line.to_lowercase().starts_with(&prefix));
        found.map_or_else(String::new, |line| line[prefix.len()..].trim().to_owned())
    }

    /// Returns the plain text part, decoded.
    pub fn text(&self) -> String {
        self.part("text/plain")
    }

    /// Returns the HTML part, decoded.
    pub fn html(&self) -> String {
        self.part("text/html")
    }

    fn part(&self, kind: &str) -> String {
        let parts = self.data.split("\n--");
        let part = parts.filter(|part| part.contains(&format!("Content-Type: {kind}")));
        let part = part.last().unwrap_or_default();
        let (head, body) = part.split_once("\n\n").unwrap_or_default();
        if head.contains("base64") {
            use base64::Engine as _;
            let compact: String = body.split_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(compact);
            return String::from_utf8_lossy(&bytes.unwrap_or_default()).replace("\r\n", "\n");
        }
        if head.contains("quoted-printable") {
            return unquoted(body);
        }
        body.to_owned()
    }
}

/// Decodes quoted-printable text.
fn unquoted(text: &str) -> String {
    let text = text.replace("=\n", "");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = code.and_then(|two| u8::from_str_radix(two, 16).ok());
        if let (b'=', Some(byte)) = (first, code) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A mail server.
#[derive(Debug)]
pub struct TestSmtp {
    /// Address of the server.
    pub address: SocketAddr,
    caught: Arc<Mutex<Vec<CaughtMail>>>,
    behavior: Arc<Mutex<SmtpBehavior>>,
    running: tokio::task::JoinHandle<()>,
}

impl TestSmtp {
    /// Starts a server.
    pub async fn start(behavior: SmtpBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("local address");
        let caught = Arc::<Mutex<Vec<CaughtMail>>>::default();
        let behavior = Arc::new(Mutex::new(behavior));
        let (store, current) = (caught.clone(), behavior.clone());
        let running = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let behavior = *current.lock().expect("no panic");
                tokio::spawn(serve(stream, behavior, store.clone()));
            }
        });
        Self {
            address,
            caught,
            behavior,
            running,
        }
    }

    /// Changes the behaviour for new connections.
    pub fn behave(&self, behavior: SmtpBehavior) {
        *self.behavior.lock().expect("no panic") = behavior;
    }

    /// Returns the messages so far.
    pub fn caught(&self) -> Vec<CaughtMail> {
        self.caught.lock().expect("no panic").clone()
    }
}

impl Drop for TestSmtp {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn serve(stream: TcpStream, behavior: SmtpBehavior, caught: Arc<Mutex<Vec<CaughtMail>>>) {
    if behavior == SmtpBehavior::Hanging {
        std::future::pending::<()>().await;
    }
    let _closed = converse(stream, behavior, caught).await;
}

async fn converse(
    stream: TcpStream,
    behavior: SmtpBehavior,
    caught: Arc<Mutex<Vec<CaughtMail>>>,
) -> std::io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut lines = BufReader::new(reading).lines();
    writing.write_all(b"220 test ESMTP\r\n").await?;
    let (mut from, mut to) = (String::new(), Vec::new());
    while let Some(line) = lines.next_line().await? {
        let command = line.to_ascii_uppercase();
        let address = || line.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
        let answer = match command.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" => "250-test\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN\r\n",
            "AUTH" if behavior == SmtpBehavior::RefusingLogin => "535 5.7.8 no\r\n",
            "AUTH" => "235 2.7.0 yes\r\n",
            "MAIL" => {
                from = address();
                "250 ok\r\n"
            }
            "RCPT" if behavior == SmtpBehavior::RefusingRecipients => "550 5.1.1 unknown\r\n",
            "RCPT" => {
                to.push(address());
                "250 ok\r\n"
            }
            "DATA" => {
                writing.write_all(b"354 go on\r\n").await?;
                let mut data = String::new();
                while let Some(line) = lines.next_line().await? {
                    if line == "." {
                        break;
                    }
                    data.push_str(line.strip_prefix('.').unwrap_or(&line));
                    data.push('\n');
                }
                let (from, to) = (std::mem::take(&mut from), std::mem::take(&mut to));
                let mail = CaughtMail { from, to, data };
                caught.lock().expect("no panic").push(mail);
                "250 2.0.0 queued\r\n"
            }
            "NOOP" | "RSET" => "250 ok\r\n",
            "QUIT" => {
                writing.write_all(b"221 bye\r\n").await?;
                return Ok(());
            }
            _ => "502 what?\r\n",
        };
        writing.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}
