//! From what went wrong with a mail server to a verdict.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use lettre::transport::smtp::Error;

use super::account::LOGIN_AGAIN_AFTER;
use crate::http::{classify::quote, root_cause};
use crate::receiver::email::Tls;
use crate::tls;
use crate::verdict::Verdict;

/// The waits after a 4xx answer: greylisting usually lets go after five minutes (RFC 6647 §2).
const LATER: [Duration; 3] = [Duration::from_secs(300), Duration::from_secs(600), Duration::from_secs(1200)];

/// How far a delivery had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Connecting, and with implicit TLS the handshake, then greeting and EHLO.
    Greeting,
    /// STARTTLS and the handshake.
    StartTls,
    /// AUTH.
    Login,
    /// MAIL, RCPT, DATA.
    Transaction,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The server said no, with this code.
    Answer { code: u16, text: String },
    /// What came is no SMTP.
    NotSmtp(String),
    /// The server closed the connection.
    Closed,
    /// TLS failed.
    Tls(rustls::Error),
    /// Nothing came for this long.
    Timeout(Duration),
    /// The network failed.
    Network(String),
    /// The message cannot be sent through this server.
    Unsendable(String),
    /// STARTTLS was asked for and is not offered.
    NoStartTls,
    /// Log-in was asked for and no way of ours is offered.
    NoMechanism,
    /// The account is left alone for this long.
    LeftAlone(Duration),
    /// The password cannot be had.
    Secret(String),
}

impl Fault {
    /// What a lettre error is.
    pub fn from_smtp(error: &Error) -> Self {
        if let Some(tls) = tls::find(error) {
            return Fault::Tls(tls.clone());
        }
        let text = error.source().map(ToString::to_string).unwrap_or_default();
        if let Some(code) = error.status() {
            return Fault::Answer { code: code.into(), text };
        }
        if error.is_client() {
            return Fault::Unsendable(text);
        }
        if error.is_response() {
            // The words of lettre's reader for "the stream ended".
            return if text == "incomplete response" { Fault::Closed } else { Fault::NotSmtp(text) };
        }
        match error.source().and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind) {
            Some(io::ErrorKind::InvalidData) => Fault::NotSmtp(text),
            Some(io::ErrorKind::UnexpectedEof) => Fault::Closed,
            _ => Fault::Network(root_cause(error)),
        }
    }
}

/// Judges a fault in a phase, with the server's TLS mode and how many tries there were before.
pub(crate) fn judge(phase: Phase, fault: &Fault, mode: Tls, attempt: u32) -> Verdict {
    match fault {
        Fault::Answer { code, text } => answered(phase, *code, text, attempt),
        Fault::NotSmtp(_) if phase == Phase::Greeting => Verdict::refused(format!(
            "not an SMTP greeting; check host and port of smarthost (25 or 587 with tls: starttls, 465 with tls: implicit){}",
            if mode == Tls::Implicit { "" } else { "; a server that expects TLS at once needs tls: implicit" }
        )),
        Fault::NotSmtp(text) => Verdict::retry(format!("the server's answer is no SMTP: {text}")),
        Fault::Closed => Verdict::retry(format!("the server closed the connection {}", during(phase))),
        Fault::Tls(error) => Verdict::refused(tls::explain(error, plain_hint(mode))),
        Fault::Timeout(limit) => Verdict::retry(timed_out(phase, *limit, mode)),
        Fault::Network(text) => Verdict::retry(format!("{text} {}", during(phase))),
        Fault::Unsendable(text) => Verdict::refused(format!("this server cannot carry the message: {text}")),
        Fault::NoStartTls => {
            Verdict::refused("the server does not offer STARTTLS; no mail is sent in clear unless tls: none is set")
        }
        Fault::NoMechanism => Verdict::refused(
            "no common mechanism to log in: the server offers neither PLAIN nor LOGIN here; nothing was sent",
        ),
        Fault::LeftAlone(rest) => Verdict::Retry {
            after: Some(*rest),
            why: "the log-in was refused (535) less than 5 minutes ago; the account is left alone".into(),
        },
        Fault::Secret(text) => Verdict::retry(text.clone()),
    }
}

fn answered(phase: Phase, code: u16, text: &str, attempt: u32) -> Verdict {
    let quoted = quote(text.as_bytes()).unwrap_or_default();
    let why = format!("answered {code} {quoted} {}", during(phase));
    match code {
        _ if phase == Phase::Login && code >= 500 => Verdict::Retry {
            after: Some(LOGIN_AGAIN_AFTER),
            why: format!("{why}; check auth_username and auth_password"),
        },
        530 if quoted.to_ascii_uppercase().contains("STARTTLS") => {
            Verdict::refused(format!("{why}; set tls: starttls"))
        }
        400..500 => Verdict::Retry { after: Some(later(attempt)), why },
        _ => Verdict::refused(why),
    }
}

fn later(attempt: u32) -> Duration {
    LATER[usize::try_from(attempt).unwrap_or(usize::MAX).min(LATER.len() - 1)]
}

fn during(phase: Phase) -> &'static str {
    match phase {
        Phase::Greeting => "before its greeting was complete",
        Phase::StartTls => "at STARTTLS",
        Phase::Login => "at the log-in",
        Phase::Transaction => "while taking the message",
    }
}

fn plain_hint(mode: Tls) -> &'static str {
    match mode {
        Tls::Implicit => "it greets in clear, so set tls: starttls (or tls: none)",
        Tls::StartTls | Tls::None => "check smarthost and tls",
    }
}

fn timed_out(phase: Phase, limit: Duration, mode: Tls) -> String {
    let hint = if phase == Phase::Greeting && mode != Tls::Implicit {
        "; a server that expects TLS at once (usual on port 465) stays silent: set tls: implicit"
    } else {
        ""
    };
    format!("nothing from the server for {limit:?} {}{hint}", during(phase))
}

#[cfg(test)]
#[allow(clippy::panic, reason = "tests")]
mod tests {
    use super::*;
    use Phase::{Greeting, Login, StartTls, Transaction};

    fn answer(code: u16, text: &str) -> Fault {
        Fault::Answer { code, text: text.into() }
    }

    #[test]
    fn every_code_in_every_phase() {
        for phase in [Greeting, StartTls, Login, Transaction] {
            for code in 400..600 {
                let verdict = judge(phase, &answer(code, "x"), Tls::StartTls, 0);
                let expected = match (code, phase) {
                    (400..500, _) | (_, Login) => Some(Duration::from_secs(300)),
                    _ => None,
                };
                match verdict {
                    Verdict::Retry { after, .. } => assert_eq!(after, expected, "{code} {phase:?}"),
                    Verdict::Refused { .. } => assert_eq!(None, expected, "{code} {phase:?}"),
                    Verdict::Delivered => panic!("{code} {phase:?}"),
                }
            }
        }
    }

    #[test]
    fn four_hundreds_wait_5_10_20_minutes() {
        let waits: Vec<u64> = (0..5)
            .map(|attempt| match judge(Transaction, &answer(451, "4.7.1 greylisted"), Tls::None, attempt) {
                Verdict::Retry { after: Some(after), .. } => after.as_secs() / 60,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(waits, [5, 10, 20, 20, 20]);
    }

    #[test]
    fn what_is_said_names_the_way_out() {
        let why = |phase, fault: &Fault, mode| judge(phase, fault, mode, 0).why().unwrap_or_default().to_owned();
        let cases = [
            (
                why(Transaction, &answer(530, "5.7.0 Must issue a STARTTLS command first"), Tls::None),
                "answered 530 5.7.0 Must issue a STARTTLS command first while taking the message; set tls: starttls",
            ),
            (
                why(Greeting, &Fault::Timeout(Duration::from_secs(10)), Tls::StartTls),
                "nothing from the server for 10s before its greeting was complete; a server that expects TLS at once \
              (usual on port 465) stays silent: set tls: implicit",
            ),
            (
                why(Greeting, &Fault::Tls(rustls::InvalidMessage::InvalidContentType.into()), Tls::Implicit),
                "the server does not speak TLS on this port (InvalidContentType); it greets in clear, so set tls: \
              starttls (or tls: none)",
            ),
            (why(Transaction, &Fault::Closed, Tls::None), "the server closed the connection while taking the message"),
            (
                why(Login, &answer(535, "5.7.8 no"), Tls::StartTls),
                "answered 535 5.7.8 no at the log-in; check auth_username and auth_password",
            ),
        ];
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }
}
