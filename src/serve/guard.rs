//! Who may ask. A loopback address is reached by every page that a browser on the host shows: by a name that was made
//! to point there (DNS rebinding), or by a form that is sent across sites.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Lets a request pass that names this host by an address or as `localhost`, and does not come from another site.
pub async fn same_site(request: Request, next: Next) -> Response {
    match refusal(request.headers()) {
        None => next.run(request).await,
        Some(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    }
}

fn refusal(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).unwrap_or_default();
    if !is_address(host) {
        return Some(format!(
            "the Host header is {host:?}; expected an address or localhost: this interface has no login"
        ));
    }
    let origin = text(header::ORIGIN)?;
    let same = origin.split_once("://").is_some_and(|(_, from)| from == host);
    (!same).then(|| format!("a request from the site {origin:?} is refused"))
}

fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.extend(
            [(header::HOST, host)].map(|(name, value)| (name, value.parse().unwrap_or_else(|_| unreachable!()))),
        );
        headers.extend(origin.map(|origin| (header::ORIGIN, origin.parse().unwrap_or_else(|_| unreachable!()))));
        refusal(&headers).is_some()
    }

    #[test]
    fn only_this_host_is_answered_and_only_to_itself() {
        let fine = ["127.0.0.1:9177", "localhost:9177", "localhost", "[::1]:9177", "10.0.0.7"];
        fine.iter().for_each(|host| assert!(!refused(host, None), "{host}"));
        let rebound = ["evil.example:9177", "127.0.0.1.evil.example", "", "localhost.evil.example"];
        rebound.iter().for_each(|host| assert!(refused(host, None), "{host}"));
        assert!(!refused("localhost:9177", Some("http://localhost:9177")));
        assert!(refused("localhost:9177", Some("http://evil.example")));
        assert!(refused("localhost:9177", Some("null")));
    }
}
