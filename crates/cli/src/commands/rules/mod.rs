//! `rules`: shows the rules of a log, and changes them under the operator's approval.
//!
//! **Invariant:** a rejected change writes nothing.

mod approve;
mod shadow;

use crate::context::Context;
use crate::pass_report::pass_words;
use crate::terminal::Terminal;
use crate::vocabulary::Nested;
use crate::{CommandResult, Exit};
use anyhow::Context as _;
use ipse_consolidate::Rules;
use ipse_core::json::Members;
use ipse_door::printable;
use ipse_engine::{Log, PassReport, RulesChange};
use ipse_inspect::{Look, RulesList};
use ipse_ledger::RuleSetName;
use std::path::PathBuf;

pub(crate) type Args = Nested<Action>;

/// The largest approval that is read: an event cannot hold a larger one.
const MAX_APPROVAL_BYTES: u64 = 64 << 10;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    /// List the rule sets of the log, and what happened before and since each activation
    ///
    /// Attempts, failures and denied intents are counted from the previous activation to this one,
    /// and from this one to the end of the log.
    List,

    /// Show one rule set: its stage, since when, who approved it, and its descriptor
    ///
    /// Example: ipse rules show v1
    Show {
        #[command(flatten)]
        which: Version,
    },

    /// Show the facts that another rule set would give; planners never read them
    ///
    /// Example: ipse rules facts v2 --skill manipulation.grasp
    Facts(shadow::Args),

    /// Compare the facts of a rule set with those of the rules in force
    ///
    /// The report is a function of the log up to a position. The operator approves exactly this
    /// report: write it to a file with -o.
    ///
    /// Example: ipse rules report v2 -o report.json
    Report(approve::ReportArgs),

    /// Record that a rule set is proposed; no fact changes
    ///
    /// Example: ipse rules propose v2
    Propose {
        #[command(flatten)]
        which: Version,
    },

    /// End an open proposal without an activation
    Withdraw {
        #[command(flatten)]
        which: Version,
    },

    /// Sign a report with the operator's key: the approval of the change
    ///
    /// The report is computed again first, and must be the same.
    ///
    /// Example: ipse rules approve v2 --report report.json -o approval.json
    Approve(approve::ApproveArgs),

    /// Put an approved rule set in force, and derive all facts again, in one transaction
    ///
    /// The rule set must be proposed, and the approved report must still be the one that the log
    /// gives. The identity does not change. `ipse rules back` undoes it.
    ///
    /// Example: ipse rules activate v2 --approval approval.json
    Activate {
        #[command(flatten)]
        which: Version,
        /// Use this approval; `ipse rules approve` writes it
        #[arg(long, value_name = "FILE")]
        approval: PathBuf,
    },

    /// Undo the newest activation that is not undone yet; needs no approval
    ///
    /// All facts are derived again, as if the activation had never been. The rules that a log began
    /// with cannot be undone.
    Back,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Version {
    /// The version of the rule set, such as v1
    #[arg(value_name = "VERSION")]
    version: String,
}

impl Version {
    /// The rule set of this build.
    fn known(&self) -> anyhow::Result<Rules> {
        Rules::of_version(&self.version).with_context(|| {
            let version = printable(&self.version);
            format!(
                "unknown_rules: this ipse has no rule set `{version}`; it has {}",
                Rules::versions()
            )
        })
    }

    /// The rule set of the log or of this build.
    fn find(&self, list: &RulesList) -> anyhow::Result<RuleSetName> {
        list.find(&self.version).with_context(|| {
            let version = printable(&self.version);
            format!(
                "neither the log nor this ipse has a rule set `{version}`: see `ipse rules list`"
            )
        })
    }
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    match &args.action {
        Action::List => list(context, terminal),
        Action::Show { which } => show(context, terminal, which),
        Action::Facts(args) => shadow::run(context, terminal, args),
        Action::Report(args) => approve::report(context, terminal, args),
        Action::Approve(args) => approve::approve(context, terminal, args),
        Action::Propose { which } => {
            let rules = which.known()?;
            change(context, terminal, |log| Ok(log.propose_rules(rules)?))
        }
        Action::Withdraw { which } => {
            let (_, identity) = context.read()?;
            let rules = which.find(&Look::at(context.store()?, identity).rule_sets()?)?;
            change(context, terminal, |log| Ok(log.withdraw_rules(&rules)?))
        }
        Action::Activate { which, approval } => {
            let (rules, text) = (which.known()?, approve::read_file(approval, MAX_APPROVAL_BYTES)?);
            let operator = context.keys().operator_key()?;
            change(context, terminal, |log| {
                Ok(log.activate_rules(rules, text.trim_end(), &[operator])?)
            })
        }
        Action::Back => change(context, terminal, |log| Ok(log.go_back()?)),
    }
}

fn list(context: &Context, terminal: &mut Terminal<'_>) -> CommandResult {
    let (_, identity) = context.read()?;
    let list = Look::at(context.store()?, identity).rules()?;
    match context.json {
        true => terminal.json(&list.json())?,
        false => terminal.page(&list.page())?,
    }
    Ok(Exit::Fine)
}

fn show(context: &Context, terminal: &mut Terminal<'_>, which: &Version) -> CommandResult {
    let (_, identity) = context.read()?;
    let list = Look::at(context.store()?, identity).rule_sets()?;
    let shown = list.shown(&which.find(&list)?);
    match context.json {
        true => terminal.json(&shown.json())?,
        false => terminal.page(&shown.page())?,
    }
    Ok(Exit::Fine)
}

/// Makes a change of rules and prints it.
fn change(
    context: &Context,
    terminal: &mut Terminal<'_>,
    make: impl FnOnce(&mut Log) -> anyhow::Result<RulesChange>,
) -> CommandResult {
    let mut log = context.write(terminal)?;
    let bar = terminal.spinner("deriving facts");
    let done = make(&mut log);
    bar.finish_and_clear();
    let RulesChange { seq, event, pass } = done?;
    if context.json {
        let json = Members::new()
            .raw("seq", seq)
            .text("stage", event.step.stage())
            .text("rule_version", &event.rules.version)
            .text("rule_set_sha256", &event.rules.hex())
            .optional("pass", pass.as_ref().map(PassReport::json));
        terminal.json(&json.finish())?;
    } else {
        let version = printable(&event.rules.version);
        writeln!(terminal.out, "{version}: {} at seq {seq}", event.step.stage())?;
        if pass.is_some() {
            writeln!(terminal.out, "{}", pass_words(pass.as_ref()))?;
        }
    }
    Ok(Exit::fine_if(context.tell_head(terminal, &mut log)?))
}
