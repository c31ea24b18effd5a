//! A primary and its standby, started for one test. Other tests use the server that `./test` starts,
//! so they cannot stop it.

pub(crate) mod commands;

use commands::{free_port, run, server_command, server_folder};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// Pause between two looks at a setting that is being reloaded, or at processes that end.
const RELOAD_PAUSE: Duration = Duration::from_millis(10);

/// A primary and its standby. Dropping it stops both.
#[derive(Debug)]
pub struct ServerPair {
    /// Serves everything.
    pub primary: PairedServer,
    /// Follows the primary.
    pub standby: PairedServer,
    /// Deleted after the servers were stopped.
    _folder: TempDir,
}

impl ServerPair {
    /// Starts both servers. The standby cancels queries that conflict with replay at once.
    pub fn start() -> Self {
        let folder = server_folder();
        let primary = PairedServer::new(folder.path().join("primary"));
        let initdb = [
            "-A",
            "trust",
            "-U",
            "tributary",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ];
        run(server_command("initdb")
            .arg("-D")
            .arg(&primary.data)
            .args(initdb));
        primary.start();
        let standby = PairedServer::new(folder.path().join("standby"));
        standby.copy(&primary);
        standby.start();
        Self {
            primary,
            standby,
            _folder: folder,
        }
    }

    /// Promotes the standby, which becomes the primary of this pair. The old primary must not be
    /// running, or be fenced soon: it would go on accepting writes if it needs no standby.
    pub async fn fail_over(&mut self) {
        std::mem::swap(&mut self.primary, &mut self.standby);
        run(&mut self.primary.control("promote"));
        // It has no standby yet. Otherwise its commits would wait for one.
        self.primary.require_standby(false).await;
    }

    /// Replaces the old primary with a new standby.
    pub fn renew_standby(&self) {
        self.standby.kill();
        fs::remove_dir_all(&self.standby.data).expect("the folder is removed");
        self.standby.copy(&self.primary);
        self.standby.start();
    }
}

/// One of the two servers.
#[derive(Debug)]
pub struct PairedServer {
    data: PathBuf,
    port: u16,
}

impl PairedServer {
    fn new(data: PathBuf) -> Self {
        Self {
            data,
            port: free_port(),
        }
    }

    /// Returns the URL of the server's database.
    pub fn url(&self) -> String {
        format!("postgres://tributary@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Connects to the server.
    pub async fn client(&self) -> Client {
        let connected = tokio_postgres::connect(&self.url(), NoTls).await;
        let (client, connection) = connected.expect("the server responds");
        tokio::spawn(connection);
        client
    }

    /// Copies the data of a running primary, to become its standby.
    fn copy(&self, primary: &Self) {
        let mut backup = server_command("pg_basebackup");
        backup
            .arg("-D")
            .arg(&self.data)
            .args(["-d", &primary.url()]);
        run(backup.args(["-R", "-X", "stream", "-c", "fast", "--no-sync"]));
    }

    /// Confirms commits only after a standby has stored them, or no longer. Waits until the setting
    /// is in force.
    pub async fn require_standby(&self, is_required: bool) {
        let names = if is_required { "*" } else { "" };
        self.set("synchronous_standby_names", names).await;
    }

    /// Changes a setting of the running server, and waits until it is in force.
    pub async fn set(&self, name: &str, value: &str) {
        let client = self.client().await;
        let change = format!("alter system set {name} = '{value}'");
        for sql in [change.as_str(), "select pg_reload_conf()"] {
            client.batch_execute(sql).await.expect(sql);
        }
        let sql = format!("select current_setting('{name}')");
        loop {
            let row = client.query_one(&sql, &[]).await.expect("a setting");
            if row.get::<_, &str>(0) == value {
                return;
            }
            tokio::time::sleep(RELOAD_PAUSE).await;
        }
    }

    /// Starts the server and waits until it accepts connections.
    pub fn start(&self) {
        self.start_with("");
    }

    /// Starts the server with further settings, such as `-c name=value`.
    pub fn start_with(&self, more: &str) {
        let settings = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c shared_buffers=16MB \
             -c autovacuum=off -c max_standby_streaming_delay=0 {more}",
            self.port
        );
        let mut command = self.control("start");
        // Without `-l`, the server's messages are in the output of the failed command.
        run(command.arg("-o").arg(settings));
    }

    /// Stops the server as if its machine had failed.
    pub fn stop(&self) {
        run(self.control("stop").args(["-m", "immediate"]));
    }

    /// Stops all processes of the server without ending them: it no longer answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets the processes go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Kills all processes of the server, even if they are frozen, and waits for their end. The server
    /// can then start again.
    pub fn kill(&self) {
        let processes = self.signal("-KILL");
        while processes.iter().any(|process| is_running(process)) {
            std::thread::sleep(RELOAD_PAUSE);
        }
        // Left behind by the kill. The process may still be listed until its parent has noticed.
        let _missing = fs::remove_file(self.data.join("postmaster.pid"));
    }

    /// Sends a signal to all processes of the server. Returns their ids.
    fn signal(&self, signal: &str) -> Vec<String> {
        let Ok(file) = fs::read_to_string(self.data.join("postmaster.pid")) else {
            return Vec::new();
        };
        let parent = file.lines().next().expect("a process id").to_owned();
        let children = Command::new("ps")
            .args(["--ppid", &parent, "-o", "pid="])
            .output();
        let children = String::from_utf8(children.expect("processes").stdout).expect("numbers");
        // The parent first, so that it starts no further process.
        let processes = std::iter::once(parent.as_str()).chain(children.split_whitespace());
        let processes: Vec<String> = processes.map(str::to_owned).collect();
        for process in &processes {
            // A process may have ended meanwhile.
            let _ended = Command::new("kill").args([signal, process]).status();
        }
        processes
    }

    fn control(&self, action: &str) -> Command {
        let mut command = server_command("pg_ctl");
        command
            .arg("-D")
            .arg(&self.data)
            .args(["-w", "-t", "180", action]);
        command
    }
}

/// Returns whether a process has not ended. An ended one may be listed as a zombie.
fn is_running(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

impl Drop for PairedServer {
    fn drop(&mut self) {
        self.thaw();
        let _stopped = self.control("stop").args(["-m", "immediate"]).output();
    }
}
