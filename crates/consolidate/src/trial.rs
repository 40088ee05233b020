//! A second rule set for tests of rule changes, behind the feature `trial-rules`.
//!
//! It is `v1` with another version and one other constant: a fact needs two observations. No
//! shipped program has it.

use crate::publish;
use crate::rules::{BulkFold, Contribution, LimitError, RuleSet, Skip, Wanted};
use crate::v1::{Observed, V1};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::{Event, FactKey, Support};

/// Observations that a fact needs; `v1` needs one.
const MIN_OBSERVATIONS: i64 = 2;

/// The rule set `trial`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trial;

impl RuleSet for Trial {
    type Tally = Observed;

    fn version(&self) -> &'static str {
        "trial"
    }

    fn descriptor(&self) -> String {
        String::from("{\"min_observations\":2,\"rule_version\":\"trial\"}")
    }

    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<Observed>>, Skip> {
        V1.contributions(event)
    }

    fn bulk<'w>(&self, wanted: Wanted<'w>) -> Option<Box<dyn BulkFold<Observed> + 'w>> {
        V1.bulk(wanted)
    }

    fn publish(
        &self,
        key: &FactKey,
        tally: &Observed,
        last: &Support,
    ) -> Result<Option<String>, LimitError> {
        if publish::observations(key.kind(), tally) < MIN_OBSERVATIONS {
            return Ok(None);
        }
        let value = publish::value(key.kind(), tally, last, self.version());
        Ok(V1.publish(key, tally, last)?.map(|_| value))
    }
}
