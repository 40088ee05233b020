//! Arguments of `serve`. The doc comments are the help texts; what a setting may be, and what it
//! is if nobody says, is in `settings`.

use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct ServeArgs {
    /// A file of settings, in TOML: a setting is named as its flag, with _ for -
    #[arg(long, env = "IPSE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Where to listen [default: 127.0.0.1:7477]; anything but loopback needs a token first
    #[arg(long, env = "IPSE_LISTEN", value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,

    /// A pass follows the append that makes so many events new [default: 64]
    #[arg(long, env = "IPSE_PASS_EVERY", value_name = "N")]
    pub(crate) pass_every: Option<String>,

    /// A pass follows once no event came for so long, in milliseconds [default: 1000]
    #[arg(long, env = "IPSE_PASS_QUIET", value_name = "MS")]
    pub(crate) pass_quiet: Option<String>,

    /// What is worth a line: error, warn, info or debug, which tells every request [default: info]
    #[arg(long, env = "IPSE_LOG_LEVEL", value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,

    /// How a line is written: text, or json for programs [default: text]
    #[arg(long, env = "IPSE_LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,

    /// The certificate chain to speak TLS with, PEM (in builds with the feature tls)
    #[arg(long, env = "IPSE_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<String>,

    /// The private key of that certificate, PEM
    #[arg(long, env = "IPSE_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<String>,

    /// What the agent can do: skills and their parameters. With it and the next two, intents are
    /// judged; each must be the file that the manifest was registered with
    #[arg(long, env = "IPSE_ECM_REGISTRY", value_name = "FILE")]
    pub(crate) ecm_registry: Option<String>,

    /// What the agent must never do: clamps, forbidden ranges, rate limits
    #[arg(long, env = "IPSE_POLICY", value_name = "FILE")]
    pub(crate) policy: Option<String>,

    /// How bold the agent is: risk appetite, ethical floor, what a person has to confirm
    #[arg(long, env = "IPSE_TEMPERAMENT", value_name = "FILE")]
    pub(crate) temperament: Option<String>,

    /// How many intents one token may propose in a minute, a sixth of them at once [default: 600]
    #[arg(long, env = "IPSE_INTENT_RATE", value_name = "N")]
    pub(crate) intent_rate: Option<String>,

    /// Print the settings, and where each one comes from, and do nothing else
    #[arg(long)]
    pub(crate) print_config: bool,
}
