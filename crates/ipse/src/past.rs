//! Questions about the past: facts as of a moment, and what changed between two.
//!
//! **Invariant:** an answer follows from the log up to a position. Nothing is written.

use crate::{Agent, Diff, Error, Fact, Moment, Position, Query, Result};

impl Agent {
    /// The facts computed from the log up to a moment, without the events that were forgotten
    /// since. A moment is a position ([`Seq`](crate::Seq)) or a [`Time`](crate::Time);
    /// [`Agent::position`] says which position a time means.
    pub fn facts_as_of(&self, moment: impl Into<Moment>, query: &Query) -> Result<Vec<Fact>> {
        let moment = moment.into();
        let facts = self.look().as_of(moment, &query.0, Some(&self.memory().known()))?;
        let facts = facts.ok_or_else(|| self.beyond(moment))?.chosen.facts.into_iter();
        Ok(facts.map(|fact| Fact::new(self.look().identity(), fact)).collect())
    }

    /// The position that a moment means: a position is itself, and a time is the last event that
    /// ipse itself recorded by then, such as a pass.
    pub fn position(&self, moment: impl Into<Moment>) -> Result<Position> {
        let moment = moment.into();
        self.look().position(moment)?.ok_or_else(|| self.beyond(moment))
    }

    /// The changes of the facts between two moments, as in [`Agent::facts_as_of`]. Forgotten events
    /// count at neither of them, so forgetting is not seen here: compare [`Agent::facts`] before
    /// and after it, or read [`Forgotten::pass`](crate::Forgotten::pass).
    pub fn diff(&self, from: impl Into<Moment>, to: impl Into<Moment>) -> Result<Diff> {
        let (from, to) = (self.position(from)?.seq, self.position(to)?.seq);
        let found = self.look().diff(from.into(), to.into())?;
        found.ok_or_else(|| self.beyond(from.max(to).into()))
    }

    /// The error about a moment past the end of the log. A time never is.
    fn beyond(&self, asked: Moment) -> Error {
        let head = self.look().head().unwrap_or_default();
        let Moment::Position(asked) = asked else { return Error::Beyond { asked: head, head } };
        Error::Beyond { asked, head }
    }
}
