//! Email over real sockets: a real SMTP server (aiosmtpd) where there is one, and scripted ones for what no real
//! server would do on demand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::smtp_server::SmtpServer;
use common::{Rig, hot, over};
use serde_json::{Value, json};
use watchfire_notify::ReceiverConfig;
use watchfire_notify::receiver::email::{EmailConfig, Tls};
use watchfire_notify::secret::SecretSource;

const LANE: &str = "email/0/ops@x.example";

/// Mail to ops@x.example through localhost.
fn config(port: u16, tls: Tls) -> EmailConfig {
    let (to, from) = ("ops@x.example".parse().unwrap(), "GPU Alerts <a@x.example>".parse().unwrap());
    EmailConfig { tls, hello: Some("h1.x.example".into()), ..EmailConfig::new(to, from, "localhost", port) }
}

fn trusting(server: &SmtpServer, tls: Tls) -> EmailConfig {
    EmailConfig { ca_file: Some(server.ca_file.clone()), ..config(server.port, tls) }
}

fn logged_in(server: &SmtpServer, tls: Tls, password: &str) -> EmailConfig {
    EmailConfig { login: Some(("me".into(), SecretSource::value(password))), ..trusting(server, tls) }
}

fn rig(config: EmailConfig) -> Rig {
    Rig::new(vec![ReceiverConfig::new("ops").with(config)])
}

fn text<'a>(event: &'a Value, name: &str) -> &'a str {
    event[name].as_str().unwrap_or_else(|| panic!("{name} in {event}"))
}

#[test]
fn a_real_server_takes_it_in_each_mode() {
    for (mode, tls) in [("none", Tls::None), ("starttls", Tls::StartTls), ("implicit", Tls::Implicit)] {
        let Some(server) = SmtpServer::start(json!({"tls": mode})) else { return };
        let rig = rig(trusting(&server, tls));
        let message = hot(3);
        rig.send(&message);
        assert_eq!(rig.totals(LANE).delivered, 1, "{mode}: {}", rig.last_error(LANE));
        let mail = &server.events("message", 1)[0];
        assert_eq!(mail["tls"], json!(tls != Tls::None));
        assert_eq!(mail["to"], json!(["ops@x.example"]));
        assert_eq!(server.events("mail_from", 1)[0]["mail_from"], "a@x.example", "no display name in MAIL FROM");
        let content = text(mail, "message");
        assert!(content.contains("From: \"GPU Alerts\" <a@x.example>\r\n"), "{content}");
        assert!(content.contains(&format!("Message-ID: <{}@x.example>\r\n", message.key)), "{content}");
        assert!(content.contains("text/plain") && content.contains("text/html"), "{content}");
    }
}

#[test]
fn a_strict_server_takes_a_long_subject_in_another_script() {
    let Some(server) = SmtpServer::start(json!({})) else { return };
    let rig = rig(config(server.port, Tls::None));
    let mut starry = hot(3);
    starry.alerts[0].labels.insert("alertname".into(), "⭐".repeat(40));
    starry.alerts[0].note = Some("温度过高\n第二行\r第三行".into());
    rig.send(&starry);
    assert_eq!(rig.totals(LANE).delivered, 1, "{}", rig.last_error(LANE));
    let content = server.events("message", 1)[0]["message"].to_string();
    assert!(content.contains("Subject: [FIRING:1 critical] =?utf-8?b?"), "{content}");
}

#[test]
fn start_and_end_of_a_group_are_one_thread() {
    let Some(server) = SmtpServer::start(json!({})) else { return };
    let rig = rig(config(server.port, Tls::None));
    rig.send(&hot(3));
    rig.send(&over(3));
    rig.send(&hot(4));
    let mails = server.events("message", 3);
    let header = |mail: &Value, name: &str| {
        let content = text(mail, "message").to_owned();
        content.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned()
    };
    assert_eq!(header(&mails[0], "References: "), header(&mails[1], "References: "));
    assert_ne!(header(&mails[0], "References: "), header(&mails[2], "References: "));
    assert_eq!(header(&mails[1], "Subject: "), "[RESOLVED:1] GpuTooHot h1 gpu 3");
}

#[test]
fn the_user_logs_in_by_plain_or_login() {
    for exclude in [json!([]), json!(["PLAIN"])] {
        let settings = json!({"tls": "starttls", "login": ["me", "pw"], "auth_require_tls": true, "exclude": exclude});
        let Some(server) = SmtpServer::start(settings) else { return };
        let rig = rig(logged_in(&server, Tls::StartTls, "pw"));
        rig.send(&hot(3));
        assert_eq!(rig.totals(LANE).delivered, 1, "{}", rig.last_error(LANE));
        assert_eq!(server.events("message", 1)[0]["user"], "me");
        let login = &server.events("login", 1)[0];
        assert_eq!(login["tls"], true);
        assert_eq!(login["login"], if exclude == json!([]) { "PLAIN" } else { "LOGIN" });
    }
}

#[test]
fn a_refused_log_in_is_tried_once_in_five_minutes_whoever_wants_it() {
    let settings = json!({"tls": "starttls", "login": ["me", "right"], "auth_require_tls": true});
    let Some(server) = SmtpServer::start(settings) else { return };
    let mut config = logged_in(&server, Tls::StartTls, "wr0ng");
    config.to.push("night@x.example".parse().unwrap());
    let rig = rig(config);
    for gpu in 0..5 {
        rig.send(&hot(gpu));
    }
    rig.pass(Duration::from_secs(299));
    assert_eq!(server.events("login", 1).len(), 1, "two recipients, five messages, one try");
    assert_eq!(server.count("message"), 0);
    let why = [LANE, "email/0/night@x.example"].map(|lane| rig.last_error(lane));
    assert!(why.iter().any(|why| why.contains("answered 535 5.7.8") && why.contains("check auth_username")), "{why:?}");
    assert!(why.iter().all(|why| why.contains("535") && !why.contains("wr0ng")), "{why:?}");
    rig.pass(Duration::from_secs(2));
    assert_eq!(server.events("login", 2).len(), 2);
}

#[test]
fn greylisting_is_sat_out() {
    let answers = json!({"data": ["451 4.7.1 greylisted", "421 4.3.0 busy", "452 4.2.2 full", "250 OK"]});
    let Some(server) = SmtpServer::start(answers) else { return };
    let rig = rig(config(server.port, Tls::None));
    rig.send(&hot(3));
    assert!(rig.last_error(LANE).contains("answered 451 4.7.1 greylisted while taking the message"));
    for (minutes, connections) in [(5, 2), (10, 3), (20, 4)] {
        rig.pass(Duration::from_secs(minutes * 60 - 1));
        assert_eq!(server.count("connected"), connections - 1, "before {minutes} minutes");
        rig.pass(Duration::from_secs(1));
        assert_eq!(server.events("connected", connections).len(), connections);
    }
    assert_eq!((server.events("message", 1).len(), rig.totals(LANE).delivered), (1, 1));
}

#[test]
fn a_refused_recipient_costs_the_other_no_second_copy() {
    let settings = json!({"rcpt": {"gone@x.example": ["550 5.1.1 no such user"]}});
    let Some(server) = SmtpServer::start(settings) else { return };
    let mut config = config(server.port, Tls::None);
    config.to.push("gone@x.example".parse().unwrap());
    let rig = rig(config);
    rig.send(&hot(3));
    rig.pass(Duration::from_secs(86_400));
    let mails = server.events("message", 1);
    assert_eq!((mails.len(), &mails[0]["to"]), (1, &json!(["ops@x.example"])));
    assert!(text(&mails[0], "message").contains("To: ops@x.example, gone@x.example\r\n"));
    let gone = "email/0/gone@x.example";
    assert_eq!((rig.totals(LANE).delivered, rig.totals(gone).failed, rig.totals(gone).queued), (1, 1, 0));
    assert!(rig.last_error(gone).contains("answered 550 5.1.1 no such user"), "{}", rig.last_error(gone));
}

#[test]
fn a_wrong_tls_mode_is_told_with_the_way_out_and_nothing_is_sent_in_clear() {
    let cases = [
        (json!({"tls": "none"}), Tls::StartTls, "the server does not offer STARTTLS; no mail is sent in clear"),
        (
            json!({"tls": "starttls"}),
            Tls::Implicit,
            "does not speak TLS on this port (InvalidContentType); it greets in clear, so set tls: starttls",
        ),
        (
            json!({"tls": "starttls", "require_starttls": true}),
            Tls::None,
            "answered 530 Must issue a STARTTLS command first while taking the message; set tls: starttls",
        ),
    ];
    for (settings, tls, words) in cases {
        let Some(server) = SmtpServer::start(settings) else { return };
        let rig = rig(trusting(&server, tls));
        rig.send(&hot(3));
        assert!(rig.last_error(LANE).contains(words), "{}", rig.last_error(LANE));
        assert_eq!((rig.totals(LANE).failed, server.count("message")), (1, 0));
    }
}

#[test]
fn a_server_whose_ca_is_unknown_is_not_trusted() {
    let Some(server) = SmtpServer::start(json!({"tls": "starttls"})) else { return };
    let rig = rig(config(server.port, Tls::StartTls));
    rig.send(&hot(3));
    let why = rig.last_error(LANE);
    assert!(why.contains("not signed by a trusted authority; name its CA in tls_config: {ca_file}"), "{why}");
    assert_eq!(server.count("message"), 0);
}

/// A server that says `greeting` and then answers each line by the first script entry whose word it begins with.
/// What it heard is kept.
fn scripted(greeting: &'static str, script: &'static [(&'static str, &'static str)]) -> (u16, Arc<Mutex<Vec<String>>>) {
    let (listener, heard) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::default());
    let (port, log): (u16, Arc<Mutex<Vec<String>>>) = (listener.local_addr().unwrap().port(), Arc::clone(&heard));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut out = stream.try_clone().unwrap();
            if out.write_all(greeting.as_bytes()).is_err() {
                continue;
            }
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let answer = script.iter().find(|(word, _)| line.starts_with(word)).map(|(_, answer)| *answer);
                log.lock().unwrap().push(line);
                match answer {
                    Some("") => break,
                    Some(answer) => out.write_all(answer.as_bytes()).unwrap_or_default(),
                    None => {}
                }
            }
        }
    });
    (port, heard)
}

#[test]
fn without_a_common_mechanism_nothing_is_sent() {
    let ehlo = ("EHLO", "250-mx.test\r\n250 AUTH XOAUTH2 GSSAPI\r\n");
    let none: &[_] = &[("EHLO", "250-mx.test\r\n250 SIZE 1000000\r\n"), ("QUIT", "221 bye\r\n")];
    let foreign: &[_] = Box::leak(Box::new([ehlo, ("QUIT", "221 bye\r\n")]));
    for script in [foreign, none] {
        let (port, heard) = scripted("220 mx.test ESMTP\r\n", script);
        let login = Some(("me".into(), SecretSource::value("pw")));
        let rig = rig(EmailConfig { login, ..config(port, Tls::None) });
        rig.send(&hot(3));
        let why = rig.last_error(LANE);
        assert!(why.contains("no common mechanism to log in"), "{why}");
        assert_eq!(rig.totals(LANE).failed, 1);
        let heard = heard.lock().unwrap();
        assert!(!heard.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL")), "{heard:?}");
    }
}

#[test]
fn another_protocol_is_told_apart_at_once() {
    for greeting in
        ["* OK [CAPABILITY IMAP4rev1] ready\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9\r\n"]
    {
        let (port, heard) = scripted(greeting, &[]);
        let rig = rig(config(port, Tls::StartTls));
        rig.send(&hot(3));
        let why = rig.last_error(LANE);
        assert!(why.contains("not an SMTP greeting; check host and port of smarthost"), "{greeting}: {why}");
        assert_eq!((rig.totals(LANE).failed, heard.lock().unwrap().len()), (1, 0));
    }
}

#[test]
fn a_server_that_waits_for_tls_is_given_up_in_time_with_a_hint() {
    let (port, _) = scripted("", &[]);
    let ready_within = Duration::from_millis(200);
    let rig = rig(EmailConfig { ready_within, ..config(port, Tls::StartTls) });
    rig.send(&hot(3));
    let why = rig.last_error(LANE);
    assert!(why.contains("nothing from the server for 200ms before its greeting was complete"), "{why}");
    assert!(why.contains("(usual on port 465) stays silent: set tls: implicit"), "{why}");
    assert_eq!(rig.totals(LANE).queued, 1);
}

#[test]
fn a_connection_that_breaks_is_tried_again() {
    let ehlo = ("EHLO", "250 mx.test\r\n");
    let gone: [(&str, u16); 2] = [
        ("Connection refused", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()),
        (
            "closed the connection while taking the message",
            scripted("220 mx.test\r\n", Box::leak(Box::new([ehlo, ("MAIL", "")]))).0,
        ),
    ];
    for (words, port) in gone {
        let rig = rig(config(port, Tls::None));
        rig.send(&hot(3));
        assert!(rig.last_error(LANE).contains(words), "{}", rig.last_error(LANE));
        assert_eq!(rig.totals(LANE).queued, 1);
    }
}
