//! `tributary config print` and `tributary config check`.

use super::print_line;
use crate::config::Config;

/// Prints the effective settings with secrets hidden.
pub fn print(config: &Config) {
    print_line(config.to_toml().trim_end());
}

/// Prints warnings. Errors were reported when the configuration was loaded, except for a missing
/// database folder.
pub fn check(config: &Config) -> anyhow::Result<()> {
    for warning in config.warnings() {
        print_line(format!("warning: {warning}"));
    }
    if config.missing_database_folder().is_some() {
        anyhow::bail!("the server cannot start: the folder in database_url does not exist");
    }
    print_line("The settings are valid. Run `tributary doctor` to test them.");
    Ok(())
}
