//! Which command runs what.

use super::args::{Command, Format, ManifestAction};
use super::context::Context;
use super::terminal::Terminal;
use super::{
    Exit, bench, config, demo, explain, exporting, forgetting, gates, heads, import, init, keys,
    looking, manifest_file, reading, record, reference, reproduce, serve, signing, taking_in,
    token, writing,
};

pub(crate) fn run(
    command: Command,
    context: &Context,
    terminal: &mut Terminal<'_>,
) -> anyhow::Result<Exit> {
    if command.needs_store() {
        context.check_store_name()?;
    }
    match command {
        Command::Demo => demo::run(terminal, context.json),
        Command::Manifest { action: ManifestAction::New } => {
            print(terminal, &manifest_file::template_for(context.now(), context.json))
        }
        Command::Gates { action } => gates::run(context, terminal, &action),
        Command::Reference => print(terminal, &reference()),
        Command::Init { manifest, passphrase } => {
            init::init(context, terminal, &manifest, passphrase)
        }
        Command::Identity { certificate: true, .. } => signing::certificate(context, terminal),
        Command::Identity { canonical, manifest, .. } => {
            init::identity(context, terminal, canonical, manifest.as_deref())
        }
        Command::Record(args) => record::run(context, terminal, args),
        Command::Import { file, no_consolidate, signed } => {
            import::run(context, terminal, &file, no_consolidate, signed)
        }
        Command::Consolidate => writing::consolidate(context, terminal),
        Command::Facts(mut args) => {
            if context.json {
                args.format = Format::Json;
            }
            reading::facts(context, terminal, args)
        }
        Command::Explain(args) => explain::run(context, terminal, &args),
        Command::Snapshot { as_of } => reading::snapshot(context, terminal, as_of),
        Command::Diff { from, to } => looking::diff(context, terminal, from, to),
        Command::Forget(args) => forgetting::forget(context, terminal, &args),
        Command::Prune(args) => forgetting::prune(context, terminal, &args),
        Command::Config { name, value } => {
            config::run(context, terminal, name.as_deref(), value.as_deref())
        }
        Command::Key { action } => keys::run(context, terminal, action),
        Command::Token { action } => token::run(context, terminal, action),
        Command::Sign(args) => signing::sign(context, terminal, &args),
        Command::Export(args) => exporting::run(context, terminal, &args),
        Command::ImportBundle(args) => taking_in::run(context, terminal, &args),
        Command::TreeHead { sign } => heads::tree_head(context, terminal, sign),
        Command::Verify => looking::verify(context, terminal),
        Command::Log(args) => reading::log(context, terminal, args.limit),
        Command::Passes(args) => reading::passes(context, terminal, args.limit),
        Command::Rebuild => reading::rebuild(context, terminal),
        Command::Serve(args) => serve::run(context, terminal, &args),
        Command::Reproduce(args) => reproduce::run(context, terminal, &args),
        Command::Bench(args) => bench::run(context, terminal, &args),
    }
}

fn print(terminal: &mut Terminal<'_>, text: &str) -> anyhow::Result<Exit> {
    terminal.out.write_all(text.as_bytes())?;
    Ok(Exit::Fine)
}
