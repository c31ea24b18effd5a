//! The server crashes or freezes.

use super::scene::{OUTAGE, Scene};
use std::time::Duration;

/// Time without a server before it starts again.
const DOWN: Duration = Duration::from_secs(1);

/// Stops the server as if its machine had failed, and starts it again.
pub(super) async fn restart(scene: &mut Scene) {
    tokio::task::block_in_place(|| scene.servers.primary.stop());
    let probes = scene.probe(DOWN, |_| {}).await;
    scene.add_outage(probes);
    tokio::task::block_in_place(|| scene.servers.primary.start());
}

/// Freezes all processes of the server for longer than a transaction may take.
pub(super) async fn pause(scene: &mut Scene) {
    scene.servers.primary.freeze();
    let probes = scene
        .probe(OUTAGE, |scene| scene.servers.primary.thaw())
        .await;
    scene.add_outage(probes);
}
