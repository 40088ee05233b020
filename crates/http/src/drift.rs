//! The drift monitor over HTTP: the report, the series, and the alarm of each agent.
//!
//! **Invariants:** the alarm is watched for agents whose rules keep days (`v2`). It is computed
//! outside of requests, after passes, and takes at most a twentieth of the time. A stream gets an
//! event when the alarm turns on or off; the first report after a start only sets it.

use crate::json;
use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Agent, Caller};
use axum::Extension;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::Response;
use ipse_core::Seq;
use ipse_inspect::{Day, DriftReport, read_day, watches_drift};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The shortest time between two computations of an alarm.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause after a computation, as a multiple of its duration.
const PAUSES: u32 = 20;

pub(crate) async fn report(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["day"])?;
    let day = query.text("day").map(day).transpose()?;
    let look = caller.agent.look.clone();
    let (report, _turn) = caller.look(move || look.drift(day)).await?;
    Ok(json(StatusCode::OK, report.json()))
}

pub(crate) async fn series(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["step"])?;
    if query.text("step").is_some_and(|step| step != "week") {
        return Err(Problem::bad_request("bad_parameter", "`step` must be week"));
    }
    let look = caller.agent.look.clone();
    let (series, _turn) = caller.look(move || look.drift_series()).await?;
    Ok(json(StatusCode::OK, series.json()))
}

/// Reads a day, `YYYY-MM-DD`.
fn day(text: &str) -> Result<Day, Problem> {
    let detail = "`day` must be a day from 1970 on, as YYYY-MM-DD";
    read_day(text).ok_or_else(|| Problem::bad_request("bad_parameter", detail))
}

/// The alarm of one agent.
pub(crate) struct Alarm {
    state: Mutex<AlarmState>,
    /// The report with which the alarm turned on or off last.
    turned: watch::Sender<Option<Arc<DriftReport>>>,
}

#[derive(Default)]
struct AlarmState {
    /// The checkpoint of the last report, and whether it said drift.
    seen: Option<(Seq, bool)>,
    /// The earliest time of the next computation.
    due: Duration,
}

impl Default for Alarm {
    fn default() -> Self {
        Alarm { state: Mutex::default(), turned: watch::Sender::new(None) }
    }
}

impl Alarm {
    /// Follows the turns of the alarm.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Arc<DriftReport>>> {
        self.turned.subscribe()
    }
}

impl Agent {
    /// Computes the alarm again if the facts changed and the pause is over. `elapsed` is the time
    /// since the server started.
    pub(crate) fn watch_drift(&self, elapsed: impl Fn() -> Duration) {
        let mut state = self.alarm.state.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.memory.known();
        if !watches_drift(known.rule_version()) {
            state.seen = None;
            self.metrics.drift(None);
            return;
        }
        let (now, checkpoint) = (elapsed(), known.checkpoint());
        if now < state.due || state.seen.is_some_and(|(seen, _)| seen == checkpoint) {
            return;
        }
        let report = match self.look.drift(None) {
            Ok(report) => report,
            Err(error) => {
                let identity = self.identity;
                tracing::warn!(%identity, %error, "the drift monitor could not read the log");
                state.due = elapsed() + PAUSE;
                return;
            }
        };
        let done = elapsed();
        state.due = done + PAUSE.max(done.saturating_sub(now) * PAUSES);
        self.metrics.drift(Some(report.drift));
        let before = state.seen.replace((checkpoint, report.drift));
        if before.is_some_and(|(_, drift)| drift != report.drift) {
            let (identity, drift) = (self.identity, report.drift);
            // The keys of facts are texts of producers, which no log line holds.
            tracing::info!(%identity, drift, z2 = %report.z2, "the drift alarm has turned");
            self.alarm.turned.send_replace(Some(Arc::new(report)));
            // The streams wait for growth.
            self.grown.send_modify(|times| *times += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_one_form() {
        assert_eq!(day("1970-01-02").ok(), Some(1));
        for bad in ["", "1970-1-2", "1970-01-32", "1970-01-02T00:00:00Z", "yesterday", "0"] {
            assert!(day(bad).is_err(), "{bad}");
        }
    }
}
