//! The one HTTP client of all receivers: no redirects, bounded answers, errors without secrets.

pub mod classify;
pub mod config;

use std::error::Error as StdError;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Url, redirect};

use crate::clock::Clock;
use crate::receiver::{BuildContext, BuildError};
use crate::secret::{Secret, SecretSource, redact_url};
use crate::tls;
use crate::verdict::Verdict;

use classify::{Answer, classify};
use config::{Authorization, HttpConfig};

/// How much of an answer is read, in bytes; the rest is left in the socket, which is closed.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long the body of an answer is waited for once its status is known.
const ANSWER_BODY_WITHIN: Duration = Duration::from_secs(2);
/// How long an idle connection is kept.
const IDLE_KEPT: Duration = Duration::from_secs(30);
/// The header that carries [`crate::message::Message::key`]
/// (draft-ietf-httpapi-idempotency-key-header; Stripe and others).
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A client for one channel.
pub struct Poster {
    client: Client,
    config: HttpConfig,
    timeout: Duration,
    also_retry: Vec<u16>,
    now: Clock,
}

/// One request.
pub struct Request<'a> {
    /// GET or POST.
    pub method: Method,
    /// Where to. Never shown whole.
    pub url: &'a str,
    /// The idempotency key.
    pub key: Option<&'a str>,
    /// A JSON body.
    pub body: Option<Vec<u8>>,
}

impl Poster {
    /// A client with these settings. `timeout` is that of the whole request up to the answer's status.
    ///
    /// # Errors
    /// The CA file cannot be used.
    pub fn new(
        config: &HttpConfig,
        timeout: Duration,
        also_retry: &[u16],
        context: &BuildContext,
    ) -> Result<Self, BuildError> {
        let tls = tls::client_config(config.ca_file.as_deref(), &context.roots)?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::none())
            .user_agent(format!("watchfire/{}", env!("CARGO_PKG_VERSION")))
            .pool_idle_timeout(IDLE_KEPT)
            .pool_max_idle_per_host(1)
            .build()
            .map_err(|error| BuildError::new(format!("cannot make an HTTP client: {}", root_cause(&error))))?;
        let now = context.now.clone();
        Ok(Poster { client, config: config.clone(), timeout, also_retry: also_retry.to_vec(), now })
    }

    /// Sends a request and judges the answer.
    pub async fn send(&self, request: Request<'_>) -> Verdict {
        let (method, shown) = (request.method.clone(), redact_url(request.url));
        let named = |why: String| format!("{method} {shown}: {why}");
        match self.try_send(request).await {
            Verdict::Delivered => Verdict::Delivered,
            Verdict::Retry { after, why } => Verdict::Retry { after, why: named(why) },
            Verdict::Refused { why } => Verdict::Refused { why: named(why) },
        }
    }

    async fn try_send(&self, request: Request<'_>) -> Verdict {
        let request = match self.build(request) {
            Ok(request) => request,
            Err(verdict) => return verdict,
        };
        match tokio::time::timeout(self.timeout, self.client.execute(request)).await {
            Err(_) => Verdict::retry(format!("no answer within {:?}", self.timeout)),
            Ok(Err(error)) => failed(&error),
            Ok(Ok(response)) => self.judge(response).await,
        }
    }

    fn build(&self, request: Request<'_>) -> Result<reqwest::Request, Verdict> {
        let url = Url::parse(request.url).map_err(|error| Verdict::refused(format!("this is no URL: {error}")))?;
        let mut builder = self.authorize(self.client.request(request.method, url))?;
        for (name, value) in &self.config.headers {
            builder = builder.header(name, header_value(name.as_str(), load(value)?.expose())?);
        }
        if let Some(key) = request.key {
            builder = builder.header(IDEMPOTENCY_KEY, header_value("the idempotency key", key)?);
        }
        if let Some(body) = request.body {
            builder = builder.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
        }
        builder.build().map_err(|error| failed(&error))
    }

    fn authorize(&self, builder: RequestBuilder) -> Result<RequestBuilder, Verdict> {
        Ok(match &self.config.authorization {
            None => builder,
            Some(Authorization::Basic { username, password }) => {
                builder.basic_auth(username, Some(load(password)?.expose()))
            }
            Some(Authorization::Scheme { scheme, credentials }) => {
                let mut value = header_value("authorization", &format!("{scheme} {}", load(credentials)?.expose()))?;
                value.set_sensitive(true);
                builder.header(AUTHORIZATION, value)
            }
        })
    }

    async fn judge(&self, mut response: reqwest::Response) -> Verdict {
        let body = tokio::time::timeout(ANSWER_BODY_WITHIN, read_body(&mut response)).await.unwrap_or_default();
        let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let answer = Answer {
            status: response.status().as_u16(),
            retry_after: header(RETRY_AFTER),
            location: header(LOCATION),
            body: &body,
        };
        classify(&answer, &self.also_retry, (self.now)())
    }
}

/// Reads a body up to its limit. An error in it does not matter: the status has been told.
async fn read_body(response: &mut reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = ANSWER_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == ANSWER_BYTES_MAX {
            break;
        }
    }
    body
}

/// A secret's file may appear or be mended later, so a failure is tried again.
fn load(source: &SecretSource) -> Result<Secret, Verdict> {
    source.load().map_err(|error| Verdict::retry(error.to_string()))
}

fn header_value(what: &str, value: &str) -> Result<HeaderValue, Verdict> {
    let refuse = |_| Verdict::refused(format!("{what} has characters that no HTTP header can carry"));
    HeaderValue::from_str(value).map_err(refuse)
}

/// A request that got no answer: TLS errors are for good, the rest may pass.
fn failed(error: &reqwest::Error) -> Verdict {
    if let Some(tls_error) = tls::find(error) {
        return Verdict::refused(tls::explain(tls_error, "use http:// if it is plain HTTP"));
    }
    let cause = root_cause(error);
    match error {
        error if error.is_builder() => Verdict::refused(format!("the request cannot be made: {cause}")),
        error if error.is_connect() => Verdict::retry(format!("cannot connect: {cause}")),
        _ => Verdict::retry(format!("no answer: {cause}")),
    }
}

/// The innermost error's words. The outer ones repeat it, and reqwest's names the whole URL.
pub(crate) fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// A base URL with a path, exactly one slash between them, and not twice if the URL has the path already.
///
/// # Errors
/// The base is no URL.
pub fn join_path(base: &str, path: &str) -> Result<String, String> {
    let mut url = Url::parse(base).map_err(|error| format!("this is no URL: {error}"))?;
    let prefix = url.path().trim_end_matches('/').trim_end_matches(path).trim_end_matches('/').to_owned();
    url.set_path(&format!("{prefix}{path}"));
    Ok(url.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_joined_with_exactly_one_slash() {
        let cases = [
            ("http://am:9093", "http://am:9093/api/v2/alerts"),
            ("http://am:9093/", "http://am:9093/api/v2/alerts"),
            ("http://am:9093/prefix//", "http://am:9093/prefix/api/v2/alerts"),
            ("http://am:9093/prefix/api/v2/alerts", "http://am:9093/prefix/api/v2/alerts"),
            ("http://am:9093/api/v2/alerts/?x=1", "http://am:9093/api/v2/alerts?x=1"),
        ];
        for (base, url) in cases {
            assert_eq!(join_path(base, "/api/v2/alerts").unwrap(), url);
        }
        assert!(join_path("am:", "/x").is_ok_and(|url| url.starts_with("am:")));
        assert!(join_path("", "/x").is_err());
    }
}
