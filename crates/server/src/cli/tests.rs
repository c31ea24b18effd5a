use super::*;
use clap::CommandFactory as _;
use rstest::rstest;
use tributary_domain::access::{Environment, Permission};

fn parse(line: &str) -> Result<Command, clap::Error> {
    Cli::try_parse_from(line.split(' ').filter(|word| !word.is_empty())).map(Cli::into_command)
}

fn client(command: ClientCommand) -> Command {
    Command::Client(Box::new(command))
}

fn client_command(line: &str) -> ClientCommand {
    match parse(line) {
        Ok(Command::Client(command)) => *command,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[rstest]
#[case::nothing_serves("tributary", Command::Serve)]
#[case::only_a_file_serves("tributary --config t.toml", Command::Serve)]
#[case::serve("tributary serve", Command::Serve)]
#[case::serve_with_roles("tributary serve --roles accept,report", Command::Serve)]
#[case::file_after_the_command("tributary doctor --config t.toml", Command::Doctor)]
#[case::migrate(
    "tributary migrate",
    Command::Migrate(MigrateOptions { distributed: false })
)]
#[case::migrate_distributed(
    "tributary migrate --distributed",
    Command::Migrate(MigrateOptions { distributed: true })
)]
#[case::openapi("tributary openapi", Command::Openapi)]
#[case::cancelled_move(
    "tributary move --cancel",
    Command::Move(MoveOptions { from: None, to: None, cut_over: false, cancel: true })
)]
#[case::import(
    "tributary import --app app_01k9z3v7q8e4r9m2x5c6b7n8d5 --dry-run a.ndjson -",
    Command::Import(ImportOptions {
        app: AppId::parse("app_01k9z3v7q8e4r9m2x5c6b7n8d5").unwrap(),
        dry_run: true,
        files: vec!["a.ndjson".into(), "-".into()],
    })
)]
#[case::rates_status("tributary fx status", Command::Fx(FxCommand::Status))]
#[case::rates_of_files(
    "tributary fx import a.csv -",
    Command::Fx(FxCommand::Import { files: vec!["a.csv".into(), "-".into()] })
)]
#[case::export(
    "tributary events export --app app_01k9z3v7q8e4r9m2x5c6b7n8d5 --format csv --from 2027-01-31 \
     --server https://links.example.com -o a.csv",
    client(ClientCommand::Events(Box::new(EventsOptions {
        command: Some(EventsCommand::Export(EventsExportOptions {
            app: AppArgument { app: AppId::parse("app_01k9z3v7q8e4r9m2x5c6b7n8d5").ok() },
            kind: "events".to_owned(),
            format: "csv".to_owned(),
            output: Some("a.csv".into()),
            days: DaysOptions {
                from: Some("2027-01-31".to_owned()),
                to: None,
                timezone: None,
            },
            connection: ConnectionOptions {
                server: "https://links.example.com".parse().ok(),
                key_file: None,
            },
        })),
        list: match client_command("tributary events") {
            ClientCommand::Events(events) => events.list,
            other => panic!("{other:?}"),
        },
    })))
)]
#[case::rebuild("tributary rollups rebuild", Command::Rollups(RollupsCommand::Rebuild))]
#[case::mcp(
    "tributary mcp --server http://127.0.0.1:8080 --allow-write",
    Command::Mcp(McpOptions {
        server: Some("http://127.0.0.1:8080".parse().unwrap()),
        allow_write: true,
    })
)]
#[case::print("tributary config print", Command::Config(ConfigCommand::Print))]
#[case::check("tributary config check", Command::Config(ConfigCommand::Check))]
fn parses_commands(#[case] line: &str, #[case] expected: Command) {
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
#[case("tributary admin key create --permission full --expires 2027-01-31")]
#[case(
    "tributary admin key create --permission full --app app_01k9z3v7q8e4r9m2x5c6b7n8d5 \
     --address 192.0.2.0/24 --address 2001:db8::1"
)]
#[case("tributary admin key list --organization Acme")]
#[case("tributary admin key revoke key_00000000000000000000000000")]
#[case("tributary admin domain verify go.example.com --organization Acme")]
#[case("tributary admin domain release go.example.com")]
#[case("tributary admin store-id assign 123456789 --organization Acme")]
#[case("tributary admin test-data wipe --app app_01k9z3v7q8e4r9m2x5c6b7n8d5 --yes")]
fn accepts_admin_commands(#[case] line: &str) {
    assert!(
        matches!(parse(line), Ok(Command::Admin(_))),
        "{:?}",
        parse(line)
    );
}

#[rstest]
#[case("tributary apps --archived --all --json", &[("archived", "true")])]
#[case("tributary links --tag q4 --folder Spring", &[("tag", "q4"), ("folder", "Spring")])]
#[case("tributary stats", &[("groupBy", "day")])]
#[case(
    "tributary stats --group-by day,network --link-id lnk_1 --to 2027-01-31 --timezone UTC",
    &[("groupBy", "day,network"), ("linkId", "lnk_1"), ("to", "2027-01-31"), ("timezone", "UTC")]
)]
#[case("tributary stats --groupBy country --linkId a", &[("groupBy", "country"), ("linkId", "a")])]
#[case(
    "tributary events --event-id a --device-id b --user-id c",
    &[("eventId", "a"), ("deviceId", "b"), ("userId", "c")]
)]
#[case("tributary deliveries --status failed", &[("status", "failed")])]
fn filters_have_the_names_of_the_api(
    #[case] line: &str,
    #[case] expected: &[(&'static str, &'static str)],
) {
    let filters = match client_command(line) {
        ClientCommand::Apps(options) => options.filters(),
        ClientCommand::Links(options) => options.filters(),
        ClientCommand::Stats(options) => options.filters(),
        ClientCommand::Events(options) => options.list.filters(),
        ClientCommand::Deliveries(options) => options.filters(),
    };
    let filters: Vec<_> = filters
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    assert_eq!(filters, expected);
}

#[rstest]
#[case::no_permission("tributary admin key create")]
#[case::unknown_permission("tributary admin key create --permission root")]
#[case::expired_at_once("tributary admin key create --permission full --expires-in-days 0")]
#[case::too_long_a_life("tributary admin key create --permission full --expires-in-days 3651")]
#[case::two_ends(
    "tributary admin key create --permission full --expires 2027-01-31 --expires-in-days 3"
)]
#[case::no_day("tributary admin key create --permission full --expires tomorrow")]
#[case::no_range("tributary admin key create --permission full --address office")]
#[case::no_app("tributary admin key create --permission full --app Runner")]
#[case::no_address("tributary admin user create --email nobody")]
#[case::id_of_something_else("tributary admin key revoke app_00000000000000000000000000")]
#[case::no_host_name("tributary admin domain verify https://go.example.com")]
#[case::no_store_id("tributary admin store-id assign id123456789")]
#[case::move_to_nowhere("tributary move")]
#[case::cancelled_cut_over("tributary move --cancel --cut-over")]
#[case::rates_of_no_file("tributary fx import")]
#[case::unknown_role("tributary serve --roles accept,reports")]
#[case::no_role("tributary serve --roles=")]
#[case::no_server_url("tributary mcp --server links.example.com")]
#[case::key_as_an_argument("tributary apps --key ak_live_x")]
#[case::limit_and_all("tributary links --all --limit 5")]
#[case::no_rows("tributary links --limit 0")]
#[case::one_link_with_a_filter("tributary links lnk_01k9z3v7q8e4r9m2x5c6b7n8d5 --tag a")]
#[case::app_instead_of_a_link("tributary links app_01k9z3v7q8e4r9m2x5c6b7n8d5")]
#[case::server_with_a_password("tributary apps --server https://me:secret@example.com")]
#[case::list_and_export("tributary events --name a export")]
#[case::unknown_command("tributary start")]
fn rejects_invalid_arguments(#[case] line: &str) {
    assert_eq!(parse(line).unwrap_err().exit_code(), 2);
}

#[test]
fn a_new_key_has_the_documented_defaults() {
    let Ok(Command::Admin(AdminCommand::Key(KeyCommand::Create(key)))) =
        parse("tributary admin key create --permission read-only")
    else {
        panic!("a key");
    };
    assert_eq!(Permission::from(key.permission), Permission::ReadOnly);
    assert_eq!(Environment::from(key.environment), Environment::Live);
    assert_eq!(
        (key.organization, key.name, key.expires_in_days, key.expires),
        (None, None, None, None)
    );
    assert!(key.apps.is_empty() && key.addresses.is_empty());
}

#[test]
fn help_describes_the_default_command() {
    let help = Cli::command().render_help().to_string();
    assert!(
        help.contains("Without a command, `tributary` starts the server."),
        "{help}"
    );
}
