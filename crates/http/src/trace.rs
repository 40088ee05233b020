//! W3C Trace Context: the trace that a request belongs to, read from `traceparent`.
//!
//! **Invariants:** a header that does not conform to the recommendation is ignored, and so are
//! repeated headers. The server records no spans: it logs the trace id and returns it.

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use ipse_core::{hex, sha256};

static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The response header. The recommendation defines none. This one is from the W3C draft on response
/// headers, which tracing libraries read.
pub(crate) static TRACERESPONSE: HeaderName = HeaderName::from_static("traceresponse");

/// Bytes of a version 00 header.
const LENGTH: usize = 55;

/// The trace that a request belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trace {
    id: String,
}

impl Trace {
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut given = headers.get_all(&TRACEPARENT).iter();
        let text = given.next()?.to_str().ok()?;
        given.next().is_none().then(|| Trace::parse(text))?
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_at_checked(LENGTH)?;
        let parts: Vec<&str> = head.split('-').collect();
        let [version, id, parent, flags] = parts[..] else { return None };
        let is_hex = |text: &str, digits: usize| {
            let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            text.len() == digits && text.bytes().all(lower)
        };
        let formed = is_hex(version, 2) && is_hex(id, 32) && is_hex(parent, 16);
        let formed = formed && is_hex(flags, 2) && version != "ff";
        let is_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        // A later version may have more fields after another dash.
        let ends = rest.is_empty() || version != "00" && rest.starts_with('-');
        (formed && ends && !is_zero(id) && !is_zero(parent)).then(|| Trace { id: id.to_owned() })
    }

    /// The trace id: 32 hex digits.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The header of the response. The third part names the request within the trace. The last part
    /// says that the server sampled nothing.
    pub(crate) fn answer(&self, request_id: &str) -> Option<HeaderValue> {
        let hash = sha256(&[request_id.as_bytes()]);
        let text = format!("00-{}-{}-00", self.id, hex::encode(&hash[..8]));
        HeaderValue::from_str(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_what_the_recommendation_says_is_a_trace() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let later = GOOD.replacen("00", "cc", 1);
        for good in [GOOD, &later, &format!("{later}-what"), &GOOD.replace("-01", "-ff")] {
            assert_eq!(Trace::parse(good).as_ref().map(Trace::id), Some(id), "{good}");
        }
        let zeros = |digits: usize| "0".repeat(digits);
        for bad in [
            "".to_owned(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-"),
            format!("{GOOD} "),
            format!(" {GOOD}"),
            format!("{later}what"),
            GOOD.replacen("00", "ff", 1),
            GOOD.replacen("00", "0g", 1),
            GOOD.to_ascii_uppercase(),
            GOOD.replace(id, &zeros(32)),
            GOOD.replace("00f067aa0ba902b7", &zeros(16)),
            GOOD.replace('-', "_"),
            GOOD.replacen("-01", "-0x", 1),
            GOOD.replacen("00-4", "0-04", 1),
            "ü".repeat(LENGTH),
        ] {
            assert_eq!(Trace::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn two_headers_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(&TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(Trace::of(&headers).is_some());
        headers.append(&TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(Trace::of(&headers), None);
    }

    #[test]
    fn the_answer_names_the_trace_and_the_request() {
        let trace = Trace::parse(GOOD).unwrap();
        let [one, other] = ["a", "b"].map(|id| trace.answer(id).unwrap());
        assert_ne!(one, other);
        let answered = Trace::parse(one.to_str().unwrap()).unwrap();
        assert_eq!(answered, trace);
        assert!(one.to_str().unwrap().ends_with("-00"));
    }
}
