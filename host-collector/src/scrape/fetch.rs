//! One page over HTTP: whole or not at all.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url, redirect};
use rustls::{ClientConfig, RootCertStore};

use crate::exposition::{Format, Refused};

/// Why a scrape gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No connection, or it broke.
    #[error("cannot reach the target: {0}")]
    Unreachable(String),
    /// The page was not there in time.
    #[error("no whole page within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// An answer that is no page.
    #[error("the target answers HTTP {status}{hint}")]
    Status {
        /// The status code.
        status: u16,
        /// What to do, or nothing.
        hint: String,
    },
    /// A page of another kind.
    #[error("{0}")]
    ContentType(String),
    /// The page broke off.
    #[error("the page is incomplete: {0}")]
    Incomplete(String),
    /// The page is too large once it is unpacked.
    #[error("the page has more than {0} bytes, the limit")]
    TooLarge(usize),
    /// The page was read and refused.
    #[error("{0}")]
    Refused(#[from] Refused),
}

/// What we would like to be given: OpenMetrics tells whether it is whole.
const ACCEPTED: &str = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
/// How much of a `Location` an error repeats, in characters.
const LOCATION_SHOWN: usize = 120;

/// A client that follows no redirect, uses no proxy and keeps its connection.
pub(super) fn client(url: &Url) -> Result<Client, String> {
    let builder = Client::builder()
        .user_agent(concat!("watchfire/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .no_proxy()
        .tls_backend_preconfigured(tls(url.scheme() == "https")?);
    builder.build().map_err(|error| error.to_string())
}

/// The ring provider by hand, so that no process-wide default is touched. The system's certificate authorities
/// are read only where they are needed; where there are none, Mozilla's list is used.
fn tls(needed: bool) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if needed {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Fetches a page of at most `bytes_max` bytes, unpacked.
pub(super) async fn fetch(
    client: &Client,
    url: &Url,
    timeout: Duration,
    bytes_max: usize,
) -> Result<(Format, Vec<u8>), Failure> {
    let whole = async {
        let request = client.get(url.clone()).header(ACCEPT, ACCEPTED);
        let answer = request.send().await.map_err(|error| Failure::Unreachable(plain(error)))?;
        let format = format(&answer)?;
        Ok((format, body(answer, bytes_max).await?))
    };
    tokio::time::timeout(timeout, whole).await.unwrap_or(Err(Failure::Timeout(timeout)))
}

fn format(answer: &Response) -> Result<Format, Failure> {
    let status = answer.status();
    if status.as_u16() != 200 {
        return Err(Failure::Status { status: status.as_u16(), hint: hint(answer) });
    }
    let header = answer.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    Format::of_content_type(header.as_deref()).map_err(Failure::ContentType)
}

fn hint(answer: &Response) -> String {
    let to = answer.headers().get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match (answer.status().as_u16(), to) {
        (300..=399, Some(to)) => {
            // What stands behind the question mark may be a token.
            let to: String = to.split('?').next().unwrap_or_default().chars().take(LOCATION_SHOWN).collect();
            format!(": it moved to {to}; redirects are not followed, put the new address into the url")
        }
        (401 | 403, _) => ": it wants credentials".to_owned(),
        (404, _) => ": is the path right? Most exporters use /metrics".to_owned(),
        _ => String::new(),
    }
}

async fn body(mut answer: Response, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| Failure::Incomplete(plain(error)))? {
        if body.len() + chunk.len() > bytes_max {
            return Err(Failure::TooLarge(bytes_max));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// An error with what it comes from, without the address, which may hold a password.
fn plain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
