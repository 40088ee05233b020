//! The two text formats of metrics, and the choice between them.
//!
//! **Invariants**
//! - Both formats show the same values. Prometheus text (0.0.4) names a family like its samples,
//!   and has no units and no end mark. OpenMetrics is the output of the metrics library.
//! - A family is written once: the samples of several agents are in one family, with a label for
//!   the identity.
//! - The default is OpenMetrics, also for a client that accepts neither format.

use std::fmt::Write;

/// A text format of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// All formats, the preferred one first.
    const ALL: [Format; 2] = [Format::OpenMetrics, Format::Prometheus];

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The format that an `Accept` header prefers: the one with the greater weight. OpenMetrics if
    /// both weights are equal.
    pub(crate) fn accepted(accept: &str) -> Self {
        let ranges: Vec<Range<'_>> = accept.split(',').filter_map(Range::parse).collect();
        let weight = |format: Format| {
            let fitting =
                ranges.iter().filter_map(|range| Some((range.fits(format)?, range.weight)));
            fitting.max().map_or(0, |(_, weight)| weight)
        };
        let [first, second] = Self::ALL;
        if weight(second) > weight(first) { second } else { first }
    }
}

/// One range of an `Accept` header.
struct Range<'a> {
    kind: &'a str,
    version: Option<&'a str>,
    /// The weight `q` in thousandths.
    weight: u32,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().filter(|kind| !kind.is_empty())?;
        let mut range = Range { kind, version: None, weight: 1000 };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if name.eq_ignore_ascii_case("q") {
                range.weight = thousandths(value)?;
            } else if name.eq_ignore_ascii_case("version") {
                range.version = Some(value.trim_matches('"'));
            }
        }
        Some(range)
    }

    /// How precisely the range names a format; `None` if it does not match.
    fn fits(&self, format: Format) -> Option<u8> {
        let (kind, version) = match format {
            Format::OpenMetrics => ("application/openmetrics-text", "1.0.0"),
            Format::Prometheus => ("text/plain", "0.0.4"),
        };
        let group = kind.split_once('/').map_or(kind, |(group, _)| group);
        let of_group =
            |range: &str| range.strip_suffix("/*").is_some_and(|it| it.eq_ignore_ascii_case(group));
        match self.version {
            Some(asked) if asked != version => None,
            Some(_) if self.kind.eq_ignore_ascii_case(kind) => Some(3),
            _ if self.kind.eq_ignore_ascii_case(kind) => Some(2),
            _ if of_group(self.kind) => Some(1),
            _ if self.kind == "*/*" => Some(0),
            _ => None,
        }
    }
}

/// Reads a weight by RFC 9110: 0 to 1 with at most three decimals.
fn thousandths(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let whole: u32 = match whole {
        "0" => 0,
        "1" => 1000,
        _ => return None,
    };
    let part: u32 = format!("{decimals:0<3}").parse().ok().filter(|_| digits)?;
    Some(whole + part).filter(|weight| *weight <= 1000)
}

/// A family of samples: one metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Family {
    name: String,
    help: String,
    kind: String,
    unit: Option<String>,
    /// The lines of the samples, without line ends.
    samples: Vec<String>,
}

impl Family {
    /// A gauge with one value.
    pub(crate) fn gauge(name: &str, help: &str, value: impl ToString) -> Self {
        let sample = format!("{name} {}", value.to_string());
        Family::new(name, help, "gauge", vec![sample])
    }

    /// A counter with one value.
    pub(crate) fn counter(name: &str, help: &str, value: impl ToString) -> Self {
        let sample = format!("{name}_total {}", value.to_string());
        Family::new(name, help, "counter", vec![sample])
    }

    fn new(name: &str, help: &str, kind: &str, samples: Vec<String>) -> Self {
        let (name, help, kind) = (name.to_owned(), help.to_owned(), kind.to_owned());
        Family { name, help, kind, unit: None, samples }
    }

    /// Parses the output of the metrics library.
    pub(crate) fn parse(page: &str) -> Vec<Self> {
        let mut families: Vec<Family> = Vec::new();
        for line in page.lines() {
            let described = ["# HELP ", "# TYPE ", "# UNIT "].iter().find_map(|mark| {
                let (name, text) = line.strip_prefix(mark)?.split_once(' ')?;
                Some((&mark[2..6], name, text))
            });
            let Some((mark, name, text)) = described else {
                if let Some(family) = families.last_mut().filter(|_| !line.starts_with('#')) {
                    family.samples.push(line.to_owned());
                }
                continue;
            };
            if families.last().is_none_or(|family| family.name != name) {
                families.push(Family::new(name, "", "unknown", Vec::new()));
            }
            let Some(family) = families.last_mut() else { continue };
            match mark {
                "HELP" => family.help = text.to_owned(),
                "TYPE" => family.kind = text.to_owned(),
                _ => family.unit = Some(text.to_owned()),
            }
        }
        families
    }

    /// Adds a label to every sample. The value must need no escaping.
    fn labelled(mut self, label: &str, value: &str) -> Self {
        for sample in &mut self.samples {
            *sample = match sample.split_once('{') {
                Some((name, rest)) => format!("{name}{{{label}=\"{value}\",{rest}"),
                None => {
                    let (name, rest) = sample.split_once(' ').unwrap_or((sample, ""));
                    format!("{name}{{{label}=\"{value}\"}} {rest}")
                }
            };
        }
        self
    }

    /// Merges the families of several pages. The label on each sample says which page it is from.
    pub(crate) fn merged(label: &str, pages: Vec<(String, Vec<Family>)>) -> Vec<Self> {
        let mut all: Vec<Family> = Vec::new();
        for (value, page) in pages {
            for family in page {
                let family = family.labelled(label, &value);
                match all.iter_mut().find(|it| it.name == family.name) {
                    Some(there) => there.samples.extend(family.samples),
                    None => all.push(family),
                }
            }
        }
        all
    }

    /// The name and the type of the family in a format.
    fn described(&self, format: Format) -> (String, &str) {
        let name = &self.name;
        match (format, &*self.kind) {
            (Format::Prometheus, "counter") => (format!("{name}_total"), "counter"),
            (Format::Prometheus, "info") => (format!("{name}_info"), "gauge"),
            (Format::Prometheus, "unknown") => (name.clone(), "untyped"),
            (_, kind) => (name.clone(), kind),
        }
    }
}

/// Writes families as text.
pub(crate) fn page(families: &[Family], format: Format) -> String {
    let mut page = String::new();
    for family in families {
        let (name, kind) = family.described(format);
        let _ = writeln!(page, "# HELP {name} {}", family.help);
        let _ = writeln!(page, "# TYPE {name} {kind}");
        if let (Format::OpenMetrics, Some(unit)) = (format, &family.unit) {
            let _ = writeln!(page, "# UNIT {name} {unit}");
        }
        for sample in &family.samples {
            let _ = writeln!(page, "{sample}");
        }
    }
    if format == Format::OpenMetrics {
        page.push_str("# EOF\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_with_the_greater_weight_is_chosen() {
        use Format::{OpenMetrics, Prometheus};
        for (accept, want) in [
            ("", OpenMetrics),
            ("*/*", OpenMetrics),
            ("text/html", OpenMetrics),
            ("text/plain", Prometheus),
            ("text/*", Prometheus),
            ("TEXT/Plain; version=0.0.4", Prometheus),
            ("text/plain;version=\"0.0.4\"", Prometheus),
            ("text/plain;version=0.0.5", OpenMetrics),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Prometheus),
            // Prometheus 2.
            (
                "application/openmetrics-text;version=1.0.0,\
                 application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            // A client that supports only the older OpenMetrics.
            (
                "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5",
                Prometheus,
            ),
            ("application/openmetrics-text;q=0.2, text/plain;q=0.3", Prometheus),
            ("application/openmetrics-text;q=0.3, text/plain;q=0.3", OpenMetrics),
            ("application/openmetrics-text;q=0, */*", Prometheus),
            ("text/plain;q=0, */*;q=0.1", OpenMetrics),
            ("application/*;q=0.9, text/plain;version=0.0.4;q=0.8, text/plain", OpenMetrics),
            ("text/plain;q=2, application/openmetrics-text;q=0.1", OpenMetrics),
            ("text/plain;q=0.0001, application/openmetrics-text;q=0", OpenMetrics),
            ("text/plain;q=1.000", Prometheus),
            (",,;q=1,text/plain", Prometheus),
        ] {
            assert_eq!(Format::accepted(accept), want, "{accept}");
        }
    }

    const PAGE: &str = "\
# HELP a_b Requests.
# TYPE a_b counter
a_b_total{x=\"{\"} 1
a_b_total 2
# HELP t_seconds Time.
# TYPE t_seconds gauge
# UNIT t_seconds seconds
t_seconds 0.5
# EOF
";

    #[test]
    fn what_is_parsed_is_written_again() {
        assert_eq!(page(&Family::parse(PAGE), Format::OpenMetrics), PAGE);
        let text = page(&Family::parse(PAGE), Format::Prometheus);
        assert_eq!(
            text,
            "# HELP a_b_total Requests.\n# TYPE a_b_total counter\na_b_total{x=\"{\"} 1\n\
             a_b_total 2\n# HELP t_seconds Time.\n# TYPE t_seconds gauge\nt_seconds 0.5\n"
        );
    }

    #[test]
    fn a_family_of_several_agents_stands_once() {
        let pages = ["1", "2"].map(|name| (name.to_owned(), Family::parse(PAGE)));
        let merged = page(&Family::merged("identity", pages.into()), Format::OpenMetrics);
        assert_eq!(merged.matches("# TYPE a_b counter").count(), 1, "{merged}");
        for line in [
            "a_b_total{identity=\"1\",x=\"{\"} 1\n",
            "a_b_total{identity=\"2\"} 2\n",
            "t_seconds{identity=\"2\"} 0.5\n",
        ] {
            assert_eq!(merged.matches(line).count(), 1, "{line} in {merged}");
        }
    }

    #[test]
    fn an_info_is_a_gauge_in_the_older_format() {
        let info = Family::parse("# HELP x V.\n# TYPE x info\nx_info{v=\"1\"} 1\n");
        let text = page(&info, Format::Prometheus);
        assert_eq!(text, "# HELP x_info V.\n# TYPE x_info gauge\nx_info{v=\"1\"} 1\n");
        let counter = [Family::counter("process_cpu_seconds", "CPU time.", 1.5)];
        assert!(page(&counter, Format::OpenMetrics).contains(
            "# TYPE process_cpu_seconds counter\n\
                                                              process_cpu_seconds_total 1.5\n"
        ));
    }
}
