//! `record`: appends one event from flags, through the same door as all events.

use crate::context::Context;
use crate::pass_report::pass_words;
use crate::terminal::Terminal;
use crate::vocabulary::words;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
use ipse::SystemHost;
use ipse_core::event::EXECUTION_RESULT;
use ipse_core::json::{Members, quoted};
use ipse_core::json_parse::{self, Rule as JsonRule};
use ipse_core::{Admitted, Columns, EventRef, Outcome, Seq, hex};
use ipse_door::{Origin, Refusal, Rule, admit};
use ipse_engine::{
    Acknowledged, Host, Log, NextStep, PassReport, Trigger, pass_json, refusal_of, type_hint,
};
use ipse_inspect::Look;
use ipse_intents::{OutcomeError, Report};
use ipse_store::Appended;

/// Append one event from flags, and run a pass
///
/// With --intent and without --skill it records the outcome of that intent: skill, target,
/// environment and, unless --param is given, parameters are those that the gates admitted. The id
/// is computed from the intent, so recording it again is a duplicate.
///
/// Example: ipse record --skill manipulation.grasp --target glass_cup --environment ward3
/// --param force_n=25 --success
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Set the type of the event
    #[arg(long = "type", default_value = EXECUTION_RESULT, value_name = "TYPE")]
    event_type: String,
    /// Set the skill that was tried
    #[arg(long, value_name = "SKILL_ID")]
    skill: Option<String>,
    /// Set the class of the object that it was tried on
    #[arg(long, value_name = "TARGET_CLASS")]
    target: Option<String>,
    /// Set the environment that it was tried in
    #[arg(long, visible_alias = "env")]
    environment: Option<String>,
    /// Name the intent that led to the event
    #[arg(long, value_name = "EVENT_REF", value_parser = event_ref)]
    intent: Option<EventRef>,

    /// Set the zone where it happened
    #[arg(long)]
    zone: Option<String>,
    /// Set a parameter that it was tried with; repeatable
    #[arg(long, value_name = "NAME=NUMBER")]
    param: Vec<String>,
    /// Set the reason of the failure
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    #[command(flatten)]
    outcome: OutcomeArgs,
    /// Set the event's id within its source; random if absent
    #[arg(long)]
    id: Option<String>,
    /// Set the source that reports the event
    #[arg(long, default_value = "cli")]
    source: String,
    /// Set the time of the event, RFC 3339; now if absent
    #[arg(long)]
    time: Option<String>,
    /// Store the event without a pass
    #[arg(long)]
    no_consolidate: bool,
}

#[derive(clap::Args, Debug)]
#[group(multiple = false)]
struct OutcomeArgs {
    /// Record a success
    #[arg(long)]
    success: bool,
    /// Record a failure
    #[arg(long)]
    failed: bool,
    /// Record this outcome; only success and failed count for a rate
    #[arg(
        long,
        value_name = "WORD",
        value_parser = words(Outcome::ALL.map(Outcome::name), Outcome::parse)
    )]
    outcome: Option<Outcome>,
}

/// Parses an event ref.
fn event_ref(text: &str) -> Result<EventRef, &'static str> {
    EventRef::parse(text).ok_or("an event ref is ev_ and 32 hex digits")
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    if args.event_type == EXECUTION_RESULT && outcome(&args.outcome).is_none() {
        bail!("give --success, --failed or --outcome WORD");
    }
    let reported = reported_intent(args)?;
    let mut log = context.write(terminal)?;
    let (event_ref, done) = match reported {
        Some(intent) => match report(context, args, &intent, &mut log)? {
            Ok(reported) => reported,
            Err(unreported) => return not_reported(context, terminal, &unreported),
        },
        None => {
            let event = event_json(args, log.host())?;
            let admitted = match admit(event.as_bytes(), Origin::Producer, || log.host().salt()) {
                Ok(admitted) => admitted,
                Err(refusal) => return refused(context, terminal, &refusal),
            };
            note_unusable(terminal, args, &admitted)?;
            (admitted.event_ref, log.append(&[admitted], then(args))?)
        }
    };
    let (status, seq) = match done.appended[0] {
        Appended::New(seq) => ("appended", seq),
        Appended::Duplicate(seq) => ("duplicate", seq),
        other => {
            let is_conflict = matches!(other, Appended::Conflict(_));
            if is_conflict && args.id.is_some() && args.time.is_none() {
                writeln!(terminal.err, "hint: to repeat a record safely, give --time as well")?;
            }
            let refusal = refusal_of(other).expect("BUG: a rejected event has no refusal");
            return refused(context, terminal, &refusal);
        }
    };
    print_result(
        context,
        terminal,
        (event_ref, seq, status),
        done.pass.as_ref(),
        args.no_consolidate,
    )?;
    match done.pass_error {
        Some(error) => Err(error).context("the event is stored, but the pass failed"),
        None => Ok(Exit::fine_if(context.tell_head(terminal, &mut log)?)),
    }
}

/// The step after the append.
fn then(args: &Args) -> NextStep {
    match args.no_consolidate {
        true => NextStep::Nothing,
        false => NextStep::Consolidate(Trigger::Manual),
    }
}

/// Returns the intent whose outcome is recorded, if the other fields come from it.
fn reported_intent(args: &Args) -> anyhow::Result<Option<EventRef>> {
    let Some(intent) = args.intent.filter(|_| args.skill.is_none()) else { return Ok(None) };
    if args.event_type != EXECUTION_RESULT {
        return Ok(None);
    }
    let own = [&args.target, &args.environment, &args.zone, &args.id];
    if own.iter().any(|value| value.is_some()) {
        bail!(
            "--target, --env, --zone and --id need --skill: without --skill the outcome of the \
             intent is recorded as the gates admitted it"
        );
    }
    Ok(Some(intent))
}

/// Records the outcome of an intent.
fn report(
    context: &Context,
    args: &Args,
    intent: &EventRef,
    log: &mut Log,
) -> anyhow::Result<Result<(EventRef, Acknowledged), OutcomeError>> {
    let report = match Report::read(report_json(args)?.as_bytes()) {
        Ok(report) => report,
        Err(unreported) => return Ok(Err(unreported)),
    };
    let look = Look::at(context.store()?, context.read()?.1);
    let mut last = None;
    let sent = report.send(&look, intent, &args.source, &mut SystemHost::new(), |event| {
        let done = log.append(std::slice::from_ref(event), then(args))?;
        let appended = done.appended[0];
        last = Some(done);
        Ok(appended)
    })?;
    Ok(sent.map(|(event, _)| (event.event_ref, last.expect("BUG: nothing was appended"))))
}

fn report_json(args: &Args) -> anyhow::Result<String> {
    let outcome = outcome(&args.outcome).map(|outcome| quoted(outcome.name()));
    Ok(Members::new()
        .optional("outcome", outcome)
        .optional("failure_reason", args.reason.as_deref().map(quoted))
        .optional("params", params(args)?)
        .optional("time", args.time.as_deref().map(quoted))
        .finish())
}

fn not_reported(
    context: &Context,
    terminal: &mut Terminal<'_>,
    why: &OutcomeError,
) -> CommandResult {
    if let OutcomeError::Refused(refusal) = why {
        return refused(context, terminal, refusal);
    }
    if context.json {
        let json = Members::new()
            .raw("event_ref", "null")
            .raw("seq", "null")
            .text("status", why.code())
            .raw("pass", "null");
        terminal.json(&json.finish())?;
    }
    writeln!(terminal.err, "{}: {why}; nothing was stored", why.code())?;
    Ok(Exit::Found)
}

/// Prints a note if a given value is stored but can feed no fact.
fn note_unusable(terminal: &mut Terminal<'_>, args: &Args, event: &Admitted) -> anyhow::Result<()> {
    let columns = Columns::decode(&event.columns).unwrap_or_default();
    if columns.params.len() < args.param.len() {
        let words = "a parameter without a name or beyond ±1000000000 is kept but feeds no fact";
        writeln!(terminal.err, "note: {words}")?;
    }
    if let Some(hint) = type_hint(&event.event_type) {
        writeln!(terminal.err, "hint: {hint}")?;
    }
    let given = [&args.skill, &args.target, &args.environment, &args.zone, &args.reason];
    let read = [columns.skill, columns.target, columns.environment, columns.zone, columns.reason];
    if given.iter().zip(read).any(|(given, read)| given.is_some() && read.is_none()) {
        let words = "an empty text or one over 1024 bytes is kept but feeds no fact";
        writeln!(terminal.err, "note: {words}")?;
    }
    Ok(())
}

fn print_result(
    context: &Context,
    terminal: &mut Terminal<'_>,
    (event_ref, seq, status): (EventRef, Seq, &str),
    pass: Option<&PassReport>,
    no_pass: bool,
) -> anyhow::Result<()> {
    if !context.json {
        writeln!(terminal.out, "{event_ref}")?;
        let pass = if no_pass { "no pass was run".into() } else { pass_words(pass) };
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

fn refused(context: &Context, terminal: &mut Terminal<'_>, refusal: &Refusal) -> CommandResult {
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
    writeln!(terminal.asks(), "{status}: {refusal}; nothing was stored")?;
    Ok(Exit::Found)
}

fn outcome(args: &OutcomeArgs) -> Option<Outcome> {
    match (args.success, args.failed) {
        (true, _) => Some(Outcome::Success),
        (_, true) => Some(Outcome::Failed),
        _ => args.outcome,
    }
}

/// The given parameters, as JSON.
fn params(args: &Args) -> anyhow::Result<Option<String>> {
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
    Ok(Some(params).filter(|params| !params.is_empty()).map(Members::finish))
}

fn event_json(args: &Args, host: &mut dyn Host) -> anyhow::Result<String> {
    let mut data = Members::new().optional("params", params(args)?);
    let texts = [
        ("skill_id", &args.skill),
        ("target_class", &args.target),
        ("environment", &args.environment),
        ("zone", &args.zone),
        ("intent", &args.intent.map(|intent| intent.to_string())),
        ("failure_reason", &args.reason),
        ("outcome", &outcome(&args.outcome).map(|outcome| outcome.name().to_string())),
    ];
    for (name, text) in texts {
        data = data.optional(name, text.as_deref().map(quoted));
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
        // The door rejects such a number and names the rule.
        Err(error) if matches!(error.rule, JsonRule::UnsafeInteger | JsonRule::Overflow) => {
            Ok((name, number))
        }
        _ => bail!("--param {name}: `{number}` is not a number"),
    }
}
