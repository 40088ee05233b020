//! `log`: lists the events of an identity, all or those that a filter finds.
//!
//! **Invariant:** rows are printed as they are found: a log may be larger than memory.

use crate::context::Context;
use crate::pager::paged;
use crate::terminal::{Terminal, to_seconds};
use crate::vocabulary::{at_least_one, position, since, until};
use crate::{CommandResult, Exit};
use anyhow::ensure;
use ipse_core::event::EXECUTION_RESULT;
use ipse_core::{Seq, Time};
use ipse_inspect::{Found, LogFilter, LogRow, LogSearch};
use ipse_store::View;
use std::ops::RangeInclusive;

/// List the events, oldest first
///
/// Filters combine. The times of events decide, not those at which they were stored; a date is a
/// whole day in UTC. A forgotten event keeps its time and its type, and no other filter finds it.
///
/// On a terminal, long lists go through a pager: `IPSE_PAGER`, else `PAGER`, else `less`.
///
/// Example: ipse log --since 2026-05-03 --until 2026-05-03 --failed
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show events from this time or date on
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Time>,
    /// Show events up to this time, or to the end of this date
    #[arg(long, value_name = "TIME", value_parser = until)]
    until: Option<Time>,
    /// Show only attempts and intents of this skill
    #[arg(long, value_name = "SKILL_ID")]
    skill: Option<String>,
    /// Show only events about this class of objects
    #[arg(long, value_name = "TARGET_CLASS")]
    target: Option<String>,
    /// Show only attempts that failed
    #[arg(long)]
    failed: bool,
    /// Show only events of this type, such as intent
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Show only events of this source
    #[arg(long)]
    source: Option<String>,
    /// Show the newest N, newest first
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>,
          conflicts_with_all = ["limit", "after"])]
    last: Option<u64>,
    /// Show only the newest N, oldest first; with --after, the first N
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>)]
    limit: Option<u64>,
    /// Show the events after this position
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true, value_parser = position)]
    after: Option<u64>,
}

impl Args {
    fn filter(&self) -> LogFilter {
        LogFilter {
            since: self.since,
            until: self.until,
            skill: self.skill.clone(),
            target: self.target.clone(),
            failed: self.failed,
            event_type: self.event_type.clone(),
            source: self.source.clone(),
        }
    }
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let filter = args.filter();
    ensure!(!filter.is_backwards(), "--since is after --until: no event can match");
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let head = view.head()?;
    if head.0 == 0 {
        writeln!(terminal.err, "the log is empty: run `ipse import` or `ipse record`")?;
        return Ok(Exit::Found);
    }
    let (range, newest_first) = range(view, args, &filter, head)?;
    let limit = args.last.or(args.after.and(args.limit)).unwrap_or(u64::MAX);
    let search = LogSearch::new(view, range, &filter, newest_first, limit)?;
    let list = List { json: context.json, width: head.to_string().len().max(3), limit };
    let (printed, rest) = match context.json {
        true => list.print(terminal, search)?,
        false => paged(terminal, |terminal| list.print(terminal, search))?,
    };
    if printed == 0 {
        writeln!(
            terminal.err,
            "{}",
            if filter.is_empty() { "no event" } else { "no event matches" }
        )?;
    }
    if let Some(next) = rest.filter(|_| args.after.is_some()) {
        writeln!(terminal.err, "there may be more: add --after {}", next.0 - 1)?;
    }
    Ok(Exit::fine_if(printed > 0))
}

/// The range to search, and whether from its end.
fn range(
    view: View<'_>,
    args: &Args,
    filter: &LogFilter,
    head: Seq,
) -> anyhow::Result<(RangeInclusive<Seq>, bool)> {
    if args.last.is_some() {
        return Ok((Seq(1)..=head, true));
    }
    let first = match (args.after, args.limit) {
        (Some(after), _) => Seq(after.saturating_add(1)),
        (None, None) => Seq(1),
        (None, Some(limit)) => nth_newest(view, filter, head, limit)?,
    };
    Ok((first..=head, false))
}

/// The position of the N-th newest match, or of the oldest one if there are fewer.
fn nth_newest(view: View<'_>, filter: &LogFilter, head: Seq, n: u64) -> anyhow::Result<Seq> {
    if filter.is_empty() {
        return Ok(Seq(head.0.saturating_sub(n - 1).max(1)));
    }
    let mut search = LogSearch::new(view, Seq(1)..=head, filter, true, n)?;
    let (mut found, mut oldest) = (0, head);
    while found < n {
        match search.step()? {
            Found::Row(row) => (found, oldest) = (found + 1, row.stored.seq),
            Found::Nothing => {}
            Found::End => break,
        }
    }
    Ok(oldest)
}

/// The form of a list.
struct List {
    json: bool,
    /// The width of a position.
    width: usize,
    limit: u64,
}

/// The narrowest terminal on which time and event stand beside each other.
const BESIDE: usize = 66;
/// The width of a time in seconds.
const TIME: usize = 20;

impl List {
    /// Prints the events found. Returns their number, and where a search that was not completed
    /// goes on.
    fn print(
        &self,
        terminal: &mut Terminal<'_>,
        mut search: LogSearch<'_>,
    ) -> anyhow::Result<(u64, Option<Seq>)> {
        let mut printed = 0;
        while printed < self.limit && !terminal.unread.get() {
            match search.step()? {
                Found::Row(row) => {
                    self.row(terminal, &row, printed == 0)?;
                    printed += 1;
                }
                Found::Nothing => {}
                Found::End => break,
            }
        }
        Ok((printed, search.next_position()))
    }

    fn row(&self, terminal: &mut Terminal<'_>, row: &LogRow, is_first: bool) -> anyhow::Result<()> {
        if self.json {
            terminal.json(&row.listed())?;
            return Ok(());
        }
        match terminal.width().map(usize::from) {
            None => {
                if is_first {
                    writeln!(terminal.out, "{}", LogRow::header(self.width))?;
                }
                writeln!(terminal.out, "{}", row.line(self.width))?;
            }
            Some(columns) => {
                if is_first && columns >= BESIDE {
                    let header = format!("{:>1$}  {2:<TIME$}  WHAT", "SEQ", self.width, "TIME");
                    writeln!(terminal.out, "{}", terminal.colour.strong(&header))?;
                } else if !is_first && columns < BESIDE {
                    writeln!(terminal.out)?;
                }
                for line in self.lines(row, columns) {
                    writeln!(terminal.out, "{line}")?;
                }
            }
        }
        Ok(())
    }

    /// The lines of a row on a terminal. The event ref is the last word, and is never broken.
    fn lines(&self, row: &LogRow, columns: usize) -> Vec<String> {
        let stored = &row.stored;
        let (seq, time) = (stored.seq.to_string(), to_seconds(stored.time));
        let kind = if stored.event_type == EXECUTION_RESULT { String::new() } else { row.kind() };
        let words = [kind, row.what(), stored.event_ref.to_string()];
        let words = words.iter().flat_map(|text| text.split(' ')).filter(|word| !word.is_empty());
        let start = format!("{seq:>0$}  {time:<TIME$}  ", self.width);
        if columns < BESIDE {
            let wrapped = wrapped(words, columns.saturating_sub(2));
            let wrapped = wrapped.into_iter().map(|line| format!("  {line}"));
            return std::iter::once(format!("{seq}  {time}")).chain(wrapped).collect();
        }
        let lines = wrapped(words, columns - start.len()).into_iter().enumerate();
        let indent = " ".repeat(start.len());
        lines
            .map(|(n, line)| if n == 0 { start.clone() + &line } else { indent.clone() + &line })
            .collect()
    }
}

/// The words in lines of at most this many characters. Only a longer word is broken.
fn wrapped<'w>(words: impl Iterator<Item = &'w str>, columns: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let length = |text: &str| text.chars().count();
    for word in words {
        if !line.is_empty() && length(&line) + 1 + length(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if length(&line) >= columns.max(1) {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}
