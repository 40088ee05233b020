//! A page of Markdown as tests see it: where its links lead, and what stands in its tables.
//!
//! **Invariant:** what stands inside a fence is code: it has neither links nor tables.

/// A line of a table with its number; cells are without the blanks around them.
pub(crate) type Row<'p> = (usize, Vec<&'p str>);

/// The lines of a page that are not code, numbered.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    page.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

/// The targets of `[text](target)`, numbered by line; what stands in backticks has no links.
pub(crate) fn links(page: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in prose(page) {
        let prose = line.split('`').step_by(2);
        let targets = prose.flat_map(|prose| prose.split("](").skip(1));
        links.extend(targets.map(|target| (number, target.split([')', ' ']).next().unwrap())));
    }
    links
}

/// The tables: runs of lines that begin with a bar, the head first, the dashes left out.
pub(crate) fn tables(page: &str) -> Vec<Vec<Row<'_>>> {
    let mut tables: Vec<Vec<Row<'_>>> = Vec::new();
    let mut last = 0;
    for (number, line) in prose(page).filter(|(_, line)| line.starts_with('|')) {
        if number != last + 1 {
            tables.push(Vec::new());
        }
        last = number;
        if let Some(table) = tables.last_mut().filter(|_| !is_rule(line)) {
            table.push((number, cells(line)));
        }
    }
    tables
}

fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim_end();
    let inside = line.strip_prefix('|').unwrap_or(line);
    inside.strip_suffix('|').unwrap_or(inside).split('|').map(str::trim).collect()
}

/// What stands in backticks, each with the target of the link around it.
pub(crate) fn code_links(cell: &str) -> Vec<(&str, Option<&str>)> {
    let pieces: Vec<&str> = cell.split('`').chain([""]).collect();
    let (codes, after) = (pieces.iter().skip(1).step_by(2), pieces.iter().skip(2).step_by(2));
    codes.zip(after).map(|(code, after)| (*code, link_target(after))).collect()
}

/// The target of the link whose text ends here.
fn link_target(after: &str) -> Option<&str> {
    after.strip_prefix("](")?.split(')').next()
}
