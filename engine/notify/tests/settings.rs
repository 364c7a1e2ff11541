//! Receivers and heartbeats as they stand in a configuration file.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use watchfire_door::{Errors, read};
use watchfire_notify::heartbeat::HeartbeatConfig;
use watchfire_notify::{BuildContext, ReceiverConfig, Receivers};

fn receiver(text: &str) -> Result<ReceiverConfig, String> {
    let mut errors = Errors::default();
    let node = read("w.yaml", text, &mut errors).unwrap();
    let config = ReceiverConfig::read(&node, &mut errors);
    if errors.is_empty() { Ok(config.unwrap()) } else { Err(errors.to_string()) }
}

#[test]
fn every_key_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let ca = rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap();
    std::fs::write(path("ca.pem"), ca.cert.pem()).unwrap();
    let (ca_pem, token) = (path("ca.pem"), path("token"));
    let text = format!(
        r#"
name: ops
webhook_configs:
  - url: http://127.0.0.1:8080/hook
  - url_file: {token}
    send_resolved: false
    max_alerts: 20
    timeout: 3s
    retry_status: [403, 404]
    http_config:
      authorization: {{type: Token, credentials_file: {token}}}
      headers: {{X-Scope: gpu}}
      tls_config: {{ca_file: {ca_pem}}}
  - url: https://hooks.example/
    http_config: {{basic_auth: {{username: me, password: pw}}}}
email_configs:
  - to: a@x.example, "B, C" <b@x.example>, a@x.example
    from: Watch <w@x.example>
    smarthost: mx.example:587
    auth_username: me
    auth_password_file: {token}
    hello: h1.example
    tls: starttls
    tls_config: {{ca_file: {ca_pem}}}
    headers: {{Subject: "{{{{ title }}}}!", X-Team: gpu}}
    text: "{{{{ title }}}}"
    html: "<p>{{{{ title }}}}</p>"
    send_resolved: false
  - {{to: [c@x.example], from: w@x.example, smarthost: "[::1]:25", require_tls: false}}
alertmanager_configs:
  - {{url: http://am.example:9093/prefix, timeout: 2s, expires: 12h, send_resolved: true}}
"#
    );
    let config = receiver(&text).unwrap();
    let receivers = Receivers::build(&[config], &BuildContext::new("")).unwrap();
    let names: Vec<&str> = receivers.names().map(|(_, channel)| channel).collect();
    let expected = [
        "webhook/0",
        "webhook/1",
        "webhook/2",
        "email/0/a@x.example",
        "email/0/b@x.example",
        "email/1/c@x.example",
        "alertmanager/0",
    ];
    assert_eq!(names, expected);
}

#[test]
fn all_mistakes_are_told_at_once_with_place_and_hint() {
    let text = r#"
nam: ops
webhook_configs:
  - {url: "htp://x/s3cret", send_resolve: true, retry_status: [200]}
  - {timeout: 2h, max_alerts: -1}
  - url: http://x/
    url_file: /y
    http_config: {authorization: {credentials: a}, basic_auth: {username: b}}
email_configs:
  - {to: nobody, from: x, smarthost: mx.example, tls: ssl, auth_password: p}
  - {to: a@x.example, from: a@x.example, smarthost: "mx.example:25", tls: none, auth_username: u, auth_password: s3cret}
  - {to: a@x.example, from: a@x.example, smarthost: "mx.example:25", tls: starttls, require_tls: false, text: "{{ x"}
  - to: a@x.example
    from: a@x.example
    smarthost: mx.example:25
    headers: {Message-ID: x, "no name": y}
    tls_config: {insecure_skip_verify: true}
alertmanager_configs:
  - {url: "${NOT_SET_ANYWHERE}", expires: 0s}
"#;
    let errors = receiver(text).unwrap_err();
    assert!(!errors.contains("s3cret"), "{errors}");
    insta::assert_snapshot!(errors, @r#"
    w.yaml:2:1: missing key `name`
    w.yaml:2:1: unknown key `nam`; expected one of name, webhook_configs, email_configs, alertmanager_configs
      hint: did you mean `name`?
    w.yaml:4:6: `url` begins with "htp"; only http and https are spoken
      hint: write `http://HOST:PORT/PATH`
    w.yaml:4:29: unknown key `send_resolve`; expected one of url, url_file, send_resolved, max_alerts, timeout, http_config, retry_status
      hint: did you mean `send_resolved`?
    w.yaml:4:64: expected an HTTP status from 300 to 599, found "200"
    w.yaml:5:5: missing key `url`
      hint: write `url: http://HOST:PORT/PATH`, or name a file in `url_file`
    w.yaml:5:15: timeout must be more than 0s and at most 1m, found 2h
    w.yaml:5:31: expected a whole number that is not negative, found "-1"
    w.yaml:7:15: `url` and `url_file` exclude each other
      hint: keep one of them
    w.yaml:8:64: `authorization` and `basic_auth` exclude each other
      hint: keep one of them
    w.yaml:8:64: missing key `password` or `password_file`
    w.yaml:10:10: "nobody" is no list of mail addresses: Invalid input
    w.yaml:10:24: "x" is no mail address (Invalid input); expected such as a@x.example or "Name <a@x.example>"
    w.yaml:10:38: "mx.example" is no HOST:PORT; write such as mx.example:587
    w.yaml:10:55: expected starttls, implicit or none, found "ssl"
    w.yaml:10:60: `auth_password` without `auth_username`
    w.yaml:11:5: tls: none would send the password to mx.example in clear; use starttls or implicit
    w.yaml:12:85: `require_tls: false` contradicts `tls`, which secures the connection
      hint: keep `tls`
    w.yaml:12:111: the template cannot be read: syntax error: unexpected end of input, expected end of variable block (in <string>:1)
    w.yaml:16:15: the header Message-ID is written by Watchfire itself
    w.yaml:16:30: "no name" is no mail header name
    w.yaml:17:18: certificates are always checked
      hint: name the CA that signed the server's in `ca_file`
    w.yaml:19:11: environment variable NOT_SET_ANYWHERE is not set
    w.yaml:19:43: expires must be more than 0s
    "#);
}

#[test]
fn a_heartbeat_is_read() {
    let mut errors = Errors::default();
    let node = read("w.yaml", "{url: https://beat.example/ping, interval: 30s, method: POST}", &mut errors).unwrap();
    let config = HeartbeatConfig::read(&node, &mut errors).unwrap();
    assert_eq!((config.interval, config.method.as_str()), (Duration::from_secs(30), "POST"));
    assert!(errors.is_empty());
    let node = read("w.yaml", "{interval: 0s, method: PUT}", &mut errors).unwrap();
    assert_eq!(HeartbeatConfig::read(&node, &mut errors), None);
    assert_eq!(errors.len(), 3, "{errors}");
}

#[test]
fn a_file_that_cannot_be_used_names_receiver_and_channel() {
    let text = "{name: ops, webhook_configs: [{url: 'https://x/', http_config: {tls_config: {ca_file: /no/ca.pem}}}]}";
    let error = Receivers::build(&[receiver(text).unwrap()], &BuildContext::new("")).err().unwrap().to_string();
    assert!(error.starts_with(r#"receiver "ops", webhook/0: cannot use ca_file /no/ca.pem: "#), "{error}");
}

#[test]
fn a_receiver_has_a_bounded_number_of_channels() {
    let urls = "{url: 'http://x/'}, ".repeat(watchfire_notify::receiver::CHANNELS_MAX + 1);
    let config = receiver(&format!("{{name: ops, webhook_configs: [{urls}]}}")).unwrap();
    let error = Receivers::build(&[config], &BuildContext::new("")).err().unwrap().to_string();
    assert_eq!(error, "receiver \"ops\", all: 65 channels are more than 64; split the receiver");
}

#[test]
fn two_receivers_of_one_name_are_refused() {
    let twice = [ReceiverConfig::new("ops"), ReceiverConfig::new("ops")];
    let error = Receivers::build(&twice, &BuildContext::new("")).err().unwrap().to_string();
    assert_eq!(error, "two receivers have the name \"ops\"");
}

#[test]
fn secrets_of_the_settings_are_not_printed() {
    let text = "{name: ops, webhook_configs: [{url: 'http://u:pa55@x/T0KEN', http_config: {headers: {X-Key: k3y}}}]}";
    let shown = format!("{:?}", receiver(text).unwrap());
    assert!(!["pa55", "T0KEN", "k3y"].iter().any(|secret| shown.contains(secret)), "{shown}");
}
