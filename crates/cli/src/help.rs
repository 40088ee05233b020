//! The help of `ipse` itself: the commands in groups, by purpose.
//!
//! **Invariant:** every command that is not hidden is in exactly one group (a test compares them).

use crate::args::Args;
use clap::{Command, CommandFactory};

/// The groups, in the order of the help.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Start", &["demo", "manifest", "gates", "init", "identity"]),
    ("Feed", &["record", "import", "sign", "consolidate"]),
    ("Ask", &["facts", "explain", "skills", "log", "passes", "diff", "drift", "snapshot"]),
    ("Plan", &["may-attempt", "suggest"]),
    (
        "Prove",
        &["verify", "rebuild", "tree-head", "proof", "witness", "export", "import-bundle", "key"],
    ),
    ("Forget", &["forget", "prune"]),
    ("Serve and operate", &["serve", "rules", "token", "config", "migrate", "completions", "man"]),
    ("Experiment", &["evaluate", "bench", "reproduce"]),
];
/// Columns before the description of a command.
const INDENT: usize = 17;
/// Columns of a line, as in the rest of the help.
const WIDTH: usize = 80;

/// The command line with its grouped help.
pub(crate) fn command() -> Command {
    let command = Args::command();
    let groups = groups(&command);
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
         Options:\n{{options}}{{after-help}}"
    ))
}

/// The commands of each group, one line or more for each command.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let known = names.iter().filter_map(|name| command.find_subcommand(name));
        let known: Vec<_> = known.filter(|command| !command.is_hide_set()).collect();
        if known.is_empty() {
            continue;
        }
        text.push_str(&format!("{heading}:\n"));
        for command in known {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&entry(command.get_name(), &about));
        }
        text.push('\n');
    }
    text
}

/// A name and its description, wrapped.
fn entry(name: &str, about: &str) -> String {
    let mut line = format!("  {name:<width$}", width = INDENT - 2);
    let mut text = String::new();
    for word in about.split(' ') {
        let begun = line.trim_end().len() > INDENT || line.len() > INDENT;
        if begun && line.len() + 1 + word.len() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(INDENT);
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    format!("{text}{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Args::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut shown: Vec<_> = shown.map(Command::get_name).collect();
        let optional = ["bench", "evaluate", "reproduce"];
        let mut grouped: Vec<_> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        if !cfg!(feature = "experiments") {
            grouped.retain(|name| !optional.contains(name));
        }
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn descriptions_are_wrapped_and_aligned() {
        assert_eq!(entry("log", "List events"), "  log            List events\n");
        let long = "word ".repeat(20);
        let text = entry("log", long.trim());
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("                 word"), "{text}");
        assert_eq!(text.split_whitespace().count(), 21);
    }
}
