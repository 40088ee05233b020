//! How a fact of rule set v2 noticed change: its newest stretch, the boundary before it, and the
//! fact without each of its sources.
//!
//! **Invariant:** every number comes from the sum of the fact, or from the sum without a source.
//! Nothing is estimated.

use super::words::steps;
use crate::answer::clean;
use crate::{Error, Page};
use ipse_consolidate::confidence::BASE;
use ipse_consolidate::days::{Rate, day_text};
use ipse_consolidate::stretch::{Cut, bounds};
use ipse_consolidate::v1::Observed;
use ipse_consolidate::v2::{Dated, Newest};
use ipse_consolidate::{Group, RuleSet};
use ipse_consult::facts::ScoredFact;
use ipse_consult::grounding::body;
use ipse_core::json::{Members, list};
use ipse_core::{FactKey, FactKind, Seq};
use ipse_engine::group_without_source;
use ipse_store::View;

/// The most sources without which a fact is shown: each costs a walk over the log.
const MAX_SOURCES: usize = 8;

/// A sum that may keep its counts by day and source.
pub(super) trait ByDay {
    /// The newest stretch of a fact of this kind; `None` if its counts have no days.
    fn newest(&self, kind: FactKind) -> Option<Newest>;

    /// The sources of a fact with the number of their observations, the greatest first.
    fn sources(&self) -> Vec<(i64, &str)>;
}

impl ByDay for Observed {
    fn newest(&self, _: FactKind) -> Option<Newest> {
        None
    }

    fn sources(&self) -> Vec<(i64, &str)> {
        Vec::new()
    }
}

impl ByDay for Dated {
    fn newest(&self, kind: FactKind) -> Option<Newest> {
        let dated = matches!(kind, FactKind::SkillSuccessRate | FactKind::ZoneRisk);
        dated.then(|| Newest::of(self))
    }

    fn sources(&self) -> Vec<(i64, &str)> {
        let count = |days: &[(i64, Rate)]| days.iter().map(|(_, rate)| rate.n).sum::<i64>();
        let mut sources: Vec<(i64, &str)> =
            self.sources.iter().map(|(name, days)| (count(days.all()), name.as_str())).collect();
        sources.sort_unstable_by_key(|(n, name)| (-n, *name));
        sources
    }
}

/// A fact without one of its sources.
#[derive(Debug)]
pub struct WithoutSource {
    /// The source.
    pub source: String,
    /// Its observations on all days.
    pub sent: i64,
    /// The fact; `None` if no other source supports it.
    pub fact: Option<ScoredFact>,
}

/// The newest stretch of a fact, and the fact without each of its sources.
#[derive(Debug)]
pub struct Change {
    kind: FactKind,
    /// The newest stretch.
    pub newest: Newest,
    /// The fact without each of its sources, if it has at least two.
    pub without: Vec<WithoutSource>,
    /// The number of sources that are not listed.
    pub more_sources: usize,
}

impl Change {
    /// The change of a fact; `None` if the rules keep no days.
    pub(super) fn of<R>(
        view: View<'_>,
        rules: &R,
        key: &FactKey,
        group: &Group<R::Tally>,
        up_to: Seq,
    ) -> Result<Option<Self>, Error>
    where
        R: RuleSet<Tally: ByDay>,
    {
        let Some(newest) = group.tally.newest(key.kind()) else { return Ok(None) };
        let sources = group.tally.sources();
        let mut without = Vec::new();
        for (sent, source) in sources.iter().take(MAX_SOURCES).filter(|_| sources.len() > 1) {
            let rest = group_without_source(view, rules, up_to, key, source)?;
            let fact = rest.map(|rest| rest.publish(rules, key)).transpose().ok().flatten();
            let fact = fact.flatten().map(ScoredFact::new).transpose()?;
            without.push(WithoutSource { source: (*source).to_owned(), sent: *sent, fact });
        }
        let more_sources = sources.len().saturating_sub(MAX_SOURCES);
        Ok(Some(Change { kind: key.kind(), newest, without, more_sources }))
    }

    /// The counts that are shown: of a zone, the adverse observations.
    fn shown(&self, rate: Rate) -> Rate {
        match self.kind {
            FactKind::ZoneRisk => Rate { n: rate.n, s: rate.f() },
            _ => rate,
        }
    }

    fn counts(&self, rate: Rate, k: Option<i128>) -> String {
        let Rate { n, s } = self.shown(rate);
        let name = if self.kind == FactKind::ZoneRisk { "adverse" } else { "successes" };
        let bounds = k.map(|k| bounds(self.shown(rate), k));
        Members::new()
            .raw("n", n)
            .raw(name, s)
            .optional("low", bounds.map(|(low, _)| steps(low)))
            .optional("high", bounds.map(|(_, high)| steps(high)))
            .finish()
    }

    /// The members of the explanation's JSON.
    pub(super) fn members(&self, members: Members) -> Members {
        let Newest { since, rate, before, cut, .. } = self.newest;
        let cut = cut.map(|cut| {
            Members::new()
                .text("day", &day_text(cut.day))
                .raw("k", cut.k)
                .raw("before", self.counts(cut.before, Some(cut.k)))
                .raw("after", self.counts(cut.after, Some(cut.k)))
                .finish()
        });
        let stretch = Members::new()
            .text("since", &day_text(since))
            .raw("inside", self.counts(rate, Some(BASE)))
            .raw("before", self.counts(before, None))
            .raw("cut", cut.unwrap_or_else(|| "null".to_owned()))
            .finish();
        let without = self.without.iter().map(|it| {
            let value = it.fact.as_ref().map_or("null", |fact| &fact.fact.value);
            let it = Members::new().text("source", &it.source).raw("sent", it.sent);
            it.raw("value", value).finish()
        });
        members
            .raw("stretch", stretch)
            .raw("without_source", list(without))
            .raw("more_sources", self.more_sources)
    }

    /// The stretch and the boundary before it, in sentences.
    pub(super) fn words(&self) -> Vec<String> {
        let Newest { since, before, cut, .. } = self.newest;
        let Some(cut) = cut else {
            return vec![format!("No change of the rate was found since {}.", day_text(since))];
        };
        let older = self.part(before);
        vec![
            self.boundary(&cut),
            format!("The value counts the days from then on. Of all older days: {older}."),
        ]
    }

    /// `3 of 4 worked`
    fn part(&self, rate: Rate) -> String {
        let Rate { n, s } = self.shown(rate);
        let verb = if self.kind == FactKind::ZoneRisk { "adverse" } else { "worked" };
        format!("{s} of {n} {verb}")
    }

    /// `The rate changed on DAY: before, S of N worked (LOW to HIGH); since, S of N (LOW to HIGH).`
    fn boundary(&self, cut: &Cut) -> String {
        let side = |rate: Rate| {
            let (low, high) = bounds(self.shown(rate), cut.k);
            format!("{} ({} to {})", self.part(rate), steps(low), steps(high))
        };
        format!(
            "The rate changed on {}: before it, {}; from it on, {}. Both ranges have z² = {}, and \
             they do not overlap.",
            day_text(cut.day),
            side(cut.before),
            side(cut.after),
            cut.k
        )
    }

    /// Adds the fact without each source to a page.
    pub(super) fn tell(&self, page: &mut Page) {
        if self.without.is_empty() {
            return;
        }
        page.line("\nWithout a source");
        let row = |it: &WithoutSource| {
            let text = match &it.fact {
                Some(fact) => format!("{}, n = {}", clean(&body(fact)), fact.n_observations),
                None => "no fact".to_owned(),
            };
            vec![clean(&it.source), it.sent.to_string(), text]
        };
        let header = ["SOURCE", "SENT", "THE FACT WITHOUT IT"];
        page.table(&header, self.without.iter().map(row).collect());
        if self.more_sources > 0 {
            page.line(format!("… and {} more sources", self.more_sources));
        }
    }
}
