//! `record`: one event from flags, through the same door as everything else.

use crate::context::Context;
use crate::pass_report::pass_words;
use crate::terminal::Terminal;
use crate::vocabulary::words;
use crate::{Exit, Ran};
use anyhow::{Context as _, bail};
use ipse_core::event::EXECUTION_RESULT;
use ipse_core::json::Members;
use ipse_core::json_parse::{self, Rule as JsonRule};
use ipse_core::{Admitted, Columns, EventRef, Outcome, Seq, hex};
use ipse_door::{Origin, Refusal, Rule, admit};
use ipse_engine::{Host, PassReport, Then, Trigger, pass_json, refusal_of};
use ipse_store::Appended;

/// Append one event from flags, and renew the facts
///
/// Example: ipse record --skill manipulation.grasp --target glass_cup --env ward3 --param
/// force_n=25 --success
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// What kind of event it is
    #[arg(long = "type", default_value = EXECUTION_RESULT, value_name = "TYPE")]
    event_type: String,
    /// The skill that was tried
    #[arg(long, value_name = "SKILL_ID")]
    skill: Option<String>,
    /// The class of the object it was tried on
    #[arg(long, value_name = "TARGET_CLASS")]
    target: Option<String>,
    /// The environment it was tried in
    #[arg(long, value_name = "ENVIRONMENT")]
    env: Option<String>,
    /// The intent that it goes back to, as the gates named it
    #[arg(long, value_name = "EVENT_REF", value_parser = event_ref)]
    intent: Option<String>,

    /// The zone it happened in
    #[arg(long)]
    zone: Option<String>,
    /// A parameter it was tried with; may be given several times
    #[arg(long, value_name = "NAME=NUMBER")]
    param: Vec<String>,
    /// Why it failed
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    #[command(flatten)]
    outcome: OutcomeArgs,
    /// The event's id within its source; made up if absent
    #[arg(long)]
    id: Option<String>,
    /// Who reports it
    #[arg(long, default_value = "cli")]
    source: String,
    /// When it happened, RFC 3339; now if absent
    #[arg(long)]
    time: Option<String>,
    /// Store the event but leave the facts as they are
    #[arg(long)]
    no_consolidate: bool,
}

#[derive(clap::Args, Debug)]
#[group(multiple = false)]
struct OutcomeArgs {
    /// It worked
    #[arg(long)]
    success: bool,
    /// It did not
    #[arg(long)]
    failed: bool,
    /// It ended so; only success and failed count for a rate
    #[arg(
        long,
        value_name = "WORD",
        value_parser = words(Outcome::ALL.map(Outcome::name), Outcome::parse)
    )]
    outcome: Option<Outcome>,
}

/// The name of an event.
fn event_ref(text: &str) -> Result<String, &'static str> {
    let name = ipse_core::EventRef::parse(text).map(|name| name.to_string());
    name.ok_or("an event ref is ev_ and 32 hex digits")
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> Ran {
    if args.event_type == EXECUTION_RESULT && outcome(&args.outcome).is_none() {
        bail!("how did it end? give one of --success, --failed, --outcome WORD");
    }
    let mut log = context.write(terminal)?;
    let event = event_json(args, log.host())?;
    let admitted = match admit(event.as_bytes(), Origin::Producer, || log.host().salt()) {
        Ok(admitted) => admitted,
        Err(refusal) => return refused(context, terminal, &refusal),
    };
    let then = match args.no_consolidate {
        true => Then::Nothing,
        false => Then::Consolidate(Trigger::Manual),
    };
    let event_ref = admitted.event_ref;
    note_unusable(terminal, args, &admitted)?;
    let done = log.append(&[admitted], then)?;
    let (status, seq) = match done.appended[0] {
        Appended::New(seq) => ("appended", seq),
        Appended::Duplicate(seq) => ("duplicate", seq),
        other => {
            let is_conflict = matches!(other, Appended::Conflict(_));
            if is_conflict && args.id.is_some() && args.time.is_none() {
                writeln!(terminal.err, "hint: to repeat a record safely, give --time as well")?;
            }
            let refusal = refusal_of(other).expect("BUG: an event is neither in the log nor not");
            return refused(context, terminal, &refusal);
        }
    };
    told(context, terminal, (event_ref, seq, status), done.pass.as_ref(), args.no_consolidate)?;
    match done.pass_error {
        Some(error) => Err(error).context("the event is stored, but the pass failed"),
        None => Ok(Exit::fine_if(context.tell_head(terminal, &mut log)?)),
    }
}

/// Says so if something that was given is kept but can feed no fact.
fn note_unusable(terminal: &mut Terminal<'_>, args: &Args, event: &Admitted) -> anyhow::Result<()> {
    let columns = Columns::decode(&event.columns).unwrap_or_default();
    if columns.params.len() < args.param.len() {
        let words = "a parameter without a name or beyond ±1000000000 is kept but feeds no fact";
        writeln!(terminal.err, "note: {words}")?;
    }
    let given = [&args.skill, &args.target, &args.env, &args.zone, &args.reason];
    let read = [columns.skill, columns.target, columns.environment, columns.zone, columns.reason];
    if given.iter().zip(read).any(|(given, read)| given.is_some() && read.is_none()) {
        let words = "an empty text or one over 1024 bytes is kept but feeds no fact";
        writeln!(terminal.err, "note: {words}")?;
    }
    Ok(())
}

fn told(
    context: &Context,
    terminal: &mut Terminal<'_>,
    (event_ref, seq, status): (EventRef, Seq, &str),
    pass: Option<&PassReport>,
    no_pass: bool,
) -> anyhow::Result<()> {
    if !context.json {
        writeln!(terminal.out, "{event_ref}")?;
        let pass = if no_pass { "facts left as they are".into() } else { pass_words(pass) };
        writeln!(terminal.err, "{status} at seq {seq}; {pass}")?;
        return Ok(());
    }
    let json = Members::new()
        .text("event_ref", &event_ref.to_string())
        .raw("seq", seq)
        .text("status", status)
        .raw("pass", pass_json(pass))
        .finish();
    Ok(terminal.json(&json)?)
}

fn refused(context: &Context, terminal: &mut Terminal<'_>, refusal: &Refusal) -> Ran {
    let status = if refusal.rule == Rule::Conflict { "conflict" } else { "refused" };
    if context.json {
        let json = Members::new()
            .raw("event_ref", "null")
            .raw("seq", "null")
            .text("status", status)
            .raw("pass", "null")
            .text("field", &refusal.field)
            .text("rule", refusal.rule.code())
            .finish();
        terminal.json(&json)?;
    }
    writeln!(terminal.err, "{status}: {refusal}; nothing was stored")?;
    Ok(Exit::Found)
}

fn outcome(args: &OutcomeArgs) -> Option<Outcome> {
    match (args.success, args.failed) {
        (true, _) => Some(Outcome::Success),
        (_, true) => Some(Outcome::Failed),
        _ => args.outcome,
    }
}

fn event_json(args: &Args, host: &mut dyn Host) -> anyhow::Result<String> {
    let mut params = Members::new();
    let mut seen = Vec::new();
    for param in &args.param {
        let (name, number) = param_parts(param)?;
        if seen.contains(&name) {
            bail!("--param {name} is given twice");
        }
        seen.push(name);
        params = params.raw(name, number);
    }
    let mut data = Members::new();
    let texts = [
        ("skill_id", &args.skill),
        ("target_class", &args.target),
        ("environment", &args.env),
        ("zone", &args.zone),
        ("intent", &args.intent),
        ("failure_reason", &args.reason),
        ("outcome", &outcome(&args.outcome).map(|outcome| outcome.name().to_string())),
    ];
    for (name, text) in texts {
        data = data.optional(name, text.as_deref().map(ipse_core::json::quoted));
    }
    if !params.is_empty() {
        data = data.raw("params", params.finish());
    }
    let id = args.id.clone().unwrap_or_else(|| hex::encode(&host.salt()));
    let time = args.time.clone().unwrap_or_else(|| host.now().to_string());
    Ok(Members::new()
        .text("id", &id)
        .text("source", &args.source)
        .text("type", &args.event_type)
        .text("time", &time)
        .raw("data", data.finish())
        .finish())
}

fn param_parts(param: &str) -> anyhow::Result<(&str, &str)> {
    let (name, number) =
        param.split_once('=').with_context(|| format!("--param {param}: expected NAME=NUMBER"))?;
    let looks_like_one = number.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    match json_parse::parse(number.as_bytes(), 0) {
        Ok(_) if looks_like_one => Ok((name, number)),
        // The door says which rule such a number breaks.
        Err(error) if matches!(error.rule, JsonRule::UnsafeInteger | JsonRule::Overflow) => {
            Ok((name, number))
        }
        _ => bail!("--param {name}: `{number}` is not a number"),
    }
}
