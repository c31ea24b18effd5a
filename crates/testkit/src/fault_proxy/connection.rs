//! Carries the bytes of one connection.

use super::matching::Matcher;
use super::{CutKind, CutMoment, Flow, FlowDirection, Shared, add, locked};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{oneshot, watch};

/// Maximum number of bytes read at once.
const READ_BYTES: usize = 16 * 1024;

/// Why a connection ends before both peers have closed it.
enum End {
    /// A fault, or a peer that reset its side. Both sides get a reset.
    Reset,
    /// Both sides get the end of the stream.
    Close,
}

/// Carries a connection until both peers have closed it or a fault ends it.
pub(super) async fn carry(
    shared: &Shared,
    mut near: TcpStream,
    mut far: TcpStream,
    is_reset: oneshot::Receiver<()>,
) {
    // Small pieces must not be joined again.
    let _best_effort = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_read, near_write) = near.split();
    let (far_read, far_write) = far.split();
    let awaited = Mutex::new(None);
    let carried = async {
        tokio::try_join!(
            pump(
                shared,
                &awaited,
                FlowDirection::ToTarget,
                near_read,
                far_write
            ),
            pump(
                shared,
                &awaited,
                FlowDirection::ToClient,
                far_read,
                near_write
            ),
        )
    };
    let end = tokio::select! {
        carried = carried => carried.err().unwrap_or(End::Close),
        _ = is_reset => End::Reset,
    };
    if matches!(end, End::Reset) {
        let _best_effort = (near.set_zero_linger(), far.set_zero_linger());
    }
}

/// The direction in which the next bytes are an answer to cut at, and how.
type AwaitedAnswer = Mutex<Option<(FlowDirection, CutKind)>>;

/// Forwards one direction until its end or a cut.
async fn pump(
    shared: &Shared,
    awaited: &AwaitedAnswer,
    direction: FlowDirection,
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
) -> Result<(), End> {
    let mut flow = shared.flow(direction).subscribe();
    let mut matcher = Matcher::new(direction);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = from.read(&mut buffer).await.map_err(|_| End::Reset)?;
        let bytes = &buffer[..count];
        if bytes.is_empty() {
            return to.shutdown().await.map_err(|_| End::Reset);
        }
        let answer = locked(awaited).take_if(|(awaited, _)| *awaited == direction);
        if let Some((_, kind)) = answer {
            return cut(shared, kind, &mut to).await;
        }
        let Some(found) = matcher.find(shared, bytes) else {
            forward(shared, direction, bytes, &mut to, &mut flow).await?;
            continue;
        };
        if found.moment == CutMoment::OnAnswer {
            // Set before the bytes are forwarded, because the answer may come at once.
            *locked(awaited) = Some((direction.opposite(), found.kind));
            forward(shared, direction, bytes, &mut to, &mut flow).await?;
        } else {
            let bytes = &bytes[..found.forwarded];
            forward(shared, direction, bytes, &mut to, &mut flow).await?;
            return cut(shared, found.kind, &mut to).await;
        }
    }
}

async fn cut(shared: &Shared, kind: CutKind, to: &mut WriteHalf<'_>) -> Result<(), End> {
    add(&shared.counters.cuts, 1);
    match kind {
        CutKind::Reset => Err(End::Reset),
        CutKind::Close => Err(End::Close),
        CutKind::HalfClose => to.shutdown().await.map_err(|_| End::Reset),
    }
}

/// Forwards bytes as the flow of this direction says, which may change meanwhile.
async fn forward(
    shared: &Shared,
    direction: FlowDirection,
    bytes: &[u8],
    to: &mut WriteHalf<'_>,
    flow: &mut watch::Receiver<Flow>,
) -> Result<(), End> {
    let forwarded = match direction {
        FlowDirection::ToTarget => &shared.counters.to_target_bytes,
        FlowDirection::ToClient => &shared.counters.to_client_bytes,
    };
    let Flow { delay, jitter, .. } = *flow.borrow_and_update();
    let jitter = u64::try_from(jitter.as_micros()).unwrap_or(u64::MAX);
    let delay = delay + Duration::from_micros(shared.below(jitter));
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let Flow {
            bytes_per_second,
            piece_bytes,
            is_stalled,
            ..
        } = *flow.borrow_and_update();
        if is_stalled {
            shared.counters.stalls.fetch_add(1, Ordering::Relaxed);
            let flowing = flow.wait_for(|flow| !flow.is_stalled).await;
            drop(flowing.map_err(|_| End::Reset)?);
            continue;
        }
        let limit = if piece_bytes == 0 {
            rest.len()
        } else {
            piece_bytes
        };
        let (piece, later) = rest.split_at(limit.min(rest.len()));
        if bytes_per_second > 0 {
            let seconds = Duration::from_secs(piece.len() as u64);
            tokio::time::sleep(seconds / bytes_per_second).await;
        }
        to.write_all(piece).await.map_err(|_| End::Reset)?;
        add(forwarded, piece.len() as u64);
        add(&shared.counters.pieces, 1);
        rest = later;
    }
    Ok(())
}
