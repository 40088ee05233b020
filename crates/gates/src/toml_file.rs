//! Reads TOML and reports every error with its line and path.
//!
//! **Invariants:** all errors of a file are collected, not only the first; a file with an error
//! gives no value. An unknown member is an error.

use crate::error::{FileError, GateFile};
use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use ipse_core::decimal::{LIMIT, SCALE};
use ipse_core::text::printable;
use ipse_core::{MAX_TEXT_BYTES, Micro};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest file: far above any hand-written one, and still fast to parse.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// The most rules of a file (clamp, forbid, human_check): each is evaluated for every intent.
pub const MAX_RULES: usize = 1024;
/// The most names in a list (targets, environments, one_of).
pub const MAX_LIST: usize = 1024;
/// The longest reason: every verdict that it explains contains it.
pub const MAX_REASON_BYTES: usize = 256;
/// The most errors that are reported for one file: a person does not fix more at once.
pub(crate) const MAX_ERRORS: usize = 64;

/// A value and its line.
#[derive(Clone, Debug)]
pub(crate) struct LineValue<T> {
    pub(crate) value: T,
    pub(crate) line: usize,
}

/// Reads a file of the kind `which`: `shape` converts its root.
pub(crate) fn read<T>(
    which: GateFile,
    text: &str,
    known: &[&str],
    shape: impl FnOnce(&Section<'_, '_>) -> Option<T>,
) -> Result<T, Vec<FileError>> {
    let reading = Reading::of(which, text);
    let Some(root) = reading.root(text) else { return Err(reading.errors()) };
    let root = root.get_ref();
    let section = Section { reading: &reading, path: String::new(), line: 1, table: root };
    if !section.is_of(which) {
        return Err(reading.errors());
    }
    section.only(known);
    let made = shape(&section);
    let errors = reading.errors();
    debug_assert!(made.is_some() || !errors.is_empty(), "BUG: refused without a reason");
    made.filter(|_| errors.is_empty()).ok_or(errors)
}

/// The kind of file according to the member `format`.
pub(crate) fn format_of(text: &str) -> Option<GateFile> {
    if text.len() > MAX_FILE_BYTES {
        return None;
    }
    // A file with an error further down still has its format.
    let (root, _) = DeTable::parse_recoverable(text);
    let format = root.get_ref().get("format")?.get_ref().as_str()?;
    GateFile::ALL.into_iter().find(|which| which.formats().contains(&format))
}

/// A path in TOML syntax: `skills."manipulation.grasp"`.
pub(crate) fn under(path: &str, name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: Cow<'_, str> = match !name.is_empty() && name.chars().all(is_bare) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(ipse_core::json::quoted(name)),
    };
    if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") }
}

/// The state of reading one file: where lines begin, and the errors so far.
pub(crate) struct Reading {
    which: GateFile,
    line_starts: Vec<usize>,
    errors: RefCell<Vec<FileError>>,
    rules: Cell<usize>,
}

impl Reading {
    fn of(which: GateFile, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = core::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Reading { which, line_starts, errors: RefCell::default(), rules: Cell::new(0) }
    }

    /// The file as a table, if it is valid TOML.
    fn root<'t>(&self, text: &'t str) -> Option<Spanned<DeTable<'t>>> {
        if text.len() > MAX_FILE_BYTES {
            self.wrong(1, "", format!("the file is larger than {MAX_FILE_BYTES} bytes"));
            return None;
        }
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let line = self.line(error.span().map_or(0, |span| span.start));
            self.wrong(line, "", format!("not valid TOML: {}", error.message()));
        }
        errors.is_empty().then_some(root)
    }

    /// The number of the line with this byte.
    fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    pub(crate) fn wrong(&self, line: usize, field: &str, message: String) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MAX_ERRORS {
            let field = printable(field);
            errors.push(FileError { file: self.which, line, field, message });
        }
    }

    fn errors(&self) -> Vec<FileError> {
        let mut errors = self.errors.borrow().clone();
        errors.sort_by_key(|error| error.line);
        errors
    }
}

/// A table of the file.
pub(crate) struct Section<'r, 't> {
    reading: &'r Reading,
    pub(crate) path: String,
    pub(crate) line: usize,
    table: &'r DeTable<'t>,
}

impl<'r, 't> Section<'r, 't> {
    /// Whether `format` has the right value; otherwise that is the only error.
    fn is_of(&self, which: GateFile) -> bool {
        let wanted: Vec<String> = which.formats().iter().map(|it| format!("\"{it}\"")).collect();
        let wanted = wanted.join(" or ");
        let Some(field) = self.get("format") else {
            self.wrong("format", format!("is missing; write format = {wanted}"));
            return false;
        };
        let said = field.value.as_str().unwrap_or_default();
        if which.formats().contains(&said) {
            return true;
        }
        let other = GateFile::ALL.into_iter().find(|which| which.formats().contains(&said));
        let other = other.map(|which| format!("; this is a {}", which.name()));
        field.wrong(format!("must be {wanted}{}", other.unwrap_or_default()));
        false
    }

    /// Reports every member that is not in this list.
    pub(crate) fn only(&self, known: &[&str]) {
        for (key, _) in self.table {
            if !known.contains(&key.get_ref().as_ref()) {
                let line = self.reading.line(key.span().start);
                let known = known.join(", ");
                let message = format!("no such member; there are {known}");
                self.reading.wrong(line, &under(&self.path, key.get_ref()), message);
            }
        }
    }

    /// The text of a member, if it is one.
    pub(crate) fn word_of(&self, name: &str) -> Option<&'r str> {
        self.table.get(name)?.get_ref().as_str()
    }

    /// The member with this name, if any.
    pub(crate) fn get(&self, name: &str) -> Option<Field<'r, 't>> {
        let (key, value) = self.table.get_key_value(name)?;
        Some(self.field(key, value))
    }

    /// The member with this name; reports an error if it is missing.
    pub(crate) fn required(&self, name: &str) -> Option<Field<'r, 't>> {
        let field = self.get(name);
        if field.is_none() {
            self.wrong(name, "is missing".to_owned());
        }
        field
    }

    /// Reports an error about a missing member, or about several members.
    pub(crate) fn wrong(&self, name: &str, message: String) {
        let path = if name.is_empty() {
            Cow::Borrowed(&*self.path)
        } else {
            under(&self.path, name).into()
        };
        self.reading.wrong(self.line, &path, message);
    }

    /// Reports an error at a place that was read before.
    pub(crate) fn wrong_at(&self, line: usize, field: &str, message: String) {
        self.reading.wrong(line, field, message);
    }

    /// The number under the member `name`, if any.
    pub(crate) fn number(&self, name: &str) -> Option<LineValue<Micro>> {
        let field = self.get(name)?;
        Some(field.placed(field.number()?))
    }

    /// The tables under the member `name`, each with its own name: `[skills."a"]`, `[skills."b"]`.
    pub(crate) fn tables(
        &self,
        name: &str,
        most: usize,
        name_limit: usize,
    ) -> Vec<(String, Section<'r, 't>)> {
        let Some(field) = self.get(name) else { return Vec::new() };
        let Some(holder) = field.section() else { return Vec::new() };
        if holder.table.len() > most {
            field.wrong(format!("there are {} of them; at most {most}", holder.table.len()));
            return Vec::new();
        }
        let named = holder.table.iter().filter_map(|(key, value)| {
            let field = holder.field(key, value);
            field.check_text(key.get_ref(), name_limit)?;
            Some((key.get_ref().to_string(), field.section()?))
        });
        named.collect()
    }

    /// The rules under the member `name`: `[[clamp]]`, `[[clamp]]`.
    pub(crate) fn rules(&self, name: &str) -> Vec<Section<'r, 't>> {
        let Some(field) = self.get(name) else { return Vec::new() };
        let Some(items) = field.value.as_array() else {
            field.wrong(format!("must be a list of tables: [[{}]]", field.path));
            return Vec::new();
        };
        let before = self.reading.rules.get();
        self.reading.rules.set(before + items.len());
        if before + items.len() > MAX_RULES {
            field.wrong(format!("with these the file has more than {MAX_RULES} rules"));
            return Vec::new();
        }
        let sections = items.iter().enumerate().filter_map(|(index, item)| {
            let path = format!("{}[{index}]", field.path);
            let line = self.reading.line(item.span().start);
            Field { reading: self.reading, path, line, at: line, value: item.get_ref() }.section()
        });
        sections.collect()
    }

    fn field(&self, key: &Spanned<Cow<'t, str>>, value: &'r Spanned<DeValue<'t>>) -> Field<'r, 't> {
        Field {
            reading: self.reading,
            path: under(&self.path, key.get_ref()),
            line: self.reading.line(key.span().start),
            at: self.reading.line(value.span().start),
            value: value.get_ref(),
        }
    }
}

/// A member of a table. Its readers report errors and then return `None`.
pub(crate) struct Field<'r, 't> {
    reading: &'r Reading,
    path: String,
    /// The line of the name.
    line: usize,
    /// The line of the value.
    at: usize,
    value: &'r DeValue<'t>,
}

impl<'r, 't> Field<'r, 't> {
    pub(crate) fn wrong(&self, message: impl Into<String>) {
        self.reading.wrong(self.line, &self.path, message.into());
    }

    /// A value with the line of this field.
    pub(crate) fn placed<T>(&self, value: T) -> LineValue<T> {
        LineValue { value, line: self.line }
    }

    fn demand<T>(&self, value: Option<T>, message: &str) -> Option<T> {
        if value.is_none() {
            self.wrong(message);
        }
        value
    }

    /// Reads a table.
    pub(crate) fn section(&self) -> Option<Section<'r, 't>> {
        let table = self.demand(self.value.as_table(), "must be a table")?;
        let Field { reading, ref path, at, .. } = *self;
        Some(Section { reading, path: path.clone(), line: at, table })
    }

    /// Reads a text of 1 to `limit` bytes, without control characters.
    pub(crate) fn text(&self, limit: usize) -> Option<String> {
        let text = self.demand(self.value.as_str(), "must be a text in quotes")?;
        self.check_text(text, limit)?;
        Some(text.to_owned())
    }

    fn check_text(&self, text: &str, limit: usize) -> Option<()> {
        let fault = if text.is_empty() {
            "must not be empty".to_owned()
        } else if text.len() > limit {
            format!("is {} bytes long; at most {limit} are allowed", text.len())
        } else if text.chars().any(char::is_control) {
            "must not hold control characters".to_owned()
        } else {
            return Some(());
        };
        self.wrong(fault);
        None
    }

    /// Reads a list of at least `least` different texts.
    pub(crate) fn texts(&self, least: usize, limit: usize) -> Option<Vec<String>> {
        let items = self.demand(self.value.as_array(), "must be a list of texts")?;
        if !(least..=MAX_LIST).contains(&items.len()) {
            self.wrong(format!("must list {least} to {MAX_LIST} texts, not {}", items.len()));
            return None;
        }
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.path);
            let line = self.reading.line(item.span().start);
            let item = Field { path, line, at: line, value: item.get_ref(), ..*self };
            texts.push(item.text(limit)?);
        }
        let mut sorted = texts.clone();
        sorted.sort();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            self.wrong(format!("names \"{}\" twice", printable(&pair[0])));
            return None;
        }
        Some(texts)
    }

    /// Reads one of a few words; returns its index.
    pub(crate) fn word(&self, words: &[&str]) -> Option<usize> {
        let found =
            self.value.as_str().and_then(|text| words.iter().position(|word| *word == text));
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        self.demand(found, &format!("must be one of {}", quoted.join(", ")))
    }

    /// Reads `true` or `false`.
    pub(crate) fn boolean(&self) -> Option<bool> {
        self.demand(self.value.as_bool(), "must be true or false")
    }

    /// Reads a number, exact to the micro-unit.
    pub(crate) fn number(&self) -> Option<Micro> {
        let number = match self.value {
            DeValue::Integer(integer) if integer.radix() == 10 => decimal(integer.as_str()),
            DeValue::Integer(integer) => {
                let whole = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
                whole.and_then(|whole| whole.checked_mul(SCALE)).and_then(Micro::new)
            }
            DeValue::Float(float) => decimal(float.as_str()),
            _ => return self.demand(None, "must be a number"),
        };
        let most = LIMIT / SCALE;
        self.demand(number, &format!("must be a number from -{most} to {most}"))
    }

    /// Reads a number from 0 to 1.
    pub(crate) fn share(&self) -> Option<Micro> {
        let number = self.number()?;
        let inside = (0..=SCALE).contains(&number.get()).then_some(number);
        self.demand(inside, "must be from 0 to 1")
    }

    /// Reads a whole number within bounds.
    pub(crate) fn count(&self, least: u64, most: u64) -> Option<u64> {
        let whole = match self.value {
            DeValue::Integer(integer) => {
                u64::from_str_radix(integer.as_str(), integer.radix()).ok()
            }
            _ => None,
        };
        let whole = whole.filter(|whole| (least..=most).contains(whole));
        self.demand(whole, &format!("must be a whole number from {least} to {most}"))
    }

    /// Reads a text or a boolean to compare with.
    pub(crate) fn literal(&self) -> Option<Literal> {
        match self.value {
            DeValue::Boolean(value) => Some(Literal::Boolean(*value)),
            DeValue::String(_) => self.text(MAX_TEXT_BYTES).map(Literal::Text),
            _ => self.demand(None, "must be a text in quotes, true or false"),
        }
    }
}

/// The value that a text or boolean parameter is compared with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Literal {
    Boolean(bool),
    Text(String),
}

fn decimal(text: &str) -> Option<Micro> {
    Micro::from_decimal(text.strip_prefix('+').unwrap_or(text))
}
