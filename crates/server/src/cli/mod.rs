//! The command line: what can be asked of the binary, and how it explains itself.
//!
//! Values are read into the domain's types here, so that a mistake is refused with the usage text before
//! anything is opened.

mod arguments;

pub use arguments::{EnvironmentArgument, PermissionArgument, RoleArgument};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::net::SocketAddr;
use std::path::PathBuf;
use tributary_domain::access::person::Email;
use tributary_domain::vocabulary::id::KeyId;
use tributary_domain::vocabulary::text::Name;

/// Ten years: a key that should live longer has no expiry.
const KEY_DAYS_MAX: i64 = 3_650;

/// Install attribution and conversion forwarding, on your own machine.
#[derive(Debug, Parser)]
#[command(name = "tributary", version, propagate_version = true)]
#[command(after_help = "Without a command the server is started.\n\
    Settings: `tributary config print` shows those in force.")]
pub struct Cli {
    /// A file of settings. It wins over the defaults; TRIBUTARY_* variables win over it.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// What to do; without a command, serve.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve)
    }
}

/// What can be asked of the binary.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Start the server. The default.
    Serve,
    /// Try everything: a server with a made-up organization, sixty days of history and simulated ad networks.
    ///
    /// Prints where to look and how to sign in. Nothing leaves this machine, settings and data of a real server are
    /// not touched, and nothing is left behind when it is stopped (Ctrl-C).
    Demo(DemoOptions),
    /// Manage organizations, people and keys. Works beside a running server.
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Exchange rates. Works beside a running server.
    #[command(subcommand)]
    Fx(FxCommand),
    /// The figures of reports. Works beside a running server.
    #[command(subcommand)]
    Rollups(RollupsCommand),
    /// Bring the database up to this version, and stop. `serve` does it too.
    Migrate,
    /// Copy the embedded database into a file. Works beside a running server.
    ///
    /// Everything that was acknowledged before the command began is in the file, which is checked before it gets its
    /// name. It also holds the secret key of the data folder, since without it nobody could read the networks'
    /// credentials in it, nor start a server on it: keep the file as safe as the folder. A key that is set in the
    /// settings (`secret_key`) is not copied. PostgreSQL has `pg_dump` instead.
    Backup(BackupOptions),
    /// Make a data folder of a backup. Refuses where a database is already.
    ///
    /// The folder is that of the settings (`data_dir`); its key is put beside the database. Settings themselves are in
    /// no backup.
    Restore {
        /// What `tributary backup` wrote.
        file: PathBuf,
    },
    /// Check settings, database, disk, clock and network. Exits with 1 when something is broken.
    Doctor,
    /// Play the four ad networks, strictly, for trying out integrations. Shows what arrives on its page.
    Simulator(SimulatorOptions),
    /// Show or check the settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the description of the REST interface as YAML.
    Openapi,
    /// Print the completions of these commands for a shell.
    ///
    /// For example: `tributary completions bash > /etc/bash_completion.d/tributary`
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Print the manual page, or write those of all commands into a folder.
    ///
    /// For example: `tributary man | man -l -`
    Man {
        /// Write the pages of all commands here instead.
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
}

/// How the demo runs.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DemoOptions {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Keep the data in this folder, which must not be there yet, or be empty.
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// What the history is made of: the same number gives the same one.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

/// Where a backup goes.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct BackupOptions {
    /// The file to write.
    pub file: PathBuf,
    /// Replace a file of this name.
    #[arg(long)]
    pub force: bool,
    /// Leave the secret key out, for those who keep it elsewhere.
    #[arg(long)]
    pub without_key: bool,
}

/// How the simulator listens.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SimulatorOptions {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Take only accounts that were registered over its control interface.
    #[arg(long)]
    pub closed: bool,
}

/// Organizations, people and keys.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum AdminCommand {
    /// Organizations: the tenants of this server.
    #[command(subcommand)]
    Organization(OrganizationCommand),
    /// People who sign in.
    #[command(subcommand)]
    User(UserCommand),
    /// Private keys for the REST interface.
    #[command(subcommand)]
    Key(KeyCommand),
}

/// Organizations.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum OrganizationCommand {
    /// Make an organization. Prints its id.
    Create {
        /// What people call it.
        #[arg(value_parser = arguments::name)]
        name: Name,
    },
    /// List the organizations.
    List,
}

/// People.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum UserCommand {
    /// Invite a person. Prints a link that works once.
    Create(CreateUser),
}

/// A person to invite.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CreateUser {
    /// The address to sign in with.
    #[arg(long, value_parser = arguments::email)]
    pub email: Email,
    /// What the person may do.
    #[arg(long, value_enum, default_value_t = RoleArgument::Owner)]
    pub role: RoleArgument,
    /// The organization. Needed when there are several.
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
}

/// Keys.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum KeyCommand {
    /// Make a key. Prints it alone; it cannot be shown again.
    Create(CreateKey),
    /// List the keys: their ids and names, never the keys.
    List {
        /// The organization. Needed when there are several.
        #[arg(long, value_name = "NAME")]
        organization: Option<String>,
    },
    /// Revoke a key. It stops working at once.
    Revoke {
        /// The id of the key, as `admin key list` shows it.
        #[arg(value_name = "KEY_ID", value_parser = arguments::key_id)]
        id: KeyId,
    },
}

/// A key to make.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CreateKey {
    /// What the key may do.
    #[arg(long, value_enum)]
    pub permission: PermissionArgument,
    /// Whose data it sees: `test` keys see test data only.
    #[arg(long, value_enum, default_value_t = EnvironmentArgument::Live)]
    pub environment: EnvironmentArgument,
    /// The organization. Needed when there are several.
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// What people call the key.
    #[arg(long, value_name = "TEXT", value_parser = arguments::name)]
    pub name: Option<Name>,
    /// Days until the key stops working. Without it, never.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=KEY_DAYS_MAX))]
    pub expires_in_days: Option<u32>,
}

/// Exchange rates.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum FxCommand {
    /// Import files of rates. A later import wins for a day and a currency.
    ///
    /// The form is recognised: XML or CSV of the European Central Bank, JSON of Frankfurter, or CSV with the
    /// header date,currency,perEur or date,currency,perUsd.
    Import {
        /// The files, in their order; `-` is standard input.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Tell how new the rates are.
    Status,
}

/// Settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Print the settings in force as TOML, secrets hidden.
    Print,
    /// Look for mistakes and risky settings, without trying them. Exits with 2 on a mistake.
    Check,
}

/// Figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum RollupsCommand {
    /// Make them anew from the events, day by day. Says how many rows were wrong.
    Rebuild,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use rstest::rstest;
    use tributary_domain::access::{Environment, Permission};

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Cli::try_parse_from(line.split(' ').filter(|word| !word.is_empty())).map(Cli::into_command)
    }

    #[test]
    fn the_description_is_consistent() {
        Cli::command().debug_assert();
    }

    #[rstest]
    #[case::nothing_serves("tributary", Command::Serve)]
    #[case::only_a_file_serves("tributary --config t.toml", Command::Serve)]
    #[case::serve("tributary serve", Command::Serve)]
    #[case::file_after_the_command("tributary doctor --config t.toml", Command::Doctor)]
    #[case::migrate("tributary migrate", Command::Migrate)]
    #[case::openapi("tributary openapi", Command::Openapi)]
    #[case::rates_status("tributary fx status", Command::Fx(FxCommand::Status))]
    #[case::rates_of_files(
        "tributary fx import a.csv -",
        Command::Fx(FxCommand::Import { files: vec!["a.csv".into(), "-".into()] })
    )]
    #[case::rebuild("tributary rollups rebuild", Command::Rollups(RollupsCommand::Rebuild))]
    #[case::print("tributary config print", Command::Config(ConfigCommand::Print))]
    #[case::check("tributary config check", Command::Config(ConfigCommand::Check))]
    fn commands(#[case] line: &str, #[case] expected: Command) {
        assert_eq!(parse(line).unwrap(), expected);
    }

    #[rstest]
    #[case("tributary admin organization create Acme")]
    #[case("tributary admin organization list")]
    #[case("tributary admin user create --email you@example.com")]
    #[case("tributary admin user create --email you@example.com --role viewer --organization Acme")]
    #[case("tributary admin key create --permission full")]
    #[case("tributary admin key create --permission read-only --environment test --name CI")]
    #[case("tributary admin key create --permission read_only")]
    #[case("tributary admin key create --permission analytics --expires-in-days 3650")]
    #[case("tributary admin key list --organization Acme")]
    #[case("tributary admin key revoke key_00000000000000000000000000")]
    fn administration_that_is_taken(#[case] line: &str) {
        assert!(
            matches!(parse(line), Ok(Command::Admin(_))),
            "{:?}",
            parse(line)
        );
    }

    #[rstest]
    #[case::no_permission("tributary admin key create")]
    #[case::unknown_permission("tributary admin key create --permission root")]
    #[case::expired_at_once("tributary admin key create --permission full --expires-in-days 0")]
    #[case::too_long_a_life("tributary admin key create --permission full --expires-in-days 3651")]
    #[case::no_address("tributary admin user create --email nobody")]
    #[case::id_of_something_else("tributary admin key revoke app_00000000000000000000000000")]
    #[case::rates_of_no_file("tributary fx import")]
    #[case::unknown_command("tributary start")]
    fn mistakes_are_refused(#[case] line: &str) {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn a_key_has_the_defaults_of_the_contract() {
        let Ok(Command::Admin(AdminCommand::Key(KeyCommand::Create(key)))) =
            parse("tributary admin key create --permission read-only")
        else {
            panic!("a key");
        };
        assert_eq!(Permission::from(key.permission), Permission::ReadOnly);
        assert_eq!(Environment::from(key.environment), Environment::Live);
        assert_eq!(
            (key.organization, key.name, key.expires_in_days),
            (None, None, None)
        );
    }

    #[test]
    fn help_says_what_happens_without_a_command() {
        let help = Cli::command().render_help().to_string();
        assert!(
            help.contains("Without a command the server is started."),
            "{help}"
        );
    }
}
