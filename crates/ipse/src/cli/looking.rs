//! `diff` and `verify`: how knowledge moved, and whether anything is wrong.

use super::Exit;
use super::context::Context;

use super::terminal::{Terminal, counted};
use anyhow::{Context as _, bail};
use ipse_consolidate::V1;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Fact, FactId, FactKey, Identity, Seq};
use ipse_engine::answer::clean;
use ipse_engine::verify::{Finding, Report, Severity, verify as verify_store};
use ipse_engine::{Changed, Diff, Figure, diff as compare};
use ipse_store::sqlite::View;

/// Findings that are printed for people; programs get all of them.
const SHOWN: usize = 50;

/// A position that is asked for must lie in the log.
pub(crate) fn within(view: View<'_>, seq: u64) -> anyhow::Result<Seq> {
    let head = view.head()?;
    if seq > head.0 {
        bail!("seq {seq} is beyond the end of the log, which is at {head}");
    }
    Ok(Seq(seq))
}

pub(crate) fn diff(
    context: &Context,
    terminal: &mut Terminal<'_>,
    from: u64,
    to: u64,
) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let (from, to) = (within(view, from)?, within(view, to)?);
    let found = compare(view, &V1, from, to)?;
    if context.json {
        let json = Members::new().raw("from", from).raw("to", to);
        terminal.json(&diff_members(json, &identity, &found).finish())?;
        return Ok(Exit::Fine);
    }
    tell_diff(terminal, &found)?;
    let (added, gone, changed) = (found.added.len(), found.gone.len(), found.changed.len());
    writeln!(
        terminal.err,
        "from seq {from} to seq {to}: {added} added, {gone} gone, {changed} changed"
    )?;
    Ok(Exit::Fine)
}

/// Facts that came, went and changed, with every figure that moved.
pub(crate) fn tell_diff(terminal: &mut Terminal<'_>, found: &Diff) -> anyhow::Result<()> {
    let key = |key: &FactKey| format!("{} {}", key.kind(), clean(key.text()));
    for (mark, facts) in [("+", &found.added), ("-", &found.gone)] {
        for fact in facts {
            writeln!(terminal.out, "{mark} {}", key(&fact.key))?;
        }
    }
    for changed in &found.changed {
        writeln!(terminal.out, "~ {}", key(&changed.key))?;
        // Which event was the last is for programs: it moves with every observation.
        let told = changed.figures.iter().filter(|f| f.path != "last_supporting_event_id");
        for figure in told {
            writeln!(terminal.out, "    {}", figure_words(figure))?;
        }
    }
    Ok(())
}

fn figure_words(figure: &Figure) -> String {
    let path = clean(&figure.path);
    let text = |json: &Option<String>| json.as_deref().map_or("-".to_string(), clean);
    let moved = format!("{path}  {} → {}", text(&figure.from), text(&figure.to));
    match figure.by {
        Some(by) if by.get() > 0 => format!("{moved}  (+{by})"),
        Some(by) => format!("{moved}  ({by})"),
        None => moved,
    }
}

/// The same for programs, behind what is in `json` already.
pub(crate) fn diff_members(json: Members, identity: &Identity, found: &Diff) -> Members {
    let named = |key: &FactKey| {
        Members::new()
            .text("fact_id", &FactId::new(identity, key).to_string())
            .text("fact_kind", key.kind().name())
            .text("fact_key", key.text())
    };
    let fact = |fact: &Fact| named(&fact.key).raw("value", &fact.value).finish();
    let figure = |figure: &Figure| {
        let or_null = |json: &Option<String>| json.clone().unwrap_or_else(|| "null".to_string());
        let members = Members::new()
            .text("path", &figure.path)
            .raw("from", or_null(&figure.from))
            .raw("to", or_null(&figure.to));
        match figure.by {
            Some(by) => members.raw("by", by).finish(),
            None => members.finish(),
        }
    };
    let changed = |changed: &Changed| {
        named(&changed.key).raw("figures", list(changed.figures.iter().map(figure))).finish()
    };
    json.raw("added", list(found.added.iter().map(fact)))
        .raw("gone", list(found.gone.iter().map(fact)))
        .raw("changed", list(found.changed.iter().map(changed)))
}

pub(crate) fn verify(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let manifests = reader.manifests()?;
    let manifest = manifests.iter().find(|(hash, _)| *hash == identity.to_string());
    let (_, manifest) = manifest.context("the identity is no longer registered")?;
    let snapshot = reader.view(&identity)?;
    let bar = terminal.bar("events");
    context.keys().check_public()?;
    let outside = context.outside(&identity)?;
    let report = verify_store(&snapshot, &V1, &identity, manifest, &outside, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    if context.json {
        terminal.json(&report_json(&identity, &report))?;
    } else {
        tell(terminal, &identity, &report)?;
    }
    Ok(Exit::fine_if(report.findings.is_empty()))
}

fn report_json(identity: &Identity, report: &Report) -> String {
    let finding = |finding: &Finding| {
        Members::new()
            .text("severity", finding.severity.name())
            .text("place", &finding.place)
            .text("message", &finding.message)
            .text("hint", finding.hint)
            .finish()
    };
    Members::new()
        .text("identity_hash", &identity.to_string())
        .raw("events", report.events)
        .raw("facts", report.facts)
        .raw("findings", list(report.findings.iter().map(finding)))
        .raw("notes", list(report.notes.iter().map(|note| quoted(note))))
        .finish()
}

fn tell(terminal: &mut Terminal<'_>, identity: &Identity, report: &Report) -> anyhow::Result<()> {
    for finding in report.findings.iter().take(SHOWN) {
        let (severity, place) = (finding.severity.name(), clean(&finding.place));
        writeln!(terminal.out, "{severity}: {place}: {}", clean(&finding.message))?;
    }
    if report.findings.len() > SHOWN {
        let more = report.findings.len() - SHOWN;
        writeln!(terminal.out, "… and {}; --json lists them all", counted(more as u64, "finding"))?;
    }
    for severity in [Severity::Critical, Severity::Error] {
        let of_it = report.findings.iter().find(|finding| finding.severity == severity);
        if let Some(finding) = of_it {
            writeln!(terminal.err, "hint ({}): {}", severity.name(), finding.hint)?;
        }
    }
    for note in &report.notes {
        writeln!(terminal.out, "note: {}", clean(note))?;
    }
    let (events, facts) = (counted(report.events, "event"), counted(report.facts, "fact"));
    let findings = match report.findings.len() {
        0 => "no findings".to_string(),
        n => counted(n as u64, "finding"),
    };
    writeln!(terminal.out, "{identity}\n{events}, {facts}: {findings}")?;
    Ok(())
}
