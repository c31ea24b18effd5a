//! `PgBouncer` in transaction mode in front of the server of the tests.

use super::database::{Schema, options, server_url, with_setting};
use crate::PostgresStore;
use crate::server_pair::commands::{free_port, server_command, server_folder};
use std::fs;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Sessions per database: fewer than a store has connections, so that connections share sessions.
const SESSIONS: usize = 3;
/// How long `PgBouncer` may take to start.
const START_MAX: Duration = Duration::from_secs(30);

/// Runs the given command until standard input is closed, then deletes the folder. The tests' process
/// holds the other end of standard input, so its end in any way ends the command.
const RUN: &str = r#"folder=$1; shift; "$@" & cat >/dev/null; kill $!; wait; rm -rf "$folder""#;

/// Returns the URL of a schema through `PgBouncer`.
pub(super) async fn url(schema: &Schema) -> String {
    static STARTED: OnceLock<String> = OnceLock::new();
    let url = STARTED.get_or_init(start);
    // PgBouncer accepts no `options` in the URL, so the database has the search path.
    let name = &schema.name;
    let sql = format!("alter database {name} set search_path = {name}");
    let altered = schema.client().await.batch_execute(&sql).await;
    altered.expect("a search path");
    with_setting(url, &format!("dbname={name}"))
}

/// Starts `PgBouncer` and returns its URL.
fn start() -> String {
    let server: Config = server_url().parse().expect("a URL");
    let host = match server.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        other => panic!("the server of the tests has no TCP address: {other:?}"),
    };
    let user = server.get_user().expect("a user");
    let password = String::from_utf8_lossy(server.get_password().unwrap_or_default());
    let server_port = server.get_ports().first().copied().unwrap_or(5432);
    // The shell deletes it.
    let folder = server_folder().keep();
    let port = free_port();
    let settings = format!(
        "[databases]\n\
         * = host={host} port={server_port}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = trust\n\
         auth_file = {0}/users\n\
         logfile = {0}/log\n\
         pool_mode = transaction\n\
         default_pool_size = {SESSIONS}\n\
         max_client_conn = 1000\n",
        folder.display()
    );
    let file = folder.join("pgbouncer.ini");
    fs::write(&file, settings).expect("settings");
    fs::write(folder.join("users"), format!("\"{user}\" \"{password}\"\n")).expect("users");
    let pgbouncer = server_command("pgbouncer");
    let mut shell = Command::new("sh");
    shell.args(["-c", RUN, "sh"]).arg(&folder);
    shell
        .arg(pgbouncer.get_program())
        .args(pgbouncer.get_args());
    let outputs = (Stdio::null(), Stdio::null());
    let child = shell
        .arg("-q")
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(outputs.0)
        .stderr(outputs.1);
    let child = child.spawn().expect("a shell");
    // Standard input stays open until this process ends.
    std::mem::forget(child);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            begun.elapsed() < START_MAX,
            "PgBouncer does not start; is it installed?"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    format!("postgres://{user}@127.0.0.1:{port}/postgres")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_setting_in_the_url_is_explained() {
    let schema = Schema::create().await;
    let url = with_setting(&url(&schema).await, "options=-csearch_path%3Dpublic");
    let Err(error) = PostgresStore::connect(&url, options()).await else {
        panic!("PgBouncer accepts options");
    };
    assert!(error.to_string().contains("alter role"), "{error}");
}
