//! `tributary completions` and `tributary man`.

use crate::cli::Cli;
use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;
use std::io::Write as _;
use std::path::Path;

/// Prints the completions for a shell.
pub fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tributary", &mut text);
    print(&text)
}

/// Prints the manual page, or writes the pages for all commands to a folder.
pub fn pages(folder: Option<&Path>) -> anyhow::Result<()> {
    let Some(folder) = folder else {
        let mut text = Vec::new();
        Man::new(Cli::command()).render(&mut text)?;
        return print(&text);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .with_context(|| format!("cannot write the manual to {}", folder.display()))
}

fn print(text: &[u8]) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text) {
        // A closed pipe (`| head`) is not an error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
