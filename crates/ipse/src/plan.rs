//! Advice for planners: whether to make an attempt, and which value of a parameter to try next.
//!
//! **Invariant:** advice is computed from facts and changes nothing. The clock is read here, and
//! only if the caller gives no time.

use crate::{Agent, Result, SystemHost};
use ipse_core::Micro;
use ipse_engine::Host;
use ipse_inspect::{AttemptAdvice, PlannedAttempt, ValueAdvice};
use ipse_plan::{Candidates, Question};

impl Agent {
    /// Whether to make an attempt now or to skip it until it is due again, with the reason. `*`
    /// stands for no target and no environment.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let at = |name: &str| (name == "commissioned_at").then(|| "2026-05-01T00:00:00Z".into());
    /// # let manifest = ipse::Manifest::new(|name| at(name).or_else(|| Some("1".repeat(64))))?;
    /// # let opening = ipse::Opening { rules: Some(ipse::Rules::V2), ..Default::default() };
    /// # let store = directory.path().join("robot.db");
    /// # let agent = ipse::Agent::register_with(store, &manifest, opening)?;
    /// use ipse::{Event, Reason};
    ///
    /// assert_eq!(agent.may_attempt("grasp", "cup", "*")?.reason, Reason::NoFact);
    /// let failed = || Event::attempt("grasp").target("cup").failed("slip");
    /// agent.record_all((0..9).map(|_| failed()))?;
    /// agent.consolidate()?;
    /// let advice = agent.may_attempt("grasp", "cup", "*")?;
    /// assert!(!advice.attempt());
    /// print!("{}", advice.page()); // Why, and when it is due again.
    /// # Ok::<(), ipse::Error>(())
    /// ```
    ///
    /// Under rule set v1 the answer is always to try. It is advice: gates never see it.
    pub fn may_attempt(
        &self,
        skill: &str,
        target: &str,
        environment: &str,
    ) -> Result<AttemptAdvice> {
        let now = SystemHost::new().now();
        self.may_attempt_with(skill, target, environment, &Question::at(now))
    }

    /// Like [`Agent::may_attempt`], with a time, a threshold or a quorum.
    pub fn may_attempt_with(
        &self,
        skill: &str,
        target: &str,
        environment: &str,
        question: &Question,
    ) -> Result<AttemptAdvice> {
        let planned = PlannedAttempt::new(skill, Some(target), Some(environment));
        Ok(self.look().may_attempt(&planned, question, Some(&self.memory().known()))?)
    }

    /// The value of a parameter to try next: the candidate that could still be the best, given the
    /// newest attempts. While nothing has worked yet, it begins near `prefer` or in the middle.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let at = |name: &str| (name == "commissioned_at").then(|| "2026-05-01T00:00:00Z".into());
    /// # let manifest = ipse::Manifest::new(|name| at(name).or_else(|| Some("1".repeat(64))))?;
    /// # let opening = ipse::Opening { rules: Some(ipse::Rules::V2), ..Default::default() };
    /// # let store = directory.path().join("robot.db");
    /// # let agent = ipse::Agent::register_with(store, &manifest, opening)?;
    /// use ipse::{Candidates, Event};
    ///
    /// let forces = Candidates::numbers(&[20.0, 25.0, 30.0])?;
    /// let attempt = Event::attempt("grasp").target("cup").param("force_n", 25).success();
    /// agent.record(attempt)?;
    /// agent.consolidate()?;
    /// let advice = agent.suggest("grasp", "cup", "*", "force_n", &forces, None)?;
    /// assert_eq!(advice.value().map(|force| force.to_string()), Some("25".into()));
    /// # Ok::<(), ipse::Error>(())
    /// ```
    ///
    /// Under rule set v1 the answer is the recommended value, if there is one.
    pub fn suggest(
        &self,
        skill: &str,
        target: &str,
        environment: &str,
        param: &str,
        candidates: &Candidates,
        prefer: Option<Micro>,
    ) -> Result<ValueAdvice> {
        let planned = PlannedAttempt::new(skill, Some(target), Some(environment));
        Ok(self.look().suggest(&planned, param, candidates, prefer)?)
    }
}
