//! Waiting for a person's decision about an intent: `GET /api/agent/intents/{event_ref}?wait=30`.
//!
//! **Invariants**
//! - A waiting request holds a connection and a place, and neither a thread nor a lock. There are
//!   fewer places than connections, so that waiting planners do not block other requests.
//! - The wait ends with the decision, after the requested seconds, when the server stops, when the
//!   client has closed its side, and when the token is no longer valid.
//! - If the log grows fast, each waiting request reads the intent only a few times a second.

use crate::intents::look;
use crate::places::Peer;
use crate::problem::Problem;
use crate::service::{Caller, Service};
use ipse_core::EventRef;
use ipse_engine::{IntentStanding, Proposal};
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Interval, Sleep, interval, sleep};

/// The longest wait: most proxies close a connection that was idle for a minute.
pub(crate) const MAX_SECONDS: u64 = 60;
/// The interval at which the server checks the connection and the token.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The minimum time between two reads of one request while the log grows. With all places taken
/// that is a few hundred reads a second.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Waits for a decision. Returns the intent with its standing when the wait ends.
pub(crate) async fn until_decided(
    service: &Service,
    caller: &Caller,
    peer: Option<&Peer>,
    name: EventRef,
    seconds: u64,
) -> Result<Proposal, Problem> {
    let mut over = pin!(sleep(Duration::from_secs(seconds)));
    // Subscribe before the first read, so that no decision is missed in between.
    let mut grown = caller.agent.grown.subscribe();
    let mut shown = look(caller, name).await?;
    if shown.standing() != IntentStanding::Waiting {
        return Ok(shown);
    }
    let full = |_| Problem::too_many("too many requests wait for decisions; try again");
    let places = [&caller.agent.waits, &service.waits];
    let [of_agent, of_all] = places.map(|places| places.try_acquire().map_err(full));
    let _places = [of_agent?, of_all?];
    let (mut closing, mut check) = (service.closing(), interval(CHECK_EVERY));
    loop {
        match woken(over.as_mut(), &mut grown, &mut closing, &mut check).await {
            WakeReason::Over => return look(caller, name).await,
            WakeReason::Check if peer.is_some_and(Peer::has_left) || !service.is_served(caller) => {
                return Ok(shown);
            }
            WakeReason::Check => {
                if !service.is_welcome(caller)? {
                    return Err(Problem::unauthorized());
                }
            }
            WakeReason::Grown => {
                shown = look(caller, name).await?;
                if shown.standing() != IntentStanding::Waiting {
                    return Ok(shown);
                }
                sleep(LOOK_EVERY).await;
            }
        }
    }
}

/// The reason why a waiting request wakes.
enum WakeReason {
    Grown,
    Check,
    Over,
}

async fn woken(
    over: Pin<&mut Sleep>,
    grown: &mut watch::Receiver<u64>,
    closing: &mut watch::Receiver<bool>,
    check: &mut Interval,
) -> WakeReason {
    tokio::select! {
        biased;
        () = over => WakeReason::Over,
        _ = closing.wait_for(|closing| *closing) => WakeReason::Over,
        _ = check.tick() => WakeReason::Check,
        _ = grown.changed() => WakeReason::Grown,
    }
}
