//! A name server on a free port that answers queries for TXT records.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;

/// Length of a message's header.
const HEADER_BYTES: usize = 12;
/// Length of a question's type and class.
const QUESTION_TAIL_BYTES: usize = 4;

/// A name server with the records that a test publishes.
#[derive(Debug)]
pub struct TestDns {
    /// Address of the server.
    pub address: SocketAddr,
    records: Arc<Mutex<HashMap<String, String>>>,
    running: tokio::task::JoinHandle<()>,
}

impl TestDns {
    /// Starts a server without records.
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("local address");
        let records = Arc::<Mutex<HashMap<String, String>>>::default();
        let known = records.clone();
        let running = tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
                let query = buffer.get(..length).unwrap_or_default();
                let record = known
                    .lock()
                    .expect("no panic")
                    .get(&name_of(query))
                    .cloned();
                let _sent = socket
                    .send_to(&answer(query, record.as_deref()), peer)
                    .await;
            }
        });
        Self {
            address,
            records,
            running,
        }
    }

    /// Publishes a TXT record and replaces the earlier record of this name. With an empty value, the
    /// server fails to answer.
    pub fn publish(&self, name: &str, value: &str) {
        let mut records = self.records.lock().expect("no panic");
        records.insert(name.to_owned(), value.to_owned());
    }
}

impl Drop for TestDns {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Returns the name in a query.
fn name_of(query: &[u8]) -> String {
    let mut labels = Vec::new();
    let mut rest = query.get(HEADER_BYTES..).unwrap_or_default();
    while let Some((&length, after)) = rest.split_first()
        && let Some((label, after)) = after.split_at_checked(usize::from(length))
        && length > 0
    {
        labels.push(String::from_utf8_lossy(label).into_owned());
        rest = after;
    }
    labels.join(".")
}

/// Builds the response: the record, that the name does not exist, or that the server failed.
fn answer(query: &[u8], record: Option<&str>) -> Vec<u8> {
    let end = HEADER_BYTES + name_of(query).len() + 2 + QUESTION_TAIL_BYTES;
    let mut message = query.get(..end).unwrap_or(query).to_vec();
    let Some(value) = record else {
        message[2..4].copy_from_slice(&[0x81, 0x83]);
        return message;
    };
    if value.is_empty() {
        message[2..4].copy_from_slice(&[0x81, 0x82]);
        return message;
    }
    message[2..4].copy_from_slice(&[0x81, 0x80]);
    message[7] = 1;
    let length = u8::try_from(value.len()).expect("one string");
    message.extend(b"\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x3c\x00");
    message.extend([length + 1, length]);
    message.extend(value.as_bytes());
    message
}
