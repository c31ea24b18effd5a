//! Starts programs that refuse to run as root.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Where Debian installs the programs of the server.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// User for the programs if the tests run as root.
const SERVER_USER: &str = "postgres";

/// Creates a folder that the programs may write to.
pub(crate) fn server_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    if is_root() {
        let owner = format!("{SERVER_USER}:");
        run(Command::new("chown").arg(owner).arg(folder.path()));
    }
    folder
}

/// Returns a port without a listener.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
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
    let output = tempfile::tempfile().expect("a file");
    let errors = output.try_clone().expect("a file");
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let status = command
        .current_dir("/")
        .status()
        .expect("the program is installed");
    assert!(status.success(), "{command:?}: {status}");
}
