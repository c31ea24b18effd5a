//! Checks the packaging without Docker and systemd: copied files exist, settings are valid,
//! commands start, and stop timeouts are longer than the drain.

use super::fences::root;
use crate::command_line::tributary;
use std::collections::BTreeMap;
use std::fs;
use yaml_serde::Value;

fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the value of the first `name = value` line.
fn value_in<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find_map(|line| {
        let (found, value) = line.split_once('=')?;
        (found.trim() == name).then_some(value.trim().trim_matches('"'))
    });
    line.unwrap_or_else(|| panic!("{name} is missing"))
}

fn seconds(text: &str) -> u64 {
    text.trim_end_matches('s').parse().unwrap()
}

/// Returns how long a server may take to stop.
fn drain_seconds() -> u64 {
    seconds(value_in(
        &file("crates/server/config.default.toml"),
        "drain_seconds",
    ))
}

/// Checks that the binary accepts these arguments and settings.
fn assert_starts(words: &[&str], settings: &BTreeMap<String, String>) {
    let help = tributary(&[words, &["--help"]].concat(), &[]);
    assert!(help.status.success(), "{words:?}: {help:?}");
    let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (&**k, &**v)).collect();
    let check = tributary(&["config", "check"], &settings);
    assert!(check.status.success(), "{settings:?}: {check:?}");
}

/// Parses `NAME=value` words.
fn assignments<'a>(words: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    words
        .map(|word| {
            let (name, value) = word.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// Returns the instructions of the Dockerfile with their arguments.
fn instructions() -> Vec<(String, String)> {
    let text = file("packaging/Dockerfile");
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, rest) = line.split_once(' ').unwrap();
            (name.to_owned(), rest.to_owned())
        })
        .collect()
}

/// Returns the argument of the last instruction of this name, which belongs to the final stage.
fn last_instruction(name: &str) -> String {
    let found = instructions().into_iter().rfind(|(found, _)| found == name);
    found.unwrap_or_else(|| panic!("{name} is missing")).1
}

#[test]
fn the_image_copies_existing_files() {
    let ignored = file("packaging/Dockerfile.dockerignore");
    let mut copied = Vec::new();
    for (name, rest) in instructions() {
        if name != "COPY" || rest.starts_with("--from") {
            continue;
        }
        let words: Vec<&str> = rest.split(' ').collect();
        for source in &words[..words.len() - 1] {
            assert!(root().join(source).exists(), "COPY {source}");
            assert!(
                ignored.lines().any(|line| line == format!("!{source}")),
                "Dockerfile.dockerignore excludes {source}"
            );
            copied.push((*source).to_owned());
        }
    }
    let workspace = file("Cargo.toml");
    for member in ["crates", "acceptance", "bench", "fuzz"] {
        assert!(workspace.contains(&format!("\"{member}")), "{member}");
        assert!(
            copied.iter().any(|source| source == member),
            "the image lacks the workspace member {member}"
        );
    }
    let (_, image) = &instructions()[0];
    let version = value_in(&workspace, "rust-version");
    assert!(
        image.starts_with(&format!("rust:{version}-")),
        "{image}, but the workspace requires Rust {version}"
    );
    let build = "cargo build --locked --profile dist -p tributary-server";
    assert!(file("packaging/Dockerfile").contains(build));
    assert!(workspace.contains("[profile.dist]"));
}

#[test]
fn the_image_starts_a_server_without_root() {
    let entry: Vec<String> = serde_json::from_str(&last_instruction("ENTRYPOINT")).unwrap();
    let command: Vec<String> = serde_json::from_str(&last_instruction("CMD")).unwrap();
    assert!(
        last_instruction("COPY").ends_with(" /data")
            && file("packaging/Dockerfile").contains(&format!("/tributary {}\n", entry[0])),
        "the entry point is copied into the image"
    );
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    assert_starts(&words, &assignments(last_instruction("ENV").split(' ')));
    let user = last_instruction("USER");
    let uid: u32 = user.split(':').next().unwrap().parse().unwrap();
    assert_ne!(uid, 0, "the image must not run as root");
}

/// Replaces the variables in a text of the compose file.
fn substitute(text: &str, settings: &BTreeMap<String, String>) -> String {
    let mut parts = text.split("${");
    let mut filled = parts.next().unwrap().to_owned();
    for part in parts {
        let (inside, rest) = part.split_once('}').unwrap();
        let name = inside.split(':').next().unwrap();
        let value = settings.get(name);
        filled += value.unwrap_or_else(|| panic!("env.example lacks {name}"));
        filled += rest;
    }
    filled
}

#[test]
fn the_compose_file_is_consistent() {
    let example = file("packaging/env.example");
    let lines = example
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut settings = assignments(lines);
    for name in ["TRIBUTARY_SECRET_KEY", "POSTGRES_PASSWORD"] {
        let old = settings.insert(name.to_owned(), "ab".repeat(32));
        assert_eq!(
            old.as_deref(),
            Some(""),
            "env.example must not contain a secret"
        );
    }
    let compose: Value = yaml_serde::from_str(&file("packaging/compose.yaml")).unwrap();
    let service = &compose["services"]["tributary"];
    let environment = service["environment"].as_mapping().unwrap();
    let environment = environment.iter().map(|(name, value)| {
        let value = substitute(value.as_str().unwrap(), &settings);
        (name.as_str().unwrap().to_owned(), value)
    });
    let command = service["command"].as_sequence().unwrap();
    let words: Vec<&str> = command.iter().map(|word| word.as_str().unwrap()).collect();
    assert_starts(&words, &environment.collect());

    let built = &service["build"];
    assert_eq!(built["context"].as_str(), Some(".."));
    assert!(root().join(built["dockerfile"].as_str().unwrap()).exists());
    assert_eq!(service["read_only"].as_bool(), Some(true));
    let grace = service["stop_grace_period"].as_str().unwrap();
    assert!(seconds(grace) > drain_seconds(), "{grace}");
    let dependencies = service["depends_on"].as_mapping().unwrap();
    for (name, _) in dependencies {
        let dependency = &compose["services"][name.as_str().unwrap()];
        assert!(dependency["healthcheck"].is_mapping(), "{name:?}");
    }
    for (name, service) in compose["services"].as_mapping().unwrap() {
        for volume in service["volumes"].as_sequence().unwrap() {
            let volume = volume.as_str().unwrap().split(':').next().unwrap();
            let named = compose["volumes"].as_mapping().unwrap();
            assert!(named.contains_key(volume), "{name:?}: {volume}");
        }
    }
}

#[test]
fn the_systemd_unit_starts_a_server_and_waits_for_its_drain() {
    let unit = file("packaging/tributary.service");
    let mut words = value_in(&unit, "ExecStart").split(' ');
    assert_eq!(words.next(), Some("/usr/local/bin/tributary"));
    let words: Vec<&str> = words.collect();
    let settings = unit
        .lines()
        .filter_map(|line| line.strip_prefix("Environment="));
    assert_starts(&words, &assignments(settings));
    assert!(seconds(value_in(&unit, "TimeoutStopSec")) > drain_seconds());
    let connections = value_in(&file("crates/server/config.default.toml"), "connections")
        .parse::<u64>()
        .unwrap();
    let descriptors = value_in(&unit, "LimitNOFILE").parse::<u64>().unwrap();
    assert!(
        descriptors > connections,
        "every connection needs a file descriptor"
    );
    let user = value_in(&unit, "User");
    let users = file("packaging/tributary.sysusers");
    assert!(
        users.contains(&format!("u {user} ")),
        "tributary.sysusers lacks {user}"
    );
}

#[test]
fn the_debian_package_suggests_valid_settings() {
    let text = file("packaging/debian/environment");
    let suggested = text.lines().filter_map(|line| line.strip_prefix('#'));
    let mut settings = assignments(suggested.filter(|line| line.starts_with("TRIBUTARY_")));
    let key = settings.insert("TRIBUTARY_SECRET_KEY".to_owned(), "ab".repeat(32));
    assert_eq!(
        key.as_deref(),
        Some(""),
        "the file must not contain a secret"
    );
    assert!(settings.len() > 3, "{settings:?}");
    assert_starts(&["serve"], &settings);
}

#[test]
fn the_simulator_settings_are_valid() {
    let path = root().join("packaging/simulator.toml");
    let check = tributary(
        &["--config", path.to_str().unwrap(), "config", "check"],
        &[],
    );
    assert!(check.status.success(), "{check:?}");
}
