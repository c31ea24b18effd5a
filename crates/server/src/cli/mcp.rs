//! `tributary mcp`.

use super::arguments;
use clap::Args;
use url::Url;

/// Options for an agent's access.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct McpOptions {
    /// Address of the server. Default: `TRIBUTARY_SERVER`, or `http://127.0.0.1:8080`.
    #[arg(long, value_name = "URL", value_parser = arguments::server_url)]
    pub server: Option<Url>,
    /// Offer tools that change something, such as creating a link. The key must permit it, too.
    #[arg(long)]
    pub allow_write: bool,
}
