//! A cache of responses to fact queries.
//!
//! **Invariants:** a cached response is returned only for the same query on the same table of
//! facts. The cache is bounded in number and in size. It is cleared when the table changes.

use axum::body::Bytes;
use axum::http::HeaderValue;
use ipse_engine::FactTable;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Maximum number of cached responses.
const MAX_ANSWERS: usize = 256;
/// Maximum bytes of a cached response, without its query.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Maximum bytes of a cached query.
const MAX_QUESTION_BYTES: usize = 1 << 10;

/// A response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// The media type.
    pub(crate) kind: &'static str,
    /// The body.
    pub(crate) body: Bytes,
    /// The `ETag`.
    pub(crate) tag: HeaderValue,
    /// The checkpoint and the id of the consultation, if the body does not contain them.
    pub(crate) consulted: Option<[HeaderValue; 2]>,
}

/// The cached responses from one table of facts.
#[derive(Default)]
struct AnswerCache {
    known: Arc<FactTable>,
    answers: BTreeMap<String, Answer>,
}

/// The response cache of one agent.
#[derive(Default)]
pub(crate) struct Answers(RwLock<AnswerCache>);

impl Answers {
    /// The cached response to a query on a table.
    pub(crate) fn get(&self, known: &Arc<FactTable>, question: &str) -> Option<Answer> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let same = Arc::ptr_eq(&kept.known, known);
        same.then(|| kept.answers.get(question).cloned()).flatten()
    }

    /// Caches a response, unless it is too large or the cache is full.
    pub(crate) fn keep(&self, known: &Arc<FactTable>, question: &str, answer: &Answer) {
        if answer.body.len() > MAX_ANSWER_BYTES || question.len() > MAX_QUESTION_BYTES {
            return;
        }
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&kept.known, known) {
            *kept = AnswerCache { known: known.clone(), answers: BTreeMap::new() };
        }
        if kept.answers.len() < MAX_ANSWERS {
            kept.answers.insert(question.to_owned(), answer.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &'static str) -> Answer {
        let (body, tag) = (Bytes::from_static(text.as_bytes()), HeaderValue::from_static("\"t\""));
        Answer { kind: "text/plain", body, tag, consulted: None }
    }

    #[test]
    fn an_answer_is_of_its_table_and_its_question() {
        let [one, other] = [(); 2].map(|()| Arc::new(FactTable::default()));
        let answers = Answers::default();
        assert_eq!(answers.get(&one, "zone=a"), None);
        answers.keep(&one, "zone=a", &answer("a"));
        assert_eq!(answers.get(&one, "zone=a"), Some(answer("a")));
        assert_eq!(answers.get(&one, "zone=b"), None);
        assert_eq!(answers.get(&other, "zone=a"), None, "equal, but another table");
        answers.keep(&other, "zone=b", &answer("b"));
        assert_eq!(answers.get(&other, "zone=b"), Some(answer("b")));
        assert_eq!(answers.get(&one, "zone=a"), None, "cleared with its table");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let known = Arc::new(FactTable::default());
        let answers = Answers::default();
        let large = Answer { body: vec![0; MAX_ANSWER_BYTES + 1].into(), ..answer("") };
        answers.keep(&known, "large", &large);
        assert_eq!(answers.get(&known, "large"), None);
        let long = "q".repeat(MAX_QUESTION_BYTES + 1);
        answers.keep(&known, &long, &answer("a"));
        assert_eq!(answers.get(&known, &long), None);
        for number in 0..=MAX_ANSWERS {
            answers.keep(&known, &number.to_string(), &answer("a"));
        }
        assert_eq!(answers.get(&known, &(MAX_ANSWERS - 1).to_string()), Some(answer("a")));
        assert_eq!(answers.get(&known, &MAX_ANSWERS.to_string()), None);
    }
}
