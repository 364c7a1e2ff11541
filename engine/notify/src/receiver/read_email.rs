//! `email_configs`, read from YAML.

use lettre::message::Mailbox;
use lettre::message::header::HeaderName;
use watchfire_door::{Errors, Map, Node};

use super::email::{EmailConfig, Tls};
use super::read::{bool_or, ca_file, required_secret, text, timeout_or};
use crate::mail::render::{self, Templates};
use crate::mail::smtp::READY_WITHIN;
use crate::secret::SecretSource;

/// Headers that Watchfire writes itself.
const OWN_HEADERS: [&str; 10] = [
    "from",
    "to",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "bcc",
];

/// Reads an entry.
pub(super) fn email(node: &Node, errors: &mut Errors) -> Option<EmailConfig> {
    let mut map = node.map(errors)?;
    let to = map.require("to", errors).map(|node| recipients(&node, errors));
    let from = map.require("from", errors).and_then(|node| node.parse_with(errors, mailbox));
    let smarthost = map.require("smarthost", errors).and_then(|node| node.parse_with(errors, host_and_port));
    let hello = map.take("hello").and_then(|node| node.parse_with(errors, domain));
    let (headers, subject) = headers(&mut map, errors);
    let login = login(&mut map, errors);
    let templates =
        Templates { subject, text: template(&mut map, "text", errors), html: template(&mut map, "html", errors) };
    let tls = tls(&mut map, errors);
    let ca_file = ca_file(&mut map, errors);
    let send_resolved = bool_or(&mut map, "send_resolved", true, errors);
    let ready_within = timeout_or(&mut map, READY_WITHIN, errors);
    map.finish(errors);
    let ((to, from), (host, port)) = (to.zip(from)?, smarthost?);
    let config = EmailConfig {
        to,
        from,
        host,
        port,
        login,
        hello,
        tls,
        ca_file,
        headers,
        templates,
        send_resolved,
        ready_within,
    };
    config.check().map_err(|why| errors.add(node.place(), why)).ok()?;
    Some(config)
}

/// A list, or one text with commas.
fn recipients(node: &Node, errors: &mut Errors) -> Vec<Mailbox> {
    let n_wrong = errors.len();
    let many = |text: &str| -> Result<Vec<Mailbox>, String> {
        let list: lettre::message::Mailboxes =
            text.parse().map_err(|error| format!("{text:?} is no list of mail addresses: {error}"))?;
        Ok(list.into_iter().collect())
    };
    let found: Vec<Mailbox> =
        node.one_or_more().iter().filter_map(|one| one.parse_with(errors, many)).flatten().collect();
    let mut unique: Vec<Mailbox> = Vec::new();
    for one in found {
        if unique.iter().all(|known| known.email != one.email) {
            unique.push(one);
        }
    }
    if unique.is_empty() && errors.len() == n_wrong {
        errors.add(node.place(), "no recipient; expected at least one mail address");
    }
    unique
}

fn mailbox(text: &str) -> Result<Mailbox, String> {
    text.parse().map_err(|error| {
        format!("{text:?} is no mail address ({error}); expected such as a@x.example or \"Name <a@x.example>\"")
    })
}

/// `HOST:PORT`, `[IPV6]:PORT`.
fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text:?} is no HOST:PORT; write such as mx.example:587");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bare.unwrap_or(host);
    let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?;
    let is_host = !host.is_empty() && !host.contains(char::is_whitespace) && (bare.is_some() || !host.contains(':'));
    if is_host { Ok((host.to_owned(), port)) } else { Err(wrong()) }
}

fn domain(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    if !text.is_empty() && text.chars().all(good) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is no host name"))
    }
}

fn login(map: &mut Map, errors: &mut Errors) -> Option<(String, SecretSource)> {
    let Some(username) = map.take("auth_username") else {
        for key in ["auth_password", "auth_password_file"] {
            if let Some(place) = map.place_of_key(key) {
                errors.add(&place, format!("`{key}` without `auth_username`"));
            }
            let _ = map.take(key);
        }
        return None;
    };
    let username = text(&username, errors);
    let password = required_secret(map, "auth_password", errors);
    username.zip(password)
}

/// `tls: starttls | implicit | none`, and Alertmanager's `require_tls`, of which `false` means none.
fn tls(map: &mut Map, errors: &mut Errors) -> Tls {
    let place = map.place_of_key("require_tls");
    let required = map.take("require_tls").and_then(|node| node.bool(errors));
    let mode = map.take("tls").and_then(|node| node.parse_with(errors, tls_mode));
    match (required, mode, place) {
        (Some(true), Some(Tls::None), Some(place)) => {
            errors.hint(&place, "`require_tls: true` and `tls: none` contradict each other", "keep `tls`");
        }
        (Some(false), Some(Tls::StartTls | Tls::Implicit), Some(place)) => {
            errors.hint(&place, "`require_tls: false` contradicts `tls`, which secures the connection", "keep `tls`");
        }
        _ => {}
    }
    mode.unwrap_or(if required == Some(false) { Tls::None } else { Tls::StartTls })
}

fn tls_mode(word: &str) -> Result<Tls, String> {
    match word {
        "starttls" => Ok(Tls::StartTls),
        "implicit" => Ok(Tls::Implicit),
        "none" => Ok(Tls::None),
        _ => Err(format!("expected starttls, implicit or none, found {word:?}")),
    }
}

/// More headers, and the template of the subject.
fn headers(map: &mut Map, errors: &mut Errors) -> (Vec<(HeaderName, String)>, Option<String>) {
    let (mut headers, mut subject) = (Vec::new(), None);
    let Some(map) = map.take("headers").and_then(|node| node.map(errors)) else { return (headers, subject) };
    for (name, place, value) in map.entries() {
        let Some(value_text) = text(&value, errors) else { continue };
        let lower = name.to_ascii_lowercase();
        if lower == "subject" {
            subject = value.parse_with(errors, checked_template);
        } else if OWN_HEADERS.contains(&lower.as_str()) {
            errors.add(&place, format!("the header {name} is written by Watchfire itself"));
        } else if let Ok(name) = HeaderName::new_from_ascii(name.clone()) {
            headers.push((name, value_text));
        } else {
            errors.add(&place, format!("{name:?} is no mail header name"));
        }
    }
    (headers, subject)
}

fn template(map: &mut Map, key: &str, errors: &mut Errors) -> Option<String> {
    map.take(key)?.parse_with(errors, checked_template)
}

fn checked_template(source: &str) -> Result<String, String> {
    render::check(source).map(|()| source.to_owned()).map_err(|why| format!("the template cannot be read: {why}"))
}
