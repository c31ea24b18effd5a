use super::*;
use crate::config::SyslogTarget;
use crate::{system, testing};
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use tributary_domain::audit::json::without_hash;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_store::contract::fixtures::{SharedStore, app, organization};

/// Streams until nothing is due.
async fn stream<S: AuditSink>(store: &SharedStore, sink: S) {
    let mut worker = AuditStreamWorker::new(store.clone(), system::runtime(), sink);
    while worker.run_once().await.unwrap() == WorkerActivity::More {}
}

/// Returns the sequence numbers of lines, whose hashes must be right.
fn sequences<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let sequence = |line: &str| {
        let (hashed, hash) = without_hash(line).expect("an entry");
        assert_eq!(hex(Digest::of(hashed.as_bytes()).as_bytes()), hash);
        let entry: Value = serde_json::from_str(line).unwrap();
        entry["sequence"].as_u64().unwrap()
    };
    lines.map(sequence).collect()
}

#[tokio::test]
async fn a_file_gets_every_entry_once_over_restarts_and_rotations() {
    let (store, folder) = testing::store().await;
    let path = folder.path().join("audit.ndjson");
    let sink = || FileSink::new(path.clone());
    let read = || sequences(fs::read_to_string(&path).unwrap().lines());
    let caller = organization(&store).await;
    app(&store, &caller).await;
    stream(&store, sink()).await;
    assert_eq!(read(), [1, 2]);
    // The store keeps the position, so another worker continues.
    app(&store, &caller).await;
    stream(&store, sink()).await;
    assert_eq!(read(), [1, 2, 3]);
    fs::rename(&path, folder.path().join("audit.1")).unwrap();
    app(&store, &caller).await;
    stream(&store, sink()).await;
    assert_eq!(read(), [4]);
    // A part of a line that a power cut left does not swallow the next entry.
    let cut = format!("{}{{\"seq", fs::read_to_string(&path).unwrap());
    fs::write(&path, cut).unwrap();
    app(&store, &caller).await;
    stream(&store, sink()).await;
    let text = fs::read_to_string(&path).unwrap();
    let entries = text.lines().filter(|line| line.ends_with('}'));
    assert_eq!(sequences(entries), [4, 5]);
}

#[tokio::test]
async fn entries_wait_while_the_file_cannot_be_written() {
    let (store, folder) = testing::store().await;
    let blocked = folder.path().join("missing/audit.ndjson");
    let caller = organization(&store).await;
    let sink = FileSink::new(blocked.clone());
    let mut worker = AuditStreamWorker::new(store.clone(), system::runtime(), sink.clone());
    assert!(worker.run_once().await.is_err());
    fs::create_dir(folder.path().join("missing")).unwrap();
    app(&store, &caller).await;
    stream(&store, sink).await;
    let text = fs::read_to_string(&blocked).unwrap();
    assert_eq!(sequences(text.lines()), [1, 2]);
}

/// Returns the entry of a syslog message.
fn entry(message: &[u8]) -> &str {
    let text = str::from_utf8(message).unwrap();
    let (header, entry) = text.split_once(" - audit - ").unwrap();
    assert!(header.starts_with("<109>1 "), "{header}");
    entry
}

#[tokio::test]
async fn syslog_gets_every_entry_over_udp() {
    let (store, _folder) = testing::store().await;
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let target = SyslogTarget::Udp(server.local_addr().unwrap().to_string());
    let caller = organization(&store).await;
    app(&store, &caller).await;
    stream(&store, SyslogSink::new(target, system::runtime())).await;
    let mut message = vec![0; 65_536];
    for expected in [1, 2] {
        let length = server.recv(&mut message).unwrap();
        assert_eq!(
            sequences([entry(&message[..length])].into_iter()),
            [expected]
        );
    }
}

#[tokio::test]
async fn syslog_gets_entries_over_a_socket_that_is_back() {
    let (store, folder) = testing::store().await;
    let path = folder.path().join("log");
    let sink = SyslogSink::new(SyslogTarget::Unix(path.clone()), system::runtime());
    organization(&store).await;
    let mut worker = AuditStreamWorker::new(store.clone(), system::runtime(), sink.clone());
    assert!(worker.run_once().await.is_err(), "nothing listens");
    let server = UnixDatagram::bind(&path).unwrap();
    server
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream(&store, sink).await;
    let mut message = vec![0; 65_536];
    let length = server.recv(&mut message).unwrap();
    assert_eq!(sequences([entry(&message[..length])].into_iter()), [1]);
}
