//! Starts programs that refuse to run as root.

use std::fs;
use std::io::{Read as _, Seek as _};
use std::net::TcpListener;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Where Debian installs the programs of the server.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// User for the programs if the tests run as root.
const SERVER_USER: &str = "postgres";
/// Ports of the servers. The system gives higher ones to outgoing connections: such a connection could
/// take the port of a server that is about to start again.
const PORTS: Range<u32> = 20_000..32_000;
/// Distance between the first ports of two processes with adjacent ids.
const PORTS_PER_PROCESS: u32 = 64;

/// Creates a folder that the programs may write to.
pub(crate) fn server_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    if is_root() {
        let owner = format!("{SERVER_USER}:");
        run(Command::new("chown").arg(owner).arg(folder.path()));
    }
    folder
}

/// Returns a port without a listener, which this process has not returned before.
pub(crate) fn free_port() -> u16 {
    static RETURNED: AtomicU32 = AtomicU32::new(0);
    // Runs at the same time search in different places.
    let first = std::process::id().wrapping_mul(PORTS_PER_PROCESS);
    loop {
        let number = first.wrapping_add(RETURNED.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + number % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).expect("a port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").expect("this process").uid() == 0
}

/// Returns the command for a program of the server, run by a user that it accepts.
pub(crate) fn server_command(name: &str) -> Command {
    let program = program(name);
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", SERVER_USER, "--"]).arg(program);
    command
}

/// Returns the newest installed version of a program, or its name if it must be on the path.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir(PROGRAMS).into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .map(|entry| entry.path())
        .max_by_key(|path| number(path));
    let installed = newest.map(|version| version.join("bin").join(name));
    installed
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// Runs a command to its end. Its output goes to a file, because a started server keeps it open.
pub(crate) fn run(command: &mut Command) {
    let mut output = tempfile::tempfile().expect("a file");
    let [copy, errors] = [0; 2].map(|_| output.try_clone().expect("a file"));
    command.stdin(Stdio::null()).stdout(copy).stderr(errors);
    let status = command
        .current_dir("/")
        .status()
        .expect("the program is installed");
    if !status.success() {
        let mut text = String::new();
        output.rewind().expect("the output");
        output.read_to_string(&mut text).expect("the output");
        panic!("{command:?}: {status}: {text}");
    }
}
