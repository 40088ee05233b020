//! Answers that were written already, kept for whoever asks the same of the same snapshot.
//!
//! **Invariants:** an answer is handed out for the very table of facts that it was written from,
//! and for the very question; what is kept is bounded in number and in size, and goes with its
//! table.

use axum::body::Bytes;
use axum::http::HeaderValue;
use ipse_engine::FactTable;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Answers that are kept.
const MAX_ANSWERS: usize = 256;
/// Bytes of one that is kept, its question aside.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Bytes of a question.
const MAX_QUESTION_BYTES: usize = 1 << 10;

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// Its media type.
    pub(crate) kind: &'static str,
    /// Its bytes.
    pub(crate) body: Bytes,
    /// What tells it apart from what was answered to the same before.
    pub(crate) tag: HeaderValue,
}

/// The answers from one table.
#[derive(Default)]
struct AnswerCache {
    known: Arc<FactTable>,
    answers: BTreeMap<String, Answer>,
}

/// The answers of one agent.
#[derive(Default)]
pub(crate) struct Answers(RwLock<AnswerCache>);

impl Answers {
    /// What was answered to a question from a table, if it is still there.
    pub(crate) fn get(&self, known: &Arc<FactTable>, question: &str) -> Option<Answer> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let same = Arc::ptr_eq(&kept.known, known);
        same.then(|| kept.answers.get(question).cloned()).flatten()
    }

    /// Keeps an answer, if there is room.
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
        Answer { kind: "text/plain", body, tag }
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
        assert_eq!(answers.get(&one, "zone=a"), None, "gone with its table");
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
