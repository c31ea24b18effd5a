//! A primary and its standby, started for one test. Other tests use the server that `./test` starts,
//! so they cannot stop it.

pub(crate) mod commands;

use commands::{free_port, run, server_command, server_folder};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

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
        let mut backup = server_command("pg_basebackup");
        backup
            .arg("-D")
            .arg(&standby.data)
            .args(["-d", &primary.url()]);
        run(backup.args(["-R", "-X", "stream", "-c", "fast", "--no-sync"]));
        standby.start();
        Self {
            primary,
            standby,
            _folder: folder,
        }
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

    /// Connects to the server.
    pub async fn client(&self) -> Client {
        let connected = tokio_postgres::connect(&self.url(), NoTls).await;
        let (client, connection) = connected.expect("the server responds");
        tokio::spawn(connection);
        client
    }

    /// Starts the server and waits until it accepts connections.
    pub fn start(&self) {
        let settings = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c shared_buffers=16MB \
             -c autovacuum=off -c max_standby_streaming_delay=0",
            self.port
        );
        let log = self.data.with_extension("log");
        let mut command = self.control("start");
        run(command.arg("-o").arg(settings).arg("-l").arg(log));
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

    fn signal(&self, signal: &str) {
        let Ok(file) = fs::read_to_string(self.data.join("postmaster.pid")) else {
            return;
        };
        let parent = file.lines().next().expect("a process id").to_owned();
        let children = Command::new("ps")
            .args(["--ppid", &parent, "-o", "pid="])
            .output();
        let children = String::from_utf8(children.expect("processes").stdout).expect("numbers");
        // The parent first, so that it starts no further process.
        let processes = std::iter::once(parent.as_str()).chain(children.split_whitespace());
        for process in processes {
            // A process may have ended meanwhile.
            let _ended = Command::new("kill").args([signal, process]).status();
        }
    }

    fn control(&self, action: &str) -> Command {
        let mut command = server_command("pg_ctl");
        command
            .arg("-D")
            .arg(&self.data)
            .args(["-w", "-t", "60", action]);
        command
    }
}

impl Drop for PairedServer {
    fn drop(&mut self) {
        self.thaw();
        let _stopped = self.control("stop").args(["-m", "immediate"]).output();
    }
}
