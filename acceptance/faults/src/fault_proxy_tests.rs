//! The fault proxy of the testkit: each fault reaches the connection as described, and is counted.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tributary_testkit::fault_proxy::{
    Cut, CutKind, CutMoment, CutPoint, FaultProxy, Flow, FlowDirection,
};

/// Longer than a connection on this machine needs, and short enough to wait for in a test.
const SILENCE: Duration = Duration::from_millis(200);
/// How long a test waits for what takes milliseconds.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Answers each read with the same bytes and keeps what it received.
struct Echo {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<u8>>>::default();
        let kept = received.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(echo(stream, kept.clone()));
            }
        });
        Self { address, received }
    }

    fn received(&self) -> Vec<u8> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until this many bytes were received.
    async fn wait_for(&self, count: usize) {
        let begun = Instant::now();
        while self.received().len() < count {
            assert!(begun.elapsed() < WAIT_MAX, "{:?}", self.received());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn echo(mut stream: TcpStream, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        kept.lock().unwrap().extend_from_slice(&buffer[..count]);
        if stream.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

async fn proxied() -> (Echo, FaultProxy) {
    let echo = Echo::start().await;
    let proxy = FaultProxy::start(echo.address, 7).await;
    (echo, proxy)
}

async fn client(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

/// Sends bytes and reads as many back.
async fn round_trip(client: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    client.write_all(bytes).await?;
    let mut answer = vec![0; bytes.len()];
    client.read_exact(&mut answer).await?;
    assert_eq!(answer, bytes);
    Ok(())
}

/// Reads until the end, and returns the bytes and how it came.
async fn read_to_end(client: &mut TcpStream) -> (Vec<u8>, std::io::Result<()>) {
    let mut bytes = Vec::new();
    let read = client.read_to_end(&mut bytes);
    let ended = tokio::time::timeout(WAIT_MAX, read).await.expect("an end");
    (bytes, ended.map(|_| ()))
}

fn is_reset(ended: &std::io::Result<()>) -> bool {
    ended
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

fn cut(point: CutPoint, moment: CutMoment, kind: CutKind) -> Cut {
    Cut {
        direction: FlowDirection::ToTarget,
        point,
        moment,
        kind,
        one_in: 1,
        times: 1,
    }
}

#[tokio::test]
async fn forwards_everything_and_the_ends_of_both_directions() {
    let (echo, proxy) = proxied().await;
    let mut client = client(&proxy).await;
    let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let (mut reading, mut writing) = client.split();
    let mut answer = Vec::new();
    let write = async {
        writing.write_all(&sent).await.unwrap();
        writing.shutdown().await.unwrap();
    };
    let (read, ()) = tokio::join!(reading.read_to_end(&mut answer), write);
    read.unwrap();
    assert!(answer == sent && echo.received() == sent);
    let counts = proxy.counts();
    assert_eq!(
        (counts.to_target_bytes, counts.to_client_bytes),
        (100_000, 100_000)
    );
    assert_eq!((counts.connections, counts.cuts, counts.resets), (1, 0, 0));
}

#[tokio::test]
async fn an_answer_is_dropped_after_the_target_has_acted() {
    let (echo, proxy) = proxied().await;
    let mut one = client(&proxy).await;
    round_trip(&mut one, b"begin").await.unwrap();
    proxy.arm(Cut::answers_to(b"commit\0", 1));
    one.write_all(b"commit\0").await.unwrap();
    let (answer, ended) = read_to_end(&mut one).await;
    assert!(
        answer.is_empty() && is_reset(&ended),
        "{answer:?} {ended:?}"
    );
    assert_eq!(echo.received(), b"begincommit\0");
    assert_eq!(proxy.counts().cuts, 1);
    let mut other = client(&proxy).await;
    round_trip(&mut other, b"commit\0").await.unwrap();
    assert_eq!(proxy.counts().cuts, 1, "the cut was for one commit");
}

#[tokio::test]
async fn a_cut_before_a_pattern_withholds_it_even_if_it_comes_in_pieces() {
    let (echo, proxy) = proxied().await;
    let pattern = CutPoint::Pattern(b"commit\0".to_vec());
    proxy.arm(cut(pattern, CutMoment::Before, CutKind::Close));
    let mut client = client(&proxy).await;
    client.set_nodelay(true).unwrap();
    round_trip(&mut client, b"commi commi").await.unwrap();
    client.write_all(b"t\0").await.unwrap();
    let (answer, ended) = read_to_end(&mut client).await;
    assert!(answer.is_empty() && ended.is_ok(), "{answer:?} {ended:?}");
    assert_eq!(echo.received(), b"commi commi");
    assert_eq!(proxy.counts().cuts, 1);
}

#[tokio::test]
async fn a_cut_after_a_pattern_forwards_nothing_beyond_it() {
    let (echo, proxy) = proxied().await;
    let pattern = CutPoint::Pattern(b"end".to_vec());
    proxy.arm(cut(pattern, CutMoment::After, CutKind::Close));
    let mut client = client(&proxy).await;
    client.write_all(b"the end and more").await.unwrap();
    read_to_end(&mut client).await.1.unwrap();
    echo.wait_for(7).await;
    assert_eq!(echo.received(), b"the end");
}

#[tokio::test]
async fn a_cut_at_a_byte_forwards_exactly_the_bytes_before_it() {
    let (echo, proxy) = proxied().await;
    let mut client = client(&proxy).await;
    round_trip(&mut client, b"12345").await.unwrap();
    proxy.arm(cut(CutPoint::Byte(6), CutMoment::After, CutKind::Close));
    round_trip(&mut client, b"abcd").await.unwrap();
    client.write_all(b"efgh").await.unwrap();
    read_to_end(&mut client).await.1.unwrap();
    echo.wait_for(11).await;
    assert_eq!(echo.received(), b"12345abcdef", "counted from the arming");
}

#[tokio::test]
async fn a_seed_repeats_the_random_bytes() {
    let mut received = Vec::new();
    for _ in 0..2 {
        let (echo, proxy) = proxied().await;
        let random = CutPoint::RandomByte(10_000);
        proxy.arm(cut(random, CutMoment::After, CutKind::Close));
        let mut client = client(&proxy).await;
        let mut sent = 0;
        while sent < 10_000 && round_trip(&mut client, &[1; 100]).await.is_ok() {
            sent += 100;
        }
        assert_eq!(proxy.counts().cuts, 1);
        let forwarded = usize::try_from(proxy.counts().to_target_bytes).unwrap();
        echo.wait_for(forwarded).await;
        received.push(echo.received().len());
    }
    assert_eq!(received[0], received[1]);
}

#[tokio::test]
async fn a_half_close_ends_one_direction_only() {
    let (echo, proxy) = proxied().await;
    proxy.arm(Cut {
        direction: FlowDirection::ToClient,
        ..cut(CutPoint::Byte(2), CutMoment::After, CutKind::HalfClose)
    });
    let mut client = client(&proxy).await;
    client.write_all(b"one").await.unwrap();
    let (answer, ended) = read_to_end(&mut client).await;
    assert!(answer == b"on" && ended.is_ok(), "{answer:?} {ended:?}");
    client.write_all(b"two").await.unwrap();
    echo.wait_for(6).await;
    assert_eq!(echo.received(), b"onetwo");
}

#[tokio::test]
async fn only_some_matches_are_cut() {
    let (_echo, proxy) = proxied().await;
    proxy.arm(Cut {
        one_in: 4,
        ..Cut::answers_to(b"x", u32::MAX)
    });
    let mut cuts = 0;
    for _ in 0..100 {
        let mut client = client(&proxy).await;
        cuts += u64::from(round_trip(&mut client, b"x").await.is_err());
    }
    assert_eq!(cuts, proxy.counts().cuts);
    assert!((10..=40).contains(&cuts), "{cuts}");
    proxy.disarm();
    let mut client = client(&proxy).await;
    for _ in 0..100 {
        round_trip(&mut client, b"x").await.unwrap();
    }
}

#[tokio::test]
async fn one_byte_pieces_are_written_one_by_one() {
    let (_echo, proxy) = proxied().await;
    let flow = Flow {
        piece_bytes: 1,
        ..Flow::default()
    };
    proxy.set_flow(FlowDirection::ToClient, flow);
    let mut client = client(&proxy).await;
    client.write_all(&[3; 1_000]).await.unwrap();
    let mut answer = [0; 1_000];
    client.read_exact(&mut answer).await.unwrap();
    assert!(proxy.counts().pieces > 1_000, "{:?}", proxy.counts());
    assert_eq!(answer, [3; 1_000]);
}

#[tokio::test]
async fn a_stall_holds_one_direction_back_until_it_ends() {
    let (echo, proxy) = proxied().await;
    let mut client = client(&proxy).await;
    round_trip(&mut client, b"before").await.unwrap();
    let flow = Flow {
        is_stalled: true,
        ..Flow::default()
    };
    proxy.set_flow(FlowDirection::ToClient, flow);
    client.write_all(b"during").await.unwrap();
    echo.wait_for(12).await;
    let mut answer = [0; 6];
    let silent = tokio::time::timeout(SILENCE, client.read_exact(&mut answer)).await;
    assert!(silent.is_err(), "{answer:?}");
    assert_eq!(proxy.counts().stalls, 1);
    proxy.heal();
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"during");
}

#[tokio::test]
async fn delay_jitter_and_rate_slow_a_connection_down() {
    let (_echo, proxy) = proxied().await;
    let mut client = client(&proxy).await;
    let slow = [
        Flow {
            delay: SILENCE,
            ..Flow::default()
        },
        Flow {
            bytes_per_second: 500,
            ..Flow::default()
        },
    ];
    for flow in slow {
        proxy.set_flow(FlowDirection::ToTarget, flow);
        let begun = Instant::now();
        round_trip(&mut client, &[1; 100]).await.unwrap();
        assert!(begun.elapsed() >= SILENCE, "{flow:?} {:?}", begun.elapsed());
    }
    let jittery = Flow {
        jitter: Duration::from_millis(20),
        ..Flow::default()
    };
    proxy.set_flow(FlowDirection::ToTarget, jittery);
    let begun = Instant::now();
    for _ in 0..50 {
        round_trip(&mut client, b"x").await.unwrap();
    }
    // 50 times 10 ms on average.
    assert!(begun.elapsed() > SILENCE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn refuses_new_connections_and_keeps_open_ones() {
    let (_echo, proxy) = proxied().await;
    let mut open = client(&proxy).await;
    round_trip(&mut open, b"x").await.unwrap();
    proxy.refuse(true);
    let mut refused = client(&proxy).await;
    assert!(is_reset(&read_to_end(&mut refused).await.1));
    round_trip(&mut open, b"x").await.unwrap();
    proxy.heal();
    round_trip(&mut client(&proxy).await, b"x").await.unwrap();
    let counts = proxy.counts();
    assert_eq!((counts.refused, counts.connections), (1, 2));
}

#[tokio::test]
async fn resets_some_or_all_open_connections() {
    let (_echo, proxy) = proxied().await;
    let mut clients = Vec::new();
    for _ in 0..40 {
        let mut client = client(&proxy).await;
        round_trip(&mut client, b"x").await.unwrap();
        clients.push(client);
    }
    let some = proxy.reset_open(2);
    assert!((5..=35).contains(&some), "{some}");
    assert_eq!(proxy.reset_open(1), 40 - some);
    for mut client in clients {
        assert!(is_reset(&read_to_end(&mut client).await.1));
    }
    assert_eq!(proxy.counts().resets, 40);
    round_trip(&mut client(&proxy).await, b"x").await.unwrap();
}

#[tokio::test]
async fn new_connections_go_to_the_new_target() {
    let (first, proxy) = proxied().await;
    let mut open = client(&proxy).await;
    round_trip(&mut open, b"1").await.unwrap();
    let second = Echo::start().await;
    proxy.retarget(second.address);
    round_trip(&mut client(&proxy).await, b"2").await.unwrap();
    round_trip(&mut open, b"1").await.unwrap();
    assert_eq!(
        (first.received(), second.received()),
        (b"11".to_vec(), b"2".to_vec())
    );
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    proxy.retarget(closed.local_addr().unwrap());
    drop(closed);
    let mut unreachable = client(&proxy).await;
    assert!(is_reset(&read_to_end(&mut unreachable).await.1));
    assert_eq!(proxy.counts().unreachable, 1);
}
