//! `tributary config print` and `tributary config check`.

use super::print_line;
use crate::config::Config;

/// Prints the settings in force, secrets hidden.
pub fn print(config: &Config) {
    print_line(config.to_toml().trim_end());
}

/// Says what is risky. What is wrong was said when the configuration was read; only what the machine lacks
/// is left.
pub fn check(config: &Config) -> anyhow::Result<()> {
    for warning in config.warnings() {
        print_line(format!("warning: {warning}"));
    }
    if config.missing_database_folder().is_some() {
        anyhow::bail!("the server would not start: the folder of database_url does not exist");
    }
    print_line("The settings are well-formed. `tributary doctor` tries them.");
    Ok(())
}
