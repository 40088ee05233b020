//! Errata: places where the paper contradicts its protocol, its text or itself.
//!
//! **Invariant:** errata are shown next to our figures and never asserted. Numbers and texts are
//! those of `docs/paper.md`.

use ipse_core::json::Members;

/// One erratum of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Erratum {
    /// The number in `docs/paper.md`.
    pub number: u8,
    /// The claim of the paper.
    pub title: &'static str,
    /// The reason why the claim is wrong.
    pub reason: &'static str,
}

impl Erratum {
    /// The erratum as JSON.
    pub fn json(&self) -> String {
        Members::new()
            .raw("number", self.number)
            .text("title", self.title)
            .text("reason", self.reason)
            .finish()
    }
}

const fn erratum(number: u8, title: &'static str, reason: &'static str) -> Erratum {
    Erratum { number, title, reason }
}

/// All errata, with the texts of `docs/paper.md`.
pub const ERRATA: [Erratum; 37] = [
    erratum(
        1,
        "V3, raw and calibrated, attempts 544.4",
        "the protocol gives 491.6. A scene that chooses evenly between two objects has a mean \
         of 500. 544.4 is 8.9 standard deviations of a mean of ten seeds away from that.",
    ),
    erratum(
        2,
        "V3, raw and calibrated, unproductive 109.7",
        "the protocol gives 100.2. With the printed 497.5, 109.7 would be a reduction of \
         77.95 %, below the printed interval.",
    ),
    erratum(
        3,
        "V3, raw and calibrated, rate 0.201",
        "the ten seeds have a mean of 0.203 under the protocol.",
    ),
    erratum(
        4,
        "V3, no memory, unproductive 497.5",
        "the protocol gives 498.3. The rate 0.498 agrees with both.",
    ),
    erratum(5, "V3, uniform, unproductive 510.2", "the protocol gives 510.8."),
    erratum(6, "V3, uniform, rate 0.510", "the protocol gives 0.511."),
    erratum(
        7,
        "The calibrated control as a test of the raw one",
        "the mean of its prior is the threshold, so shrinking cannot move a rate across the \
         threshold. The decision depends only on whether the held-out rate is one half or more. \
         On each of the ten seeds the held-out fifth and the other four fifths are on the same \
         side, so the two controls decide alike. On about 3 % of all seeds they are not.",
    ),
    erratum(
        8,
        "The worked example has 15 attempts in the text and 16 in the figure",
        "the text has three failures at 15 N (confidence 0.83), the figure three at 5 N and \
         one at 15 N (0.84).",
    ),
    erratum(
        9,
        "`last_updated`",
        "the paper stores the checkpoint in it. Then the same events in other passes would give \
         other bytes. Here it is the time of the last supporting event.",
    ),
    erratum(
        10,
        "\"Capability-evolution identity invariance\" in the status table",
        "V2 shows the contrary: an added name changes the hash. The same is true here. A new \
         version behind a name does not.",
    ),
    erratum(
        11,
        "The safety clamp held constant in V3",
        "V3 as described has no clamp, and no parameter that a clamp could change. Here it runs \
         once more with the gates on: every attempt is clamped, and all 48 figures stay.",
    ),
    erratum(12, "About 4 points below the bound", "78.02 − 74.58 is 3.44."),
    erratum(
        13,
        "The shrunk rate of `glass_cup`, about 0.9 on every seed",
        "that is seed 20260506. Over the ten seeds it ranges from 0.64 to 0.90, with a mean \
         of 0.75.",
    ),
    erratum(
        14,
        "The hashes printed in V2",
        "the paper does not give the manifest behind them, so they cannot be computed from it. \
         A test pins ours.",
    ),
    erratum(
        15,
        "Order-free \"modulo source-id ordering\"",
        "section 3.2 says byte-equal, without this exception. Here snapshots are byte-equal \
         without exception, because the last event is chosen by time and ref, and no fact \
         contains a row number.",
    ),
    erratum(
        16,
        "Crash recovery by upsert, then append",
        "counters are cumulative, so a repeated pass adds the same events again: 10 events with \
         8 successes become 20 and 16 (vector). Here facts, checkpoint and record commit \
         together.",
    ),
    erratum(
        17,
        "A timestamp as checkpoint",
        "events that arrive late, or with the same time as the last one, are never read: 2 of 4 \
         in the vector. Here the checkpoint is a position in the log.",
    ),
    erratum(
        18,
        "The HTTP endpoint is shipped and deferred",
        "section 3.4 calls it the shipped interface, section 4 leaves it to a follow-on.",
    ),
    erratum(
        19,
        "The reduction \"against a calibrated baseline\"",
        "abstract and contributions name the calibrated estimate as the baseline. Section 4 \
         compares the calibrated control with no memory; against raw the difference is 0.",
    ),
    erratum(
        20,
        "Confidence in V3 is a success rate",
        "section 3.2 computes confidence from count and variance, so a skill that mostly fails \
         can have a high confidence: here `unknown_object` has 0.56 to 0.82 over the ten seeds. \
         A planner that attempts at a confidence of 0.5 or more would attempt it.",
    ),
    erratum(
        21,
        "Uniform is no memory, drawn again",
        "both attempt all 1000 decisions, and uniform draws each outcome a second time. Its \
         reduction is against the no-memory count of the raw run, which had other draws; \
         against the count of its own run it is −0.07 % over the ten seeds. So −2.6 % is the \
         difference between two samples of the same distribution, and an interval around it \
         says nothing about structure.",
    ),
    erratum(
        22,
        "Within 2 points, two regions of collapse, a safe interior",
        "on the plateaus that the text names, the mean stays within 2 points. Of all 19 \
         settings five fall below 65 %: thresholds 0.3 and 0.4 (−2.6, 55.0), and the prior mean \
         0.7 at every weight (63.7, 55.0, −2.6). The default is next to them: one step down in \
         the threshold, or up in the prior mean, costs 24.8 points.",
    ),
    erratum(
        23,
        "The plateau from 0.5 to 0.7",
        "it ends at 0.64. At 0.7, seed 20260507 attempts nothing, which counts as 100 %. On the \
         other nine seeds nothing changes (79.5 %); on seed 20260517 only because its rate is \
         exactly 0.70.",
    ),
    erratum(
        24,
        "The shrunk rate of `unknown_object`, about 0.3, below or above a threshold",
        "it ranges from 0.30 to 0.45. At a threshold of 0.3, and at 0.5 with a prior of mean \
         0.7 and weight 20, it equals the threshold on four seeds. There the comparison \"at \
         least\" decides, not a difference.",
    ),
    erratum(
        25,
        "The intervals of the prior table, said to be in the prose",
        "the prose does not contain them.",
    ),
    erratum(
        26,
        "309 ms at most",
        "309.0 ms is the median of the same table, so some of the nine passes take longer; \
         its p90 is 324.5 ms.",
    ),
    erratum(27, "Four orders of magnitude", "10² to 10⁵ are four sizes and three orders."),
    erratum(
        28,
        "Queries on small and large fact tables",
        "by the same sentence, the fact table has 2 rows at either size.",
    ),
    erratum(
        29,
        "Names that change",
        "section 3.2 has `fact_kind`, `fact_value_json`, `n_observations`; the query of section \
         4 has `fact_type`; V1 has `value_json` and `source_count`. The value in V1 lacks \
         confidence, last event and rule version, which section 3.2 requires.",
    ),
    erratum(
        30,
        "A `consolidation_run` on every pass",
        "section 3.2 says that a pass that finds nothing new writes nothing. Here it writes \
         nothing.",
    ),
    erratum(
        31,
        "Pruning lowers `n_observations`",
        "the counter is cumulative and a pass reads new rows only, so removed rows would still \
         be counted. Here pruning subtracts them.",
    ),
    erratum(
        32,
        "The mean saturates exactly at 1000",
        "at 500 decisions it is already 79.89, nearer to 79.82 than at 10⁴ (79.91).",
    ),
    erratum(
        33,
        "Parameters that select the kind",
        "the three listed parameters select skill, target and environment. No query can select \
         a zone.",
    ),
    erratum(34, "Five research currents", "the section has six."),
    erratum(35, "Three controls and four", "the contributions name three, section 4 runs four."),
    erratum(
        36,
        "A rule change under a checkpoint",
        "a pass reads only rows after the checkpoint, so cumulative rows would mix two rules under \
         the newer version. Here a change derives all facts again.",
    ),
    erratum(
        37,
        "\"Require confirmation before raising force\" as an example of v2",
        "that is a threshold for a human check, and section 5 forbids that facts change it.",
    ),
];
