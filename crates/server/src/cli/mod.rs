//! Command-line interface.
//!
//! Arguments are parsed into the domain's types here, so that a mistake is reported with the usage
//! text before anything is opened.

mod admin;
mod arguments;
mod client;
mod mcp;

pub use admin::{
    AdminCommand, CreateKey, CreateUser, DomainCommand, KeyCommand, OrganizationCommand,
    RemoveUser, StoreIdCommand, TestDataCommand, UserCommand,
};
pub(crate) use arguments::server_url;
pub use arguments::{EnvironmentArgument, PermissionArgument, RoleArgument};
pub use client::{
    AppArgument, AppsOptions, ClientCommand, ConnectionOptions, DaysOptions, DeliveriesOptions,
    EventsCommand, EventsExportOptions, EventsListOptions, EventsOptions, LinksOptions,
    ListOptions, StatsOptions,
};
pub use mcp::McpOptions;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::net::SocketAddr;
use std::path::PathBuf;
use tributary_domain::node_role::NodeRoles;
use tributary_domain::vocabulary::id::AppId;

/// Self-hosted install attribution and conversion forwarding.
#[derive(Debug, Parser)]
#[command(name = "tributary", version, propagate_version = true)]
#[command(after_help = "Without a command, `tributary` starts the server.\n\
    Run `tributary config print` to see the effective settings.")]
pub struct Cli {
    /// Settings file. It overrides the defaults; TRIBUTARY_* variables override it.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Roles of this node, separated by commas: accept, forward, report. Overrides the setting
    /// `roles`.
    #[arg(long, global = true, value_name = "ROLES", value_parser = arguments::roles)]
    pub roles: Option<NodeRoles>,

    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// Returns the command; `serve` if none was given.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve)
    }
}

/// The binary's commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Start the server (default).
    Serve,
    /// Run a demo: a server with a sample organization, sixty days of history and simulated ad
    /// networks.
    ///
    /// Prints the address and how to sign in. Nothing leaves this machine. The demo does not touch
    /// a real server's settings or data, and removes its own data when you stop it (Ctrl-C).
    Demo(DemoOptions),
    /// Manage organizations, users, API keys, domains and test data. The server may be running.
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Verify or export the audit log. The server may be running.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Import exchange rates or show their age. The server may be running.
    #[command(subcommand)]
    Fx(FxCommand),
    /// Maintain the roll-ups that reports read. The server may be running.
    #[command(subcommand)]
    Rollups(RollupsCommand),
    /// Migrate the database to this version, then exit. `serve` does the same at startup.
    Migrate(MigrateOptions),
    /// Move all data from SQLite to PostgreSQL or back. The server may be running.
    ///
    /// Copies all rows with their ids and keys into an empty PostgreSQL database or a new SQLite
    /// file, follows changes, and verifies the copy. Run the command again to continue after an
    /// interruption, and with `--cut-over` to finish. The rows in the source stay as they are.
    Move(MoveOptions),
    /// Import events from an NDJSON export into an app. The server may be running.
    ///
    /// Reads files that `GET /api/v1/apps/{appId}/export?kind=events&format=ndjson` returned. Events
    /// keep their ids, times, amounts and attribution, count in reports, and are not forwarded. An
    /// event that is stored already is skipped, so the import can be repeated. Prints an account;
    /// exits with 1 if a line was rejected.
    Import(ImportOptions),
    /// Replace the secret key while the servers run.
    #[command(subcommand)]
    SecretKey(SecretKeyCommand),
    /// Back up the SQLite database to a file. The server may be running.
    ///
    /// The file contains everything acknowledged before the command started, and is verified before
    /// it gets its final name. It also contains the secret key from the data folder, because
    /// without it the stored credentials cannot be decrypted and no server can start: protect the
    /// file like the data folder. A key from the settings (`secret_key`) is not copied. For
    /// PostgreSQL, use `pg_dump`.
    Backup(BackupOptions),
    /// Restore a backup into the data folder. Fails if a database already exists.
    ///
    /// The data folder comes from the settings (`data_dir`); the secret key is written next to the
    /// database. A backup contains no settings.
    Restore {
        /// File written by `tributary backup`.
        file: PathBuf,
    },
    /// Check settings, database, disk, clock and network. Exits with 1 if there are errors.
    Doctor,
    /// Simulate the four ad networks, strictly, for testing integrations. Shows received events on
    /// a web page.
    Simulator(SimulatorOptions),
    /// Give an agent on this machine access to a server (MCP over standard input and output).
    ///
    /// Clients such as code editors and chat programs start this command. It forwards each message to
    /// the server's `/mcp`, with the API key in `TRIBUTARY_API_KEY`, and writes the answers. It reads no
    /// settings and no database.
    Mcp(McpOptions),
    /// Show or check the settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Read from a running server.
    #[command(flatten)]
    Client(Box<ClientCommand>),
    /// Print the OpenAPI description of the REST API as YAML.
    Openapi,
    /// Print shell completions.
    ///
    /// For example: `tributary completions bash > /etc/bash_completion.d/tributary`
    Completions {
        /// Target shell.
        shell: Shell,
    },
    /// Print the manual page, or write the pages for all commands to a folder.
    ///
    /// For example: `tributary man | man -l -`
    Man {
        /// Write the pages for all commands to this folder.
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
}

/// Options for the demo.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DemoOptions {
    /// Address and port to listen on.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Keep the data in this folder. It must be empty or not exist yet.
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// Seed for the sample data; the same seed gives the same history.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

/// Options for migrating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct MigrateOptions {
    /// Also distribute a PostgreSQL database over the workers of a Citus cluster, by app.
    ///
    /// Stop all servers first, and connect to the coordinator directly. If the command is
    /// interrupted, run it again. It does nothing if the database is distributed already.
    #[arg(long)]
    pub distributed: bool,
}

/// Options for a move.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct MoveOptions {
    /// Database to move from: `sqlite:PATH` or `postgres://…`. Default: the configured database.
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// Database to move to: `sqlite:PATH` or `postgres://…`. Default: the configured database.
    #[arg(long, value_name = "URL", required_unless_present_any = ["from", "cancel"])]
    pub to: Option<String>,
    /// Finish the move: stop changes to the source, copy the last ones, and hand over. Restart the
    /// server with the new `database_url` at once.
    #[arg(long)]
    pub cut_over: bool,
    /// Give up the move, or return to the source after the cut-over: let servers write to it again.
    #[arg(long, conflicts_with_all = ["to", "cut_over"])]
    pub cancel: bool,
}

/// Options for an import.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ImportOptions {
    /// App id (`app_…`), as the dashboard and `GET /api/v1/apps` show it.
    #[arg(long, value_name = "ID", value_parser = arguments::app_id)]
    pub app: AppId,
    /// Check every line and print the account, without storing anything.
    #[arg(long)]
    pub dry_run: bool,
    /// Files to import, which may be compressed with gzip; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// Options for a backup.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct BackupOptions {
    /// File to write.
    pub file: PathBuf,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
    /// Leave out the secret key, if you keep it elsewhere.
    #[arg(long)]
    pub without_key: bool,
}

/// Options for the simulator.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SimulatorOptions {
    /// Address and port to listen on.
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Accept only accounts registered through the control API.
    #[arg(long)]
    pub closed: bool,
}

/// Audit log commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum AuditCommand {
    /// Verify that no entry was changed or removed. Exits with 1 if one was.
    ///
    /// Each organization's entries are a hash chain. Prints the number of verified entries and the
    /// first break of each chain, with its sequence number and time.
    Verify(VerifyAudit),
    /// Write an organization's audit log to standard output, one JSON line per entry, oldest first.
    ///
    /// The export is itself an entry, the last one. Check the file later with `tributary audit verify
    /// --file`.
    Export(ExportAudit),
}

/// Options for verifying the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct VerifyAudit {
    /// Organization name or id. Default: all organizations.
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// Verify an exported file instead of the database; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "organization")]
    pub file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options for exporting the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ExportAudit {
    /// Organization name or id. Required if there are several.
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// Begin after the entry with this sequence number, to continue an earlier export.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
}

/// Exchange rate commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum FxCommand {
    /// Import exchange rate files. A later import overrides an earlier import for the same day and
    /// currency.
    ///
    /// Formats are detected automatically: XML or CSV from the European Central Bank, JSON from
    /// Frankfurter or from the currency API, or CSV with the header date,currency,perEur or
    /// date,currency,perUsd.
    Import {
        /// Files to import, in this order; `-` is standard input.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Show how recent the rates are.
    Status,
}

/// Secret key commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum SecretKeyCommand {
    /// Generate the next secret key.
    ///
    /// With SQLite and a key in the data folder, writes it there, to `secret_key.next`. Otherwise
    /// prints it, for `next_secret_key`. Then restart the servers, so that they know it.
    Generate,
    /// Replace the secret key by the next one, and encrypt all stored credentials again.
    ///
    /// All servers must know both keys first. Run the command again to continue after an
    /// interruption. Prints what is left to do.
    Rotate,
    /// Show which keys are known, and whether a rotation is unfinished.
    Status,
}

/// Settings commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Print the effective settings as TOML, with secrets hidden.
    Print,
    /// Check the settings for errors and risks, without connecting to anything. Exits with 2 on an
    /// error.
    Check,
}

/// Roll-up commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum RollupsCommand {
    /// Rebuild the roll-ups from the events, day by day. Prints how many rows were wrong.
    Rebuild,
}

#[cfg(test)]
mod tests;
