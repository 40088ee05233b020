//! Closed-loop worlds: a planner picks a value, a made world answers, the planner learns.
//!
//! The worlds: the best value *stays*; it *moves* once; a *better* one appears *elsewhere* while
//! the old one still works, less well; it *drifts* by a unit every five days; the value does not
//! matter (*flat*). The best value works in 95 of 100 attempts, one far from it in 10.
//!
//! **Invariants:** the worlds are made and no robot ran. A run depends on its world, rate, planner
//! and seed alone, so threads have no effect on a figure. `recommended` is the value that a pass
//! after each attempt would publish.

use crate::Error;
use crate::figures::{Bars, Figure, bars};
use crate::random::Python;
use crate::table::Sheet;
use ipse_consolidate::Tally;
use ipse_consolidate::days::{Days, Rate};
use ipse_consolidate::histogram::Histogram;
use ipse_consolidate::recommend::Recommended;
use ipse_consolidate::v2::{Dated, Tried, Values};
use ipse_core::Micro;
use ipse_core::json::{Members, list};
use ipse_plan::{Candidates, suggest};
use std::sync::atomic::{AtomicU64, Ordering};

/// The days of a run.
const DAYS: i64 = 120;
/// The attempts of a day.
pub const PER_DAY: [u64; 3] = [2, 8, 30];
/// The candidates: 5, 7, … 45.
const VALUES: usize = 21;
/// The value that a planner prefers while it knows nothing.
const PREFERRED: f64 = 25.0;
/// A day on which the mean probability exceeds this is right again.
const RIGHT: f64 = 0.85;
/// From this many values on a parameter has a recommendation in `v1`.
const COMPETING_FROM: i64 = 3;
/// The threads of an evaluation.
const THREADS: usize = 2;
const PARAM: &str = "x";

fn value(place: usize) -> f64 {
    5.0 + 2.0 * place as f64
}

fn micro(number: f64) -> Micro {
    Micro::from_f64(number).expect("BUG: a value of a world is a number")
}

/// A kind of world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum World {
    /// The best value stays.
    Stays,
    /// The best value moves once.
    Moves,
    /// A better value appears, and the old one works less well.
    BetterElsewhere,
    /// The best value moves by a unit every five days.
    Drifts,
    /// The value does not matter.
    Flat,
}

impl World {
    /// All worlds.
    pub const ALL: [World; 5] =
        [World::Stays, World::Moves, World::BetterElsewhere, World::Drifts, World::Flat];

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            World::Stays => "stays",
            World::Moves => "moves",
            World::BetterElsewhere => "better elsewhere",
            World::Drifts => "drifts",
            World::Flat => "flat",
        }
    }
}

/// A world with its numbers drawn.
struct Drawn {
    world: World,
    a: f64,
    b: f64,
    moved: i64,
}

impl Drawn {
    fn new(world: World, random: &mut Python) -> Self {
        let mut inner = || value(4 + random.below(VALUES as u32 - 8) as usize);
        let (a, b) = (inner(), inner());
        Drawn { world, a, b, moved: 40 + i64::from(random.below(20)) }
    }

    /// The probability that a value works on a day.
    fn probability(&self, x: f64, day: i64) -> f64 {
        let bump = |middle: f64, top: f64| {
            let distance = (x - middle) / 5.0;
            0.1 + (top - 0.1) * libm::exp(-distance * distance)
        };
        let late = day >= self.moved;
        match self.world {
            World::Stays => bump(self.a, 0.95),
            World::Moves => bump(if late { self.b } else { self.a }, 0.95),
            World::BetterElsewhere if late => bump(self.a, 0.7).max(bump(self.b, 0.95)),
            World::BetterElsewhere => bump(self.a, 0.95),
            World::Drifts => {
                let moved = day as f64 / 5.0;
                bump(if self.a < PREFERRED { self.a + moved } else { self.a - moved }, 0.95)
            }
            World::Flat => 0.6,
        }
    }

    fn move_day(&self) -> Option<i64> {
        matches!(self.world, World::Moves | World::BetterElsewhere).then_some(self.moved)
    }
}

/// A way to pick values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picker {
    /// Draws a value, and learns nothing.
    NoMemory,
    /// Takes what `v1` recommends; draws without a recommendation.
    RecommendedV1,
    /// Takes what `v2` recommends; draws without a recommendation.
    RecommendedV2,
    /// Takes what `suggest` names.
    Suggest,
    /// Thompson sampling whose counts shrink at each attempt by this factor, in thousandths.
    Thompson(u32),
}

impl Picker {
    /// All pickers.
    pub const ALL: [Picker; 7] = [
        Picker::NoMemory,
        Picker::RecommendedV1,
        Picker::RecommendedV2,
        Picker::Suggest,
        Picker::Thompson(990),
        Picker::Thompson(995),
        Picker::Thompson(999),
    ];

    /// The name in tables and JSON.
    pub fn name(self) -> String {
        match self {
            Picker::NoMemory => "no memory".to_owned(),
            Picker::RecommendedV1 => "recommended v1".to_owned(),
            Picker::RecommendedV2 => "recommended v2".to_owned(),
            Picker::Suggest => "suggest".to_owned(),
            Picker::Thompson(factor) => format!("Thompson .{}", trimmed(factor)),
        }
    }
}

/// Thousandths without trailing zeros.
fn trimmed(thousandths: u32) -> String {
    format!("{thousandths:03}").trim_end_matches('0').to_owned()
}

/// What a picker has learned.
struct Memory {
    picker: Picker,
    candidates: Candidates,
    sum: Dated,
    all: Histogram,
    counts: [[f64; 2]; VALUES],
}

impl Memory {
    fn new(picker: Picker) -> Self {
        let values: Vec<f64> = (0..VALUES).map(value).collect();
        let candidates = Candidates::numbers(&values).expect("BUG: the values differ");
        let (sum, all) = (Dated::default(), Histogram::default());
        Memory { picker, candidates, sum, all, counts: [[0.0; 2]; VALUES] }
    }

    /// The next value.
    fn pick(&self, random: &mut Python) -> f64 {
        let recommended = match self.picker {
            Picker::NoMemory => None,
            Picker::RecommendedV1 => {
                let competitors = usize::from(self.all.n() >= COMPETING_FROM);
                Recommended::search(&self.all, competitors).map(|found| found.value())
            }
            Picker::RecommendedV2 => {
                let (tried, _) = Tried::of(&self.sum);
                tried.first().and_then(|it| Some(it.recommended.as_ref()?.0.value()))
            }
            Picker::Suggest => {
                let nothing = Days::default();
                let days = self.sum.params.get(PARAM).map_or(&nothing, Values::days);
                Some(suggest(days, &self.candidates, Some(micro(PREFERRED))).value.get())
            }
            Picker::Thompson(_) => return self.sample(random),
        };
        match recommended {
            Some(micro) => micro as f64 / 1e6,
            None => value(3 + random.below(VALUES as u32 - 6) as usize),
        }
    }

    /// The value whose drawn success rate is the greatest.
    fn sample(&self, random: &mut Python) -> f64 {
        let mut best = (f64::MIN, 0);
        for (place, [worked, failed]) in self.counts.iter().enumerate() {
            let [a, b] = [1.0 + worked, 1.0 + failed].map(|shape| gamma(shape, random));
            if a / (a + b) > best.0 {
                best = (a / (a + b), place);
            }
        }
        value(best.1)
    }

    fn learn(&mut self, x: f64, worked: bool, day: i64) {
        match self.picker {
            Picker::NoMemory => {}
            Picker::Thompson(factor) => {
                let factor = f64::from(factor) / 1000.0;
                self.counts.iter_mut().flatten().for_each(|count| *count *= factor);
                let place = (0..VALUES).find(|place| value(*place) >= x).unwrap_or(VALUES - 1);
                self.counts[place][usize::from(!worked)] += 1.0;
            }
            Picker::RecommendedV1 => self.all.add(&Histogram::of(micro(x), worked)),
            Picker::RecommendedV2 | Picker::Suggest => {
                let one = Days::one(day, Histogram::of(micro(x), worked));
                let values = self.sum.params.entry(PARAM.to_owned()).or_default();
                values.add(&Values::of(one));
                let rate = Rate { n: 1, s: i64::from(worked) };
                self.sum.sources.entry("world".to_owned()).or_default().put(day, &rate);
            }
        }
    }
}

/// A draw of the gamma distribution with a shape of at least 1 (Marsaglia and Tsang, 2000).
fn gamma(shape: f64, random: &mut Python) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(random);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = 1.0 - random.random();
        if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

/// A draw of the standard normal distribution (Box and Muller, 1958).
fn normal(random: &mut Python) -> f64 {
    let (radius, angle) = (1.0 - random.random(), random.random());
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * core::f64::consts::PI * angle)
}

/// The result of one run.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Life {
    worked: u64,
    /// Days after the move until a day is right again; `None` if none is, or nothing moves.
    again: Option<i64>,
}

fn live(world: World, per_day: u64, picker: Picker, seed: u64) -> Life {
    let place = World::ALL.iter().position(|it| *it == world).unwrap_or_default() as i128;
    // Each world and rate draws its own numbers, so that its row is an experiment of its own.
    let mut random = Python::new((i128::from(seed) * 10 + place) * 1000 + i128::from(per_day));
    let drawn = Drawn::new(world, &mut random);
    let mut memory = Memory::new(picker);
    let (mut worked, mut again) = (0, None);
    for day in 0..DAYS {
        let mut expected = 0.0;
        for _ in 0..per_day {
            let x = memory.pick(&mut random);
            let p = drawn.probability(x, day);
            let success = random.random() < p;
            memory.learn(x, success, day);
            worked += u64::from(success);
            expected += p;
        }
        let right = expected / per_day as f64 > RIGHT;
        if let Some(moved) = drawn.move_day().filter(|moved| day >= *moved && right) {
            again = again.or(Some(day - moved));
        }
    }
    Life { worked, again }
}

/// The results of one picker in one world at one rate, over all seeds.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The picker.
    pub picker: Picker,
    /// The percentage of attempts that worked.
    pub percent: f64,
    /// The median of the days until right again; `None` if nothing moves or most never are.
    pub days: Option<i64>,
    /// The number of runs that were never right again; `None` if nothing moves.
    pub never: Option<u64>,
}

/// A world at a rate, with a cell for each picker.
#[derive(Clone, PartialEq, Debug)]
pub struct WorldRow {
    /// The world.
    pub world: World,
    /// The attempts of a day.
    pub per_day: u64,
    /// The cells, in the order of [`Picker::ALL`].
    pub cells: Vec<Cell>,
}

impl WorldRow {
    /// The cell of a picker.
    pub fn of(&self, picker: Picker) -> &Cell {
        let cell = self.cells.iter().find(|cell| cell.picker == picker);
        cell.expect("BUG: a row has all pickers")
    }

    /// Whether sampling with .999 is ahead of `suggest`.
    pub fn is_behind(&self) -> bool {
        self.of(Picker::Thompson(999)).percent > self.of(Picker::Suggest).percent
    }
}

/// The table of all worlds.
#[derive(Clone, PartialEq, Debug)]
pub struct Worlds {
    /// The number of seeds.
    pub seeds: u64,
    /// The rows.
    pub rows: Vec<WorldRow>,
}

/// Runs all worlds. `progress` receives the number of runs so far, and the total.
pub fn worlds(seeds: u64, progress: &(dyn Fn(u64, u64) + Sync)) -> Worlds {
    let rows: Vec<(World, u64)> =
        World::ALL.iter().flat_map(|world| PER_DAY.map(|per_day| (*world, per_day))).collect();
    let jobs: Vec<(World, u64, Picker)> = rows
        .iter()
        .flat_map(|(world, per_day)| Picker::ALL.map(|picker| (*world, *per_day, picker)))
        .collect();
    let (done, total) = (AtomicU64::new(0), jobs.len() as u64);
    let cell = |(world, per_day, picker): &(World, u64, Picker)| {
        let cell = cell(*world, *per_day, *picker, seeds);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        cell
    };
    let part = |thread: usize| -> Vec<Cell> {
        jobs.iter().skip(thread).step_by(THREADS).map(cell).collect()
    };
    let parts: Vec<Vec<Cell>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let part = &part;
                    move || part(thread)
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().expect("BUG: a world panicked")).collect()
    });
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    let mut cells = (0..jobs.len()).filter_map(|job| parts[job % THREADS].next());
    let rows = rows.into_iter().map(|(world, per_day)| {
        let cells = cells.by_ref().take(Picker::ALL.len()).collect();
        WorldRow { world, per_day, cells }
    });
    Worlds { seeds, rows: rows.collect() }
}

fn cell(world: World, per_day: u64, picker: Picker, seeds: u64) -> Cell {
    let lives: Vec<Life> = (0..seeds).map(|seed| live(world, per_day, picker, seed)).collect();
    let worked: u64 = lives.iter().map(|life| life.worked).sum();
    let attempts = seeds * per_day * DAYS.unsigned_abs();
    let moves = matches!(world, World::Moves | World::BetterElsewhere);
    let mut again: Vec<i64> = lives.iter().map(|life| life.again.unwrap_or(i64::MAX)).collect();
    again.sort_unstable();
    let median = again.get((again.len().saturating_sub(1)) / 2).copied();
    Cell {
        picker,
        percent: 100.0 * worked as f64 / attempts.max(1) as f64,
        days: median.filter(|days| moves && *days < i64::MAX),
        never: moves.then(|| lives.iter().filter(|life| life.again.is_none()).count() as u64),
    }
}

/// The sentence that belongs to every table of these worlds.
pub const MADE: &str = "The worlds are made: five functions from a value and a day to a \
    probability, with candidates that are the world's own grid. No robot has run.";

impl Worlds {
    /// The percentages, and after the move the days until right again.
    pub fn sheet(&self) -> Sheet {
        let mut head = vec!["world", "a day"];
        head.extend(HEADS);
        let row = |row: &WorldRow| {
            let mark = if row.is_behind() { " *" } else { "" };
            let mut cells = vec![format!("{}{mark}", row.world.name()), row.per_day.to_string()];
            cells.extend(row.cells.iter().map(|cell| format!("{:.1}", cell.percent)));
            cells
        };
        Sheet {
            name: "evaluate-worlds".to_owned(),
            title: format!("Attempts that worked, in percent, over {} seeds", self.seeds),
            head,
            rows: self.rows.iter().map(row).collect(),
            data: None,
            note: format!("{MADE} *: sampling with .999 is ahead of suggest."),
            timed: false,
        }
    }

    /// The median of days until a day is right again, and how many runs never are.
    pub fn recovery(&self) -> Sheet {
        let mut head = vec!["world", "a day"];
        head.extend(HEADS);
        let text = |cell: &Cell| match (cell.never, cell.days) {
            (None, _) => "-".to_owned(),
            (Some(never), Some(days)) => format!("{days} ({never} never)"),
            (Some(never), None) => format!("- ({never} never)"),
        };
        let row = |row: &WorldRow| {
            let mut cells = vec![row.world.name().to_owned(), row.per_day.to_string()];
            cells.extend(row.cells.iter().map(text));
            cells
        };
        Sheet {
            name: "evaluate-recovery".to_owned(),
            title: "Median of days after the move until the day's mean probability exceeds 0.85, \
                    and runs in which it never does"
                .to_owned(),
            head,
            rows: self.rows.iter().map(row).collect(),
            data: None,
            note: String::new(),
            timed: false,
        }
    }

    /// The table as canonical JSON.
    pub fn json(&self) -> String {
        let cell = |cell: &Cell| {
            Members::new()
                .text("planner", &cell.picker.name())
                .raw("percent", cell.percent)
                .optional("days_until_right", cell.days)
                .optional("never", cell.never)
                .finish()
        };
        let row = |row: &WorldRow| {
            Members::new()
                .text("world", row.world.name())
                .raw("per_day", row.per_day)
                .raw("planners", list(row.cells.iter().map(cell)))
                .finish()
        };
        Members::new()
            .raw("seeds", self.seeds)
            .raw("worlds", list(self.rows.iter().map(row)))
            .text("words", MADE)
            .finish()
    }

    /// Bars of the worlds at 8 attempts a day.
    pub fn figure(&self) -> Result<Figure, Error> {
        let shown = [
            Picker::RecommendedV1,
            Picker::RecommendedV2,
            Picker::Suggest,
            Picker::Thompson(995),
            Picker::Thompson(999),
        ];
        let rows = self.rows.iter().filter(|row| row.per_day == 8).map(|row| {
            let percents = shown.map(|picker| row.of(picker).percent);
            (row.world.name().to_owned(), percents.to_vec())
        });
        bars(&Bars {
            name: "worlds",
            title: "Attempts that worked, in percent, at 8 attempts a day".to_owned(),
            caption: format!("Made worlds, 120 days, {} seeds.", self.seeds),
            series: shown.map(Picker::name).to_vec(),
            rows: rows.collect(),
        })
    }
}

/// The columns of the pickers.
const HEADS: [&str; 7] =
    ["no memory", "v1", "v2", "suggest", "Thompson .99", "Thompson .995", "Thompson .999"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads and the number of other jobs have no effect on a figure.
    #[test]
    fn a_cell_depends_on_its_seeds_alone() {
        let cells = [Picker::Suggest, Picker::Thompson(995), Picker::RecommendedV2];
        for picker in cells {
            let one = cell(World::Moves, 2, picker, 2);
            assert_eq!(cell(World::Moves, 2, picker, 2), one);
            assert!((10.0..95.0).contains(&one.percent), "{one:?}");
        }
    }

    /// In worlds where the value matters, trying is ahead of taking what worked first.
    #[test]
    fn suggest_is_ahead_where_the_value_matters() {
        for world in [World::Stays, World::Moves, World::BetterElsewhere, World::Drifts] {
            let [v1, ours] = [Picker::RecommendedV1, Picker::Suggest]
                .map(|picker| cell(world, 8, picker, 6).percent);
            assert!(ours > v1, "{world:?}: {ours} {v1}");
        }
        let drawn = cell(World::Flat, 8, Picker::NoMemory, 4).percent;
        assert!((57.0..63.0).contains(&drawn), "{drawn}");
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        let mut random = Python::new(7);
        let n = 20_000;
        let mean =
            |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        assert!(mean(&mut || normal(&mut random)).abs() < 0.03);
        for shape in [1.0, 2.5, 40.0] {
            let found = mean(&mut || gamma(shape, &mut random));
            assert!((found / shape - 1.0).abs() < 0.03, "{shape}: {found}");
        }
    }
}
