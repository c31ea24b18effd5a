//! Runs the commands of the documents. The `sh` fences of a page form one script, which runs
//! against its own server and simulator.

use super::fences::{Document, RUN, documents};
use crate::networks::ServerWithSimulator;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Maximum run time of a page's commands.
const PAGE_MAX: Duration = Duration::from_mins(5);
/// Addresses of the server, its metrics and the simulator in the documents. The test server serves
/// its metrics on its only port.
const SERVER: &str = "127.0.0.1:8080";
const METRICS: &str = "127.0.0.1:9090";
const SIMULATOR: &str = "127.0.0.1:8090";
/// Stops the script at the first failure. Plain `curl` would ignore an HTTP error.
const PREAMBLE: &str =
    "set -euo pipefail\ncurl() { command curl --fail-with-body --no-progress-meter \"$@\"; }\n";

/// Returns the script of a page, if it has commands.
fn script(page: &Document) -> Option<String> {
    let mut script = String::from(PREAMBLE);
    for fence in page.fences().iter().filter(|fence| fence.tag == RUN) {
        writeln!(script, ": line {}\n{}", fence.line, fence.text).unwrap();
    }
    (script != PREAMBLE).then_some(script)
}

fn address(url: &str) -> &str {
    url.strip_prefix("http://").unwrap()
}

async fn run(page: &Document, script: &str) {
    let simulated = ServerWithSimulator::start(Engine::Sqlite).await;
    let script = script
        .replace(SERVER, address(simulated.server.base_url()))
        .replace(METRICS, address(simulated.server.base_url()))
        .replace(SIMULATOR, address(&simulated.simulator.base_url()));
    let folder = TestDatabase::temp_folder();
    let path = folder.path().join("page.sh");
    fs::write(&path, script).unwrap();
    let mut shell = ServerProcess::shell(&simulated.database, PAGE_MAX);
    shell.arg("-x").arg(&path).current_dir(folder.path());
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap());
    let output = output.await.unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "the commands of {} exited with {}\n{}\n{}",
        page.path.display(),
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_documents_work() {
    let mut pages = Vec::new();
    for page in documents() {
        if let Some(script) = script(&page) {
            println!("running the commands of {}", page.path.display());
            run(&page, &script).await;
            pages.push(page.path);
        }
    }
    assert!(
        pages.iter().any(|page| page.ends_with("README.md")),
        "the README has no commands: {pages:?}"
    );
}
