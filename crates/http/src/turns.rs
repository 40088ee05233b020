//! Turns limit the number of requests that do long work at the same time, and that wait for it.
//!
//! **Invariants**
//! - Planners and producers never hold all turns: some turns of each agent and of the server are
//!   reserved for operators and auditors, who also wait in a separate line.
//! - A line is bounded. A request beyond the bound is rejected at once.
//! - A request that is dropped while it waits leaves the line, and its work never starts.
//! - A turn lasts as long as the work. Work that has started counts until it ends, even if its
//!   client is gone.

use crate::away;
use crate::problem::Problem;
use ipse_access::Role;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns that a caller may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rank {
    /// All turns but the reserved ones.
    Ordinary,
    /// All turns.
    Overseer,
}

impl From<Role> for Rank {
    fn from(role: Role) -> Self {
        match role {
            Role::Planner | Role::Producer | Role::Observer => Rank::Ordinary,
            Role::Operator | Role::Auditor => Rank::Overseer,
        }
    }
}

/// The turns of one kind of work.
pub(crate) struct Turns {
    free: Arc<Semaphore>,
    /// Free turns for ordinary callers: all but the reserved ones.
    ordinary: Arc<Semaphore>,
}

impl Turns {
    /// Creates turns, of which `kept` are reserved for overseers.
    pub(crate) fn new(turns: usize, kept: usize) -> Self {
        let [free, ordinary] = [turns, turns - kept].map(|count| Arc::new(Semaphore::new(count)));
        Turns { free, ordinary }
    }

    async fn take(&self, rank: Rank) -> [Option<OwnedSemaphorePermit>; 2] {
        let ordinary = match rank {
            Rank::Ordinary => self.ordinary.clone().acquire_owned().await.ok(),
            Rank::Overseer => None,
        };
        [ordinary, self.free.clone().acquire_owned().await.ok()]
    }
}

/// A turn, until it is dropped: the place in the line, a turn of the agent, and one of the server.
pub(crate) struct Turn {
    _place: OwnedSemaphorePermit,
    _of_agent: [Option<OwnedSemaphorePermit>; 2],
    _of_server: [Option<OwnedSemaphorePermit>; 2],
}

/// The requests of one agent for one kind of work. A request takes a turn of the agent first, so
/// that one agent never holds or waits for more turns of the server than it has itself.
pub(crate) struct Line {
    turns: Turns,
    server: Arc<Turns>,
    /// Places for ordinary callers and for overseers: for waiting requests and those with a turn.
    places: [Arc<Semaphore>; 2],
}

impl Line {
    /// Creates a line for `turns`, of which `kept` are reserved. `waiting` of each rank may wait.
    pub(crate) fn new(turns: usize, kept: usize, waiting: usize, server: &Arc<Turns>) -> Self {
        let places = [turns - kept, turns].map(|turns| Arc::new(Semaphore::new(turns + waiting)));
        Line { turns: Turns::new(turns, kept), server: server.clone(), places }
    }

    /// Waits for a turn.
    pub(crate) async fn turn(&self, rank: Rank) -> Result<Turn, Problem> {
        let [ordinary, overseers] = &self.places;
        let places = if rank == Rank::Ordinary { ordinary } else { overseers };
        let place = places.clone().try_acquire_owned().map_err(|_| {
            Problem::too_many("too many requests of this agent wait for their turn; try again")
        })?;
        let of_agent = self.turns.take(rank).await;
        let of_server = self.server.take(rank).await;
        Ok(Turn { _place: place, _of_agent: of_agent, _of_server: of_server })
    }

    /// Waits for a turn and runs blocking work in it. The turn is returned with the result: the
    /// caller keeps it for as long as the result uses memory.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        rank: Rank,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Turn), Problem> {
        let turn = self.turn(rank).await?;
        away(move || (work(), turn)).await
    }

    /// Free places for ordinary callers.
    #[cfg(test)]
    pub(crate) fn places_left(&self) -> usize {
        self.places[0].available_permits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    type Waiting<'l> = Pin<Box<dyn Future<Output = Result<Turn, Problem>> + 'l>>;

    fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Takes a turn that must be free.
    #[track_caller]
    fn now(line: &Line, rank: Rank) -> Turn {
        match poll(pin!(line.turn(rank))) {
            Poll::Ready(turn) => turn.unwrap(),
            Poll::Pending => panic!("no turn of {rank:?} is free"),
        }
    }

    /// A request that has to wait.
    #[track_caller]
    fn waits(line: &Line, rank: Rank) -> Waiting<'_> {
        let mut waiting: Waiting<'_> = Box::pin(line.turn(rank));
        assert!(poll(waiting.as_mut()).is_pending(), "{rank:?} should wait");
        waiting
    }

    #[track_caller]
    fn is_rejected(line: &Line, rank: Rank) {
        let Poll::Ready(Err(problem)) = poll(pin!(line.turn(rank))) else {
            panic!("{rank:?} should be rejected")
        };
        assert_eq!(
            (problem.status(), problem.code()),
            (StatusCode::TOO_MANY_REQUESTS, "queue_full")
        );
    }

    fn server(turns: usize, kept: usize) -> Arc<Turns> {
        Arc::new(Turns::new(turns, kept))
    }

    #[test]
    fn a_turn_is_free_for_overseers_while_ordinary_callers_hold_all_others() {
        let line = Line::new(4, 1, 2, &server(8, 2));
        let held = [(); 3].map(|()| now(&line, Rank::Ordinary));
        let waiting = [(); 2].map(|()| waits(&line, Rank::Ordinary));
        is_rejected(&line, Rank::Ordinary);
        let overseer = now(&line, Rank::Overseer);
        let _second = waits(&line, Rank::Overseer);
        drop((held, waiting, overseer));
    }

    #[test]
    fn the_line_is_bounded_for_each_rank_by_itself() {
        let line = Line::new(2, 1, 1, &server(8, 2));
        let held = now(&line, Rank::Overseer);
        let _more = now(&line, Rank::Overseer);
        let _waiting = waits(&line, Rank::Overseer);
        is_rejected(&line, Rank::Overseer);
        let _ordinary = [(); 2].map(|()| waits(&line, Rank::Ordinary));
        is_rejected(&line, Rank::Ordinary);
        drop(held);
        let _next = waits(&line, Rank::Overseer);
        is_rejected(&line, Rank::Overseer);
    }

    #[test]
    fn a_request_that_is_dropped_leaves_the_line_without_a_turn() {
        let line = Line::new(2, 1, 1, &server(8, 2));
        let held = now(&line, Rank::Ordinary);
        let gone = waits(&line, Rank::Ordinary);
        is_rejected(&line, Rank::Ordinary);
        drop(gone);
        let mut next = waits(&line, Rank::Ordinary);
        drop(held);
        assert!(poll(next.as_mut()).is_ready());
        assert_eq!(line.places_left(), 2);
    }

    #[test]
    fn one_agent_leaves_turns_of_the_server_to_others() {
        let server = server(4, 1);
        let [one, other] = [(); 2].map(|()| Line::new(3, 1, 8, &server));
        let _held = [(); 2].map(|()| now(&one, Rank::Ordinary));
        let _waiting = [(); 8].map(|()| waits(&one, Rank::Ordinary));
        let last = now(&other, Rank::Ordinary);
        let mut waiting = waits(&other, Rank::Ordinary);
        let _overseer = now(&other, Rank::Overseer);
        drop(last);
        assert!(poll(waiting.as_mut()).is_ready());
    }

    #[test]
    fn a_turn_lasts_as_long_as_the_work_even_if_its_request_is_gone() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let line = Line::new(2, 1, 1, &server(8, 2));
        let (go, begin) = std::sync::mpsc::channel::<()>();
        runtime.block_on(async {
            let mut work = Box::pin(line.run(Rank::Ordinary, move || begin.recv()));
            assert!(poll(work.as_mut()).is_pending());
            drop(work);
        });
        let mut next = waits(&line, Rank::Ordinary);
        go.send(()).unwrap();
        // Waits for the thread.
        drop(runtime);
        assert!(poll(next.as_mut()).is_ready());
    }
}
