//! The `Host` values that a server accepts.
//!
//! A page in a browser can reach a server on loopback by DNS rebinding: the DNS name of the page
//! starts to resolve to 127.0.0.1, and the browser treats the server as the page's origin. Such a
//! request has the name of the page in `Host`.
//!
//! **Invariants**
//! - A server that listens on loopback answers a request for another host with 403, on every path.
//!   A server that listens elsewhere does so on routes for browsers ([`crate::Route::browser`]).
//! - A request has one host (RFC 9112 §3.2): the authority of an absolute target, else `Host`.
//!   Several hosts are an error. In HTTP/1.1 a missing host is an error too. In HTTP/1.0 it may be
//!   missing, as in health checks; browsers always send it.

use crate::problem::Problem;
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::{StatusCode, Uri, Version};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The name of this machine for itself.
const LOCALHOST: &str = "localhost";

/// A host in the form that is compared: without port, lower case, without a final dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address. An IPv4-mapped IPv6 address is the IPv4 address.
    Address(IpAddr),
    /// A name in lower case.
    Name(String),
}

impl Host {
    /// The host of a public URL of the server, such as `https://ipse.example.org`. `None` unless
    /// the URL has the scheme `http` or `https`, an ASCII host, and no more than a port and a path.
    pub fn of_url(url: &str) -> Option<Self> {
        // `Uri` silently drops a fragment.
        let uri: Uri = url.parse().ok().filter(|_| !url.contains('#'))?;
        let authority = uri.authority()?.as_str();
        let web = uri.scheme_str().is_some_and(|scheme| matches!(scheme, "http" | "https"));
        let host = RequestHost::parse(authority).filter(|_| web && uri.query().is_none())?;
        match host {
            RequestHost::Address(address) => Some(Host::Address(address)),
            RequestHost::Name("") => None,
            RequestHost::Name(name) if name.contains('*') => None,
            RequestHost::Name(name) => Some(Host::Name(name.to_ascii_lowercase())),
        }
    }

    fn is(&self, asked: RequestHost<'_>) -> bool {
        match (self, asked) {
            (Host::Address(one), RequestHost::Address(other)) => *one == other,
            (Host::Name(one), RequestHost::Name(other)) => one.eq_ignore_ascii_case(other),
            _ => false,
        }
    }
}

/// The host that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestHost<'r> {
    Address(IpAddr),
    Name(&'r str),
}

impl<'r> RequestHost<'r> {
    /// Parses `host[:port]`; `None` if it is neither a name nor an address.
    fn parse(text: &'r str) -> Option<Self> {
        if let Some((address, port)) = text.strip_prefix('[').and_then(|it| it.split_once(']')) {
            let address: Ipv6Addr = address.parse().ok()?;
            let port = port.strip_prefix(':').unwrap_or(port);
            return is_port(port).then(|| RequestHost::Address(IpAddr::V6(address).to_canonical()));
        }
        let (name, port) = text.split_once(':').unwrap_or((text, ""));
        if !is_port(port) || !name.bytes().all(is_of_a_name) {
            return None;
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        Some(match name.parse::<Ipv4Addr>() {
            Ok(address) => RequestHost::Address(address.into()),
            Err(_) => RequestHost::Name(name),
        })
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a byte may be part of a registered name, as in RFC 3986.
fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

/// The accepted hosts of a server, and whether they are checked on every path.
#[derive(Clone, Debug)]
pub struct Hosts {
    allowed: Vec<Host>,
    everywhere: bool,
}

impl Hosts {
    /// The hosts of a server that listens on this address and has these public hosts.
    pub fn new(listen: IpAddr, public: impl IntoIterator<Item = Host>) -> Self {
        let listen = listen.to_canonical();
        let mut allowed = vec![Host::Address(listen)];
        if listen.is_loopback() {
            allowed.push(Host::Name(LOCALHOST.to_owned()));
            allowed.push(Host::Address(Ipv4Addr::LOCALHOST.into()));
            allowed.push(Host::Address(Ipv6Addr::LOCALHOST.into()));
        }
        allowed.extend(public);
        Hosts { allowed, everywhere: listen.is_loopback() }
    }

    /// Checks the host of a request on any path.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Problem> {
        let asked = asked(request)?;
        if self.everywhere { self.admit(asked) } else { Ok(()) }
    }

    /// Checks the host of a request on a route for browsers.
    pub(crate) fn check_browser(&self, request: &Request) -> Result<(), Problem> {
        self.admit(asked(request)?)
    }

    fn admit(&self, asked: Option<RequestHost<'_>>) -> Result<(), Problem> {
        match asked {
            Some(asked) if !self.allowed.iter().any(|host| host.is(asked)) => Err(refused(asked)),
            _ => Ok(()),
        }
    }
}

/// The host that a request names; `None` if it is missing in HTTP/1.0.
fn asked(request: &Request) -> Result<Option<RequestHost<'_>>, Problem> {
    let mut fields = request.headers().get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err(Problem::bad_request("bad_host", "the request has several `Host` headers"));
    }
    let text = match (request.uri().authority(), field) {
        // An authority in the target overrides the header.
        (Some(authority), _) => Some(authority.as_str().rsplit('@').next().unwrap_or_default()),
        (None, Some(value)) => Some(value.to_str().unwrap_or("@")),
        (None, None) if request.version() == Version::HTTP_10 => return Ok(None),
        (None, None) => None,
    };
    let text = text.ok_or_else(|| Problem::bad_request("bad_host", "`Host` is missing"))?;
    let host = RequestHost::parse(text);
    let detail = "`Host` is neither a name nor an address, with or without a port";
    host.map(Some).ok_or_else(|| Problem::bad_request("bad_host", detail))
}

fn refused(asked: RequestHost<'_>) -> Problem {
    let shown = match asked {
        RequestHost::Address(address) => address.to_string(),
        RequestHost::Name(name) => ipse_door::printable(name),
    };
    let detail = format!(
        "the host `{shown}` is not allowed; to accept it, start the server with \
         `--public-url URL`"
    );
    Problem::new(StatusCode::FORBIDDEN, "host_not_allowed", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn request(version: Version, target: &str, fields: &[&str]) -> Request {
        let request = axum::http::Request::builder().version(version).uri(target);
        let request = fields.iter().fold(request, |request, field| request.header(HOST, *field));
        request.body(Body::empty()).unwrap()
    }

    /// The code of the problem; empty if the request is accepted.
    fn code(checked: Result<(), Problem>) -> &'static str {
        checked.map_or_else(|problem| problem.code(), |()| "")
    }

    fn with_host(hosts: &Hosts, field: &str) -> &'static str {
        code(hosts.check(&request(Version::HTTP_11, "/version", &[field])))
    }

    #[test]
    fn loopback_answers_to_its_own_names_and_the_public_ones() {
        let public = Host::of_url("https://Ipse.Example.org:8443/base/").unwrap();
        let hosts = Hosts::new(LOOPBACK, [public]);
        for good in [
            "localhost",
            "localhost:7477",
            "LocalHost.:1",
            "localhost:",
            "127.0.0.1",
            "127.0.0.1:99999",
            "127.0.0.1.",
            "[::1]",
            "[::1]:7477",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]:80",
            "ipse.example.org",
            "IPSE.EXAMPLE.ORG.:443",
        ] {
            assert_eq!(with_host(&hosts, good), "", "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "127.0.0.2",
            "0.0.0.0",
            "[::]",
            "127.1",
            "2130706433",
            "xlocalhost",
            "%6cocalhost",
            "ipse.example.org.evil.example",
            "localhost..",
        ] {
            assert_eq!(with_host(&hosts, bad), "host_not_allowed", "{bad}");
        }
        for none in ["a b", "::1", "[::1", "[::1]x", "[evil]", "a@localhost", "localhost:x", "a/b"]
        {
            assert_eq!(with_host(&hosts, none), "bad_host", "{none}");
        }
    }

    #[test]
    fn the_address_that_is_listened_on_is_a_host() {
        for (listen, host) in [("127.0.0.2", "127.0.0.2:1"), ("::1", "[::1]"), ("::1", "localhost")]
        {
            assert_eq!(with_host(&Hosts::new(listen.parse().unwrap(), []), host), "", "{host}");
        }
    }

    #[test]
    fn elsewhere_only_paths_for_browsers_are_checked() {
        let public = Host::of_url("https://ipse.example.org").unwrap();
        let hosts = Hosts::new("192.0.2.7".parse().unwrap(), [public]);
        assert_eq!(with_host(&hosts, "evil.example"), "");
        for (host, want) in [
            ("192.0.2.7:7477", ""),
            ("ipse.example.org", ""),
            ("evil.example", "host_not_allowed"),
            ("localhost", "host_not_allowed"),
        ] {
            let request = request(Version::HTTP_11, "/", &[host]);
            assert_eq!(code(hosts.check_browser(&request)), want, "{host}");
        }
    }

    #[test]
    fn a_request_has_one_host() {
        let hosts = Hosts::new(LOOPBACK, []);
        let check = |version, target: &str, fields: &[&str]| {
            code(hosts.check(&request(version, target, fields)))
        };
        assert_eq!(check(Version::HTTP_11, "/", &[]), "bad_host");
        assert_eq!(check(Version::HTTP_10, "/", &[]), "");
        assert_eq!(check(Version::HTTP_10, "/", &["evil.example"]), "host_not_allowed");
        assert_eq!(check(Version::HTTP_11, "/", &["localhost", "localhost"]), "bad_host");
        let evil = "http://evil.example/version";
        for fields in [&["localhost"][..], &[]] {
            assert_eq!(check(Version::HTTP_11, evil, fields), "host_not_allowed");
            assert_eq!(check(Version::HTTP_10, evil, fields), "host_not_allowed");
        }
        assert_eq!(check(Version::HTTP_11, "http://localhost:1/version", &["evil.example"]), "");
        assert_eq!(
            check(Version::HTTP_11, "http://localhost@evil.example/", &[]),
            "host_not_allowed"
        );
        // Several hosts are an error on every listen address.
        let elsewhere = Hosts::new("192.0.2.7".parse().unwrap(), []);
        assert_eq!(code(elsewhere.check(&request(Version::HTTP_11, "/", &["a", "b"]))), "bad_host");
    }

    #[test]
    fn a_public_url_has_a_scheme_and_a_host_and_no_more_than_a_path() {
        for good in ["http://a", "https://a.b:1/", "https://[2001:db8::1]/x", "https://192.0.2.7"] {
            assert!(Host::of_url(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "a",
            "a.example",
            "a.example:443",
            "ftp://a",
            "//a",
            "/a",
            "https://",
            "https://:443",
            "https://*.a",
            "https://u@a",
            "https://a?b",
            "https://a#b",
            "https://a b",
            "https://ä.example",
            "https://[::1",
        ] {
            assert_eq!(Host::of_url(bad), None, "{bad}");
        }
    }
}
