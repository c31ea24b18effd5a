//! The `tributary` binary.

mod documents;

use clap::Parser as _;
use documents::DOCUMENTS;
use std::io::Write as _;
use std::process::ExitCode;
use tributary_server::cli::Cli;
use tributary_server::exit_code::exit_code;

fn main() -> ExitCode {
    match tributary_server::run(Cli::parse(), DOCUMENTS) {
        Ok(code) => code,
        Err(error) => {
            // One line per cause: the first says what failed, the last says why.
            let mut stderr = std::io::stderr().lock();
            let _gone = writeln!(stderr, "tributary: {error}");
            for cause in error.chain().skip(1) {
                let _gone = writeln!(stderr, "  caused by: {cause}");
            }
            ExitCode::from(exit_code(&error))
        }
    }
}
