//! A planner that learns and keeps its identity: the twin of `examples/planner.py`, which explains
//! the rounds. The same seed gives the same rounds.
//!
//! ```sh
//! IPSE_PLANNER=… IPSE_PRODUCER=… cargo run --example planner -- http://127.0.0.1:7477
//! ```
#![allow(clippy::print_stdout)]

use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

const SKILL: &str = "manipulation.grasp";
const TARGET: &str = "glass_cup";
const WARD: &str = "sim_relaxed";
/// The confidence from which a recommendation is followed.
const TRUST: f64 = 0.5;

type Error = Box<dyn std::error::Error>;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The URL of `ipse serve`.
    pub url: String,
    /// The planner's token: it may consult and propose.
    pub planner: String,
    /// The producer's token: it may report outcomes.
    pub producer: String,
    /// The number of rounds.
    pub rounds: u64,
    /// The seed of the dice.
    pub seed: u64,
    /// Decide without reading facts.
    pub ignore_facts: bool,
    /// Whether the gripper is stuck: every grasp fails.
    pub stuck: bool,
}

/// Random numbers that are equal in both twins: a linear congruential generator.
struct Dice(u64);

impl Dice {
    /// Returns a whole number from low to high.
    fn throw(&mut self, low: u64, high: u64) -> u64 {
        self.0 = (self.0 * 1_103_515_245 + 12_345) % (1 << 31);
        low + (self.0 >> 8) % (high - low + 1)
    }
}

/// The toy world: the result of grasping a glass cup with a force in newtons.
fn simulate(force: f64) -> (bool, &'static str) {
    match force {
        ..20.0 => (false, "slip"),
        20.0..=28.0 => (true, ""),
        _ => (false, "crack"),
    }
}

/// A client of the server, with the planner's requests.
struct Server<'p> {
    plan: &'p Plan,
    agent: Agent,
}

impl<'p> Server<'p> {
    fn new(plan: &'p Plan) -> Self {
        let config = Agent::config_builder().http_status_as_error(false).build();
        Server { plan, agent: config.into() }
    }

    fn ask(&self, token: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let (url, bearer) = (format!("{}{path}", self.plan.url), format!("Bearer {token}"));
        loop {
            let mut answer: Response<Body> = match body {
                None => self.agent.get(&url).header("Authorization", &bearer).call()?,
                Some(body) => {
                    self.agent.post(&url).header("Authorization", &bearer).send_json(body)?
                }
            };
            if answer.status() == StatusCode::TOO_MANY_REQUESTS {
                // Rate limit: the server says how long to wait.
                let wait = answer.headers().get("Retry-After").ok_or("no Retry-After")?;
                sleep(Duration::from_secs(wait.to_str()?.parse()?));
                continue;
            }
            if !answer.status().is_success() {
                let words = answer.body_mut().read_to_string()?;
                return Err(format!("{path}: {} {words}", answer.status()).into());
            }
            return Ok(answer.body_mut().read_json()?);
        }
    }

    fn identity(&self) -> Result<Value, Error> {
        let answer = self.ask(&self.plan.planner, "/api/agent/identity", None)?;
        Ok(answer["identity_hash"].clone())
    }

    fn about_the_cup(&self, path: &str) -> Result<Value, Error> {
        let query = format!("skill_id={SKILL}&target_class={TARGET}&environment={WARD}");
        self.ask(&self.plan.planner, &format!("{path}?{query}"), None)
    }

    fn may_attempt(&self) -> Result<bool, Error> {
        Ok(self.about_the_cup("/api/agent/may-attempt")?["attempt"] == true)
    }

    /// The force to try next, of those that the gates let through; none under v1.
    fn suggest(&self) -> Result<Option<Value>, Error> {
        let query = format!("skill_id={SKILL}&target_class={TARGET}&environment={WARD}");
        let path = format!("/api/agent/suggest?{query}&param=force_n");
        let answer = self.ask(&self.plan.planner, &path, None)?;
        Ok((answer["reason"] != "rules_v1").then_some(answer))
    }

    fn consult(&self) -> Result<Value, Error> {
        self.about_the_cup("/api/agent/semantic")
    }

    fn propose(&self, force: &Value, consultation: Option<&Value>) -> Result<Value, Error> {
        let mut intent = json!({ "skill_id": SKILL, "target_class": TARGET, "environment": WARD,
                                 "params": { "force_n": force } });
        if let Some(consultation) = consultation {
            intent["consultation"] = consultation.clone();
        }
        self.ask(&self.plan.planner, "/api/agent/intents", Some(&intent))
    }

    /// Reports with the time of the intent: this world has no clock of its own.
    fn report(&self, intent: &Value, (success, reason): (bool, &str)) -> Result<(), Error> {
        let mut data = json!({ "skill_id": SKILL, "target_class": TARGET, "environment": WARD,
            "params": intent["admitted_params"], "intent": intent["event_ref"],
            "success": success });
        if !success {
            data["failure_reason"] = reason.into();
        }
        let event = json!({ "id": intent["event_ref"], "source": "planner-example",
            "type": "execution_result", "time": intent["time"], "data": data });
        self.ask(&self.plan.producer, "/api/agent/events", Some(&event))?;
        Ok(())
    }
}

/// Returns the recommended force, if its confidence is high enough.
fn recommended(facts: &Value) -> Option<&Value> {
    let rates = facts.as_array()?.iter().filter(|it| it["fact_kind"] == "skill_success_rate");
    let forces = rates.map(|fact| &fact["value"]["params"]["force_n"]["recommended"]);
    let mut trusted = forces.filter(|it| it["confidence"].as_f64().is_some_and(|it| it >= TRUST));
    Some(&trusted.next()?["value"])
}

/// A force, what it rests on, and whether it comes from experience.
struct Choice {
    force: Value,
    consultation: Value,
    informed: bool,
}

impl Choice {
    fn of(server: &Server<'_>, drawn: Value) -> Result<Self, Error> {
        if let Some(suggestion) = server.suggest()? {
            let (force, consultation) =
                (suggestion["value"].clone(), suggestion["consultation"].clone());
            return Ok(Choice { force, consultation, informed: suggestion["tried"] == true });
        }
        let known = server.consult()?;
        let (best, consultation) = (recommended(&known["facts"]), known["consultation"].clone());
        let informed = best.is_some();
        Ok(Choice { force: best.cloned().unwrap_or(drawn), consultation, informed })
    }
}

/// Consults, decides, proposes, acts and reports in each round; returns the counts.
pub fn run(plan: &Plan) -> Result<Value, Error> {
    let (server, mut dice) = (Server::new(plan), Dice(plan.seed));
    let names = ["skipped", "informed", "admitted", "clamped", "needs_confirmation", "denied"];
    let mut reported = json!({ "rounds": plan.rounds, "worked": 0, "failed": 0 });
    names.iter().for_each(|name| reported[*name] = 0.into());
    let count = |reported: &mut Value, name: &str| {
        reported[name] = (reported[name].as_u64().unwrap_or_default() + 1).into();
    };
    let before = server.identity()?;
    for _ in 0..plan.rounds {
        // Throw the dice in every round, so that both ways of planning get the same numbers.
        let mut force = Value::from(dice.throw(1, 60));
        let mut consultation = None;
        if !plan.ignore_facts {
            if !server.may_attempt()? {
                count(&mut reported, "skipped");
                continue;
            }
            let chosen = Choice::of(&server, force)?;
            if chosen.informed {
                count(&mut reported, "informed");
            }
            (force, consultation) = (chosen.force, Some(chosen.consultation));
        }
        let intent = server.propose(&force, consultation.as_ref())?;
        let verdict = intent["verdict"].as_str().unwrap_or_default();
        count(&mut reported, verdict);
        // An intent that waits for confirmation is skipped.
        if matches!(verdict, "admitted" | "clamped") {
            let force = intent["admitted_params"]["force_n"].as_f64().ok_or("no force")?;
            let outcome = if plan.stuck { (false, "stuck") } else { simulate(force) };
            count(&mut reported, if outcome.0 { "worked" } else { "failed" });
            server.report(&intent, outcome)?;
        }
    }
    reported["unchanged"] = (server.identity()? == before).into();
    reported["identity"] = before;
    Ok(reported)
}

#[allow(dead_code, reason = "a test calls `run` by itself")]
fn main() -> Result<(), Error> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let [ignore_facts, stuck] =
        ["--ignore-facts", "--stuck"].map(|flag| args.iter().any(|arg| arg == flag));
    args.retain(|arg| arg != "--ignore-facts" && arg != "--stuck");
    let value = |name: &str, default: u64| -> Result<u64, Error> {
        let given = args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
        Ok(given.map(|text| text.parse()).transpose()?.unwrap_or(default))
    };
    let (rounds, seed) = (value("--rounds", 200)?, value("--seed", 7)?);
    let url = args.first().ok_or("give the URL of `ipse serve`, such as http://127.0.0.1:7477")?;
    let (planner, producer) = (std::env::var("IPSE_PLANNER")?, std::env::var("IPSE_PRODUCER")?);
    let url = url.trim_end_matches('/').to_owned();
    let plan = Plan { url, planner, producer, rounds, seed, ignore_facts, stuck };
    println!("{}", run(&plan)?);
    Ok(())
}
