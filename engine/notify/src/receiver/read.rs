//! Pieces of settings that several kinds of receivers share, read from YAML.
//!
//! Each function takes its keys off the mapping. What is wrong goes to `errors`, and the value is then the default:
//! whoever reads a file refuses it as a whole if there is any error.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::HeaderName;
use watchfire_door::{Errors, Map, Node, format_duration};

use crate::http::config::{Authorization, HttpConfig};
use crate::secret::{Secret, SecretSource, expand};

/// The longest that a try may be allowed to take.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// A text in which `${NAME}` is taken from the environment.
pub(super) fn text(node: &Node, errors: &mut Errors) -> Option<String> {
    node.parse_with(errors, |text| expand(text, |name| std::env::var(name).ok()))
}

pub(super) fn bool_or(map: &mut Map, key: &str, default: bool, errors: &mut Errors) -> bool {
    map.take(key).and_then(|node| node.bool(errors)).unwrap_or(default)
}

pub(super) fn count_or(map: &mut Map, key: &str, default: usize, errors: &mut Errors) -> usize {
    let number = map.take(key).and_then(|node| node.u64(errors));
    number.map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// A duration of more than nothing.
pub(crate) fn span_or(map: &mut Map, key: &str, default: Duration, errors: &mut Errors) -> Duration {
    let Some(node) = map.take(key) else { return default };
    let span = node.duration(errors).unwrap_or(default);
    if span.is_zero() {
        errors.add(node.place(), format!("{key} must be more than 0s"));
    }
    span
}

/// `timeout`, at most [`TIMEOUT_MAX`].
pub(crate) fn timeout_or(map: &mut Map, default: Duration, errors: &mut Errors) -> Duration {
    let Some(node) = map.take("timeout") else { return default };
    let span = node.duration(errors).unwrap_or(default);
    if span.is_zero() || span > TIMEOUT_MAX {
        let most = format_duration(TIMEOUT_MAX);
        errors.add(
            node.place(),
            format!("timeout must be more than 0s and at most {most}, found {}", format_duration(span)),
        );
    }
    span
}

/// Either `KEY` or `KEY_file`. `None` where neither is there, or with an error.
pub(super) fn secret(map: &mut Map, key: &str, errors: &mut Errors) -> Option<SecretSource> {
    let file_key = format!("{key}_file");
    let (inline, file) = (map.take(key), map.take(&file_key));
    if let (Some(_), Some(file)) = (&inline, &file) {
        errors.hint(file.place(), format!("`{key}` and `{file_key}` exclude each other"), "keep one of them");
    }
    let inline = inline.and_then(|node| text(&node, errors)).map(|value| SecretSource::Value(Secret::new(value)));
    inline.or_else(|| file.and_then(|node| text(&node, errors)).map(|path| SecretSource::File(PathBuf::from(path))))
}

/// `url` or `url_file`, one of which must be there. An inline one must be an http or https URL.
pub(crate) fn url(map: &mut Map, errors: &mut Errors) -> Option<SecretSource> {
    let place = map.place_of_key("url").unwrap_or_else(|| map.place().clone());
    if !map.has("url") && !map.has("url_file") {
        errors.hint(&place, "missing key `url`", "write `url: http://HOST:PORT/PATH`, or name a file in `url_file`");
    }
    let url = secret(map, "url", errors);
    if let Some(SecretSource::Value(value)) = &url
        && let Err(why) = check_url(value.expose())
    {
        errors.hint(&place, why, "write `http://HOST:PORT/PATH`");
    }
    url
}

/// The value itself may hold a token and is not repeated.
fn check_url(url: &str) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| format!("`url` is no URL: {error}"))?;
    match parsed.scheme() {
        "http" | "https" => Ok(()),
        other => Err(format!("`url` begins with {other:?}; only http and https are spoken")),
    }
}

/// `retry_status`: a list of HTTP statuses from 300 to 599.
pub(super) fn statuses(map: &mut Map, errors: &mut Errors) -> Vec<u16> {
    let Some(list) = map.take("retry_status") else { return Vec::new() };
    let nodes = list.one_or_more();
    let status = |text: &str| text.parse().ok().filter(|status| (300..600).contains(status));
    let expected =
        |text: &str| status(text).ok_or_else(|| format!("expected an HTTP status from 300 to 599, found {text:?}"));
    nodes.iter().filter_map(|node| node.parse_with(errors, expected)).collect()
}

/// `http_config`, all of whose keys may be left out.
pub(crate) fn http_config(map: &mut Map, errors: &mut Errors) -> HttpConfig {
    let Some(node) = map.take("http_config") else { return HttpConfig::default() };
    let Some(mut map) = node.map(errors) else { return HttpConfig::default() };
    let (scheme, basic) = (map.take("authorization"), map.take("basic_auth"));
    if let (Some(_), Some(basic)) = (&scheme, &basic) {
        errors.hint(basic.place(), "`authorization` and `basic_auth` exclude each other", "keep one of them");
    }
    let scheme = scheme.and_then(|node| read_scheme(&node, errors));
    let basic = basic.and_then(|node| read_basic(&node, errors));
    let headers = map.take("headers").map(|node| read_headers(&node, errors)).unwrap_or_default();
    let ca_file = ca_file(&mut map, errors);
    map.finish(errors);
    HttpConfig { authorization: scheme.or(basic), headers, ca_file }
}

fn read_scheme(node: &Node, errors: &mut Errors) -> Option<Authorization> {
    let mut map = node.map(errors)?;
    let scheme = map.take("type").and_then(|node| node.word(errors)).unwrap_or_else(|| "Bearer".into());
    let credentials = required_secret(&mut map, "credentials", errors);
    map.finish(errors);
    Some(Authorization::Scheme { scheme, credentials: credentials? })
}

fn read_basic(node: &Node, errors: &mut Errors) -> Option<Authorization> {
    let mut map = node.map(errors)?;
    let username = map.require("username", errors).and_then(|node| text(&node, errors));
    let password = required_secret(&mut map, "password", errors);
    map.finish(errors);
    Some(Authorization::Basic { username: username?, password: password? })
}

pub(super) fn required_secret(map: &mut Map, key: &str, errors: &mut Errors) -> Option<SecretSource> {
    if !map.has(key) && !map.has(&format!("{key}_file")) {
        errors.add(map.place(), format!("missing key `{key}` or `{key}_file`"));
    }
    secret(map, key, errors)
}

fn read_headers(node: &Node, errors: &mut Errors) -> Vec<(HeaderName, SecretSource)> {
    let Some(map) = node.map(errors) else { return Vec::new() };
    let mut headers = Vec::new();
    for (name, place, value) in map.entries() {
        match (HeaderName::from_bytes(name.as_bytes()), text(&value, errors)) {
            (Ok(name), Some(value)) => headers.push((name, SecretSource::value(value))),
            (Err(_), _) => errors.add(&place, format!("{name:?} is no HTTP header name")),
            (Ok(_), None) => {}
        }
    }
    headers
}

/// `tls_config: {ca_file}`. Checking of certificates cannot be turned off.
pub(super) fn ca_file(map: &mut Map, errors: &mut Errors) -> Option<PathBuf> {
    let node = map.take("tls_config")?;
    let mut map = node.map(errors)?;
    let ca_file = map.take("ca_file").and_then(|node| text(&node, errors)).map(PathBuf::from);
    if let Some(place) = map.place_of_key("insecure_skip_verify") {
        let _ = map.take("insecure_skip_verify");
        errors.hint(&place, "certificates are always checked", "name the CA that signed the server's in `ca_file`");
    }
    map.finish(errors);
    ca_file
}
