//! `email_configs`: SMTP, one channel for each recipient.
//!
//! Unlike in Alertmanager, `send_resolved` is on unless it is turned off: a mail that says that something is wrong
//! asks for one that says that it is over.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lettre::address::Envelope;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::extension::ClientId;
use sha2::{Digest as _, Sha256};
use watchfire_door::{Errors, Node};

use super::{BuildContext, BuildError, Channel, ChannelConfig, Delivery, SendFuture, Sender, read_email};
use crate::mail::render::{self, Templates};
use crate::mail::smtp::{Login, READY_WITHIN, Server};
use crate::message::{Message, hex};
use crate::secret::SecretSource;
use crate::tls;
use crate::verdict::Verdict;

/// When a connection is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// After the greeting; without it nothing is sent (RFC 3207; ports 587 and 25).
    StartTls,
    /// At once (RFC 8314; port 465).
    Implicit,
    /// Never.
    None,
}

/// One entry of `email_configs`.
#[derive(Clone, Debug, PartialEq)]
pub struct EmailConfig {
    /// Who gets it.
    pub to: Vec<Mailbox>,
    /// Whom it is from.
    pub from: Mailbox,
    /// The server's name or address.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// User and password.
    pub login: Option<(String, SecretSource)>,
    /// The name given in EHLO; this host's where it is not set.
    pub hello: Option<String>,
    /// When the connection is secured.
    pub tls: Tls,
    /// PEM file with the CAs to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// More headers.
    pub headers: Vec<(HeaderName, String)>,
    /// In place of the built-in ones.
    pub templates: Templates,
    /// Whether ends are told.
    pub send_resolved: bool,
    /// How long connecting, greeting, TLS and log-in may take together.
    pub ready_within: Duration,
}

impl EmailConfig {
    /// Mail to one recipient through `host:port`, secured by STARTTLS, without log-in.
    pub fn new(to: Mailbox, from: Mailbox, host: impl Into<String>, port: u16) -> Self {
        EmailConfig {
            to: vec![to],
            from,
            host: host.into(),
            port,
            login: None,
            hello: None,
            tls: Tls::StartTls,
            ca_file: None,
            headers: Vec::new(),
            templates: Templates::default(),
            send_resolved: true,
            ready_within: READY_WITHIN,
        }
    }

    /// Reads an entry; `errors` says what is wrong with it.
    pub fn read(node: &Node, errors: &mut Errors) -> Option<Self> {
        read_email::email(node, errors)
    }

    /// What the settings together must not say.
    ///
    /// # Errors
    /// A password would travel in clear to another machine (as in Go's `smtp.PlainAuth`, only this machine may).
    pub fn check(&self) -> Result<(), String> {
        if self.tls == Tls::None && self.login.is_some() && !is_this_machine(&self.host) {
            return Err(format!(
                "tls: none would send the password to {} in clear; use starttls or implicit",
                self.host
            ));
        }
        Ok(())
    }

    fn server(&self, context: &BuildContext) -> Result<Server, BuildError> {
        let secure = self.tls != Tls::None;
        let tls = secure.then(|| tls::smtp_parameters(&self.host, self.ca_file.as_deref(), &context.roots));
        let login = self.login.as_ref().map(|(username, password)| Login {
            username: username.clone(),
            password: password.clone(),
            account: context.accounts.get(&format!("{}:{}", self.host, self.port), username),
        });
        Ok(Server {
            host: self.host.clone(),
            port: self.port,
            hello: self.hello.clone().map_or_else(ClientId::default, ClientId::Domain),
            mode: self.tls,
            tls: tls.transpose()?,
            login,
            ready_within: self.ready_within,
            now: context.now.clone(),
        })
    }
}

fn is_this_machine(host: &str) -> bool {
    let ip = host.parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

impl ChannelConfig for EmailConfig {
    fn kind(&self) -> &'static str {
        "email"
    }

    fn channels(&self, context: &BuildContext) -> Result<Vec<Channel>, BuildError> {
        self.check().map_err(BuildError::new)?;
        let for_recipient = |recipient: &Mailbox| {
            let sender = Email {
                config: self.clone(),
                recipient: recipient.clone(),
                server: self.server(context)?,
                external_url: context.external_url.clone(),
            };
            let suffix = recipient.email.to_string();
            Ok(Channel { suffix, send_resolved: self.send_resolved, sender: Box::new(sender) })
        };
        self.to.iter().map(for_recipient).collect()
    }
}

struct Email {
    config: EmailConfig,
    recipient: Mailbox,
    server: Server,
    external_url: String,
}

impl Sender for Email {
    fn send<'a>(&'a self, delivery: Delivery<'a>) -> SendFuture<'a> {
        Box::pin(async move {
            let built = build(&self.config, delivery.message, &self.external_url);
            let envelope = Envelope::new(Some(self.config.from.email.clone()), vec![self.recipient.email.clone()]);
            match (built, envelope) {
                (Ok(mail), Ok(envelope)) => self.server.deliver(&envelope, &mail.formatted(), delivery.attempt).await,
                (Err(why), _) => Verdict::refused(why),
                (_, Err(error)) => Verdict::refused(format!("the addresses cannot be used: {error}")),
            }
        })
    }
}

/// The whole email. All recipients get the same one: same `Message-ID`, all of them in `To`.
fn build(config: &EmailConfig, message: &Message, external_url: &str) -> Result<lettre::Message, String> {
    let rendered = render::render(message, external_url, &config.templates)?;
    let domain = config.from.email.domain();
    let thread = format!("<{}@{domain}>", thread(message));
    let mut builder = lettre::Message::builder()
        .from(config.from.clone())
        .subject(rendered.subject)
        .date(at(message.time_ms))
        .message_id(Some(format!("<{}@{domain}>", message.key)))
        .in_reply_to(thread.clone())
        .references(thread);
    for recipient in &config.to {
        builder = builder.to(recipient.clone());
    }
    for (name, value) in &config.headers {
        builder = builder.raw_header(HeaderValue::new(name.clone(), value.clone()));
    }
    let body = MultiPart::alternative_plain_html(rendered.text, rendered.html);
    builder.multipart(body).map_err(|error| format!("cannot make the email: {error}"))
}

/// Names the thread that all emails about one group belong to.
fn thread(message: &Message) -> String {
    let mut hash = Sha256::new();
    hash.update(message.receiver.as_bytes());
    hash.update([0]);
    hash.update(message.group_key.as_bytes());
    let mut name = hex(&hash.finalize());
    name.truncate(32);
    format!("group-{name}")
}

fn at(time_ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(time_ms).unwrap_or(0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;
    use crate::message::tests::{alert, message, repeated, resolved};
    use watchfire_core::Severity::Critical;

    fn config() -> EmailConfig {
        let from = "GPU Alerts <a@x.example>".parse().unwrap();
        EmailConfig::new("ops@x.example".parse().unwrap(), from, "mx.x.example", 587)
    }

    fn formatted(message: &Message) -> String {
        String::from_utf8(build(&config(), message, "").unwrap().formatted()).unwrap()
    }

    fn header<'a>(mail: &'a str, name: &str) -> &'a str {
        let line = mail.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("{name} in {mail}"))
    }

    #[test]
    fn headers_name_sender_date_message_and_thread() {
        let first = message(vec![alert(3, Critical)]);
        let mail = formatted(&first);
        assert_eq!(header(&mail, "From"), "\"GPU Alerts\" <a@x.example>");
        assert_eq!(header(&mail, "Subject"), "[FIRING:1 critical] GpuTooHot h1 gpu 3");
        assert_eq!(header(&mail, "Date"), "Thu, 01 Jan 2026 00:00:01 +0000");
        assert_eq!(header(&mail, "Message-ID"), format!("<{}@x.example>", first.key));
        let over = formatted(&message(vec![resolved(alert(3, Critical))]));
        assert_eq!(header(&mail, "References"), header(&over, "In-Reply-To"), "a group is one thread");
        assert_ne!(header(&mail, "Message-ID"), header(&over, "Message-ID"));
        let reminder = formatted(&repeated(vec![alert(3, Critical)], 1));
        assert_ne!(header(&mail, "Message-ID"), header(&reminder, "Message-ID"));
    }

    #[test]
    fn every_line_ends_in_crlf_and_is_ascii_of_at_most_998() {
        let mut starry = message(vec![alert(3, Critical)]);
        starry.alerts[0].labels.insert("alertname".into(), "⭐".repeat(40));
        starry.alerts[0].note = Some("long ".repeat(1000) + "\nnew line\rold mac");
        let mail = formatted(&starry);
        assert!(mail.is_ascii());
        for line in mail.split("\r\n") {
            assert!(!line.contains('\n') && !line.contains('\r'), "{line:?}");
            assert!(line.len() <= 998, "RFC 5322 §2.1.1");
        }
    }

    #[test]
    fn a_label_cannot_smuggle_in_a_header() {
        let mut evil = message(vec![alert(3, Critical)]);
        evil.alerts[0].labels.insert("host".into(), "h1\r\nBcc: all@x.example\r\n".into());
        let mail = formatted(&evil);
        let (headers, _) = mail.split_once("\r\n\r\n").unwrap();
        assert!(headers.contains("h1 Bcc: all@x.example") && !headers.contains("\r\nBcc:"), "{headers}");
    }

    #[test]
    fn a_password_in_clear_leaves_this_machine_only_to_itself() {
        let with = |host: &str, tls| {
            let login = Some(("me".to_owned(), SecretSource::value("pw")));
            EmailConfig { host: host.into(), tls, login, ..config() }.check()
        };
        assert!(with("mx.x.example", Tls::None).unwrap_err().contains("in clear"));
        for (host, tls) in [("mx.x.example", Tls::StartTls), ("localhost", Tls::None), ("127.0.0.1", Tls::None)] {
            assert_eq!(with(host, tls), Ok(()));
        }
        assert_eq!(EmailConfig { tls: Tls::None, ..config() }.check(), Ok(()));
    }
}
