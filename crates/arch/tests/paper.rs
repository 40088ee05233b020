//! The page of the paper's claims: each row names code, a test that exists, and what came out.
//!
//! **Invariant:** a row is believed only as far as the workspace bears it out: its tests are looked
//! up in the files it links, and its errata in the list below the tables.
#![allow(missing_docs, clippy::unwrap_used)]

mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use workspace::page::{code_links, links, tables};
use workspace::{Source, read, report, root, sources};

const PAGE: &str = "docs/paper.md";
/// What every table has.
const HEAD: [&str; 4] = ["claim", "code", "test", "result"];
/// How a result begins that a test must bear out.
const SHOWN: [&str; 3] = ["holds", "equal:", "partly:"];
/// How a result begins that needs no test.
const UNSHOWN: [&str; 3] = ["not yet:", "does not apply:", "erratum "];
/// Rows that the paper has at least; fewer are a page that was cut or not read.
const ROWS: usize = 200;

/// The tests of the workspace by name, each with the files that have one.
type Tests = BTreeMap<String, Vec<String>>;

fn tests_of(sources: &[Source]) -> Tests {
    let mut tests = Tests::new();
    for source in sources {
        for name in source.tests() {
            tests.entry(name.to_string()).or_default().push(source.path.clone());
        }
    }
    tests
}

/// What is wrong with one test that a cell names; a path is a step of `./test`.
fn misnamed(name: &str, target: Option<&str>, tests: &Tests) -> Option<String> {
    let Some(target) = target.and_then(|target| target.strip_prefix("../")) else {
        return Some(format!("link `{name}` to where it stands, as `../…`"));
    };
    if name.contains('/') {
        let is_step = name == target && root().join(name).is_file() && read("test").contains(name);
        return (!is_step).then(|| format!("`{name}` is no step of ./test"));
    }
    let Some(files) = tests.get(name) else {
        return Some(format!("there is no test `{name}`"));
    };
    let is_below = |file: &String| {
        file.strip_prefix(target).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let there = files.join(", ");
    (!files.iter().any(is_below)).then(|| format!("`{name}` is not in {target}; it is in {there}"))
}

/// The numbers behind the word "erratum".
fn errata_named(text: &str) -> Vec<usize> {
    let numbers = text.split("erratum ").skip(1);
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    numbers.map(|rest| digits(rest).parse().unwrap_or(0)).collect()
}

/// What is wrong with one row of claims.
fn row_faults(cells: &[&str], tests: &Tests, errata: &[usize]) -> Vec<String> {
    let [claim, code, test, result] = cells else {
        return vec![format!("{} cells; a claim has claim, code, test, result", cells.len())];
    };
    let mut faults = Vec::new();
    let begins = |with: &[&str]| with.iter().any(|word| result.starts_with(word));
    if !begins(&SHOWN) && !begins(&UNSHOWN) {
        faults.push(format!("begin the result with one of {SHOWN:?} or {UNSHOWN:?}: `{result}`"));
    }
    if claim.is_empty() {
        faults.push("say what is claimed".into());
    }
    let named = code_links(test);
    if begins(&SHOWN) && links(code).is_empty() {
        faults.push("link the code that bears it".into());
    }
    if begins(&SHOWN) && named.is_empty() {
        faults.push("name a test, in backticks".into());
    }
    faults.extend(named.iter().filter_map(|(name, target)| misnamed(name, *target, tests)));
    let unknown = errata_named(result).into_iter().filter(|number| !errata.contains(number));
    faults.extend(unknown.map(|number| format!("there is no erratum {number}")));
    faults
}

/// The numbers of the list below `## Errata`.
fn errata(page: &str) -> Vec<usize> {
    let list = page.split("\n## Errata\n").nth(1).unwrap_or_default();
    let list = list.split("\n## ").next().unwrap();
    list.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect()
}

/// Everything that is wrong with the page of claims.
fn page_faults(page: &str, tests: &Tests) -> Vec<String> {
    let errata = errata(page);
    let mut faults = Vec::new();
    let mut named = BTreeSet::new();
    for table in tables(page) {
        let (number, head) = &table[0];
        if *head != HEAD {
            faults.push(format!("{PAGE}:{number}: a table here has the head {HEAD:?}"));
        }
        for (number, cells) in &table[1..] {
            named.extend(cells.last().into_iter().flat_map(|result| errata_named(result)));
            let wrong = row_faults(cells, tests, &errata);
            faults.extend(wrong.iter().map(|fault| format!("{PAGE}:{number}: {fault}")));
        }
    }
    if !errata.iter().copied().eq(1..=errata.len()) {
        faults.push(format!("{PAGE}: number the errata from 1 without a gap: {errata:?}"));
    }
    let idle = errata.iter().filter(|number| !named.contains(number));
    faults.extend(idle.map(|number| format!("{PAGE}: no row names erratum {number}")));
    faults
}

#[test]
fn every_claim_has_its_code_its_test_and_its_result() {
    let page = read(PAGE);
    let rows: usize = tables(&page).iter().map(|table| table.len() - 1).sum();
    assert!(rows >= ROWS, "{PAGE}: {rows} rows; the paper has more claims than that");
    assert!(!errata(&page).is_empty(), "{PAGE}: list the errata below `## Errata`");
    report(&page_faults(&page, &tests_of(&sources())));
}

const TESTS: &str = "
#[test]
fn plain() {}
proptest! {
    /// Why.
    #[test]
    #[allow(x)]
    fn drawn(a in 0..9) {}
}
fn no_test() {}
";

const GOOD: &str = "
| claim | code | test | result |
|---|---|:--|---|
| one | [a](a.rs) | [`plain`](../crates/a/tests/all.rs) | holds |
| two | [a](a.rs) | [`drawn`](../crates/a/tests), [`plain`](../crates/a) | equal: 2 |
| three | | | does not apply: theirs |
| four | | | erratum 2: they say 5; as does erratum 1 |
| five | [a](a.rs) | [`oracle/compare.py`](../oracle/compare.py) | holds: by two programs |

```
| no | table |
```

## Errata

1. **One**: a.
2. **Two**: b.
";

#[test]
fn faults_of_a_page_are_found() {
    let source = Source { path: "crates/a/tests/all.rs".into(), text: TESTS.into() };
    assert_eq!(source.tests(), ["plain", "drawn"]);
    let tests = tests_of(&[source]);
    assert_eq!(page_faults(GOOD, &tests), Vec::<String>::new());
    for (from, to, wanted) in [
        ("`plain`](../crates/a/t", "`no_test`](../crates/a/t", ":4: there is no test `no_test`"),
        ("`plain`](../crates/a)", "`plain`](../crates/b)", ":5: `plain` is not in crates/b; it is"),
        ("`plain`](../crates/a)", "`plain`", ":5: link `plain`"),
        ("../crates/a/tests/all.rs", "../crates/a/test", ":4: `plain` is not in crates/a/test;"),
        ("oracle/compare", "oracle/facts", ":8: `oracle/facts.py` is no step of ./test"),
        ("[`plain`](../crates/a/tests/all.rs)", "", ":4: name a test"),
        ("[a](a.rs) | [`plain`]", "a.rs | [`plain`]", ":4: link the code"),
        ("| holds |", "| true |", ":4: begin the result"),
        ("| holds |", "| holds | too |", ":4: 5 cells"),
        ("| one |", "| |", ":4: say what is claimed"),
        ("test | result", "test | verdict", ":2: a table here has the head"),
        ("erratum 2", "erratum 3", ":7: there is no erratum 3"),
        ("erratum 2", "erratum 1", ": no row names erratum 2"),
        ("2. **Two", "3. **Two", ": number the errata"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let faults = page_faults(&GOOD.replacen(from, to, 1), &tests);
        let said = faults.iter().any(|fault| fault.starts_with(&format!("{PAGE}{wanted}")));
        assert!(said, "{wanted}: {faults:?}");
    }
}
