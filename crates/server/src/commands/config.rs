//! `tributary config print` and `tributary config check`.

use super::say;
use crate::config::Config;

/// Prints the settings in force, secrets hidden.
pub fn print(config: &Config) {
    say(config.to_toml().trim_end());
}

/// Says what is risky. What is wrong was said when the configuration was read.
pub fn check(config: &Config) {
    for warning in config.warnings() {
        say(format!("warning: {warning}"));
    }
    say("The server would start with these settings.");
}
