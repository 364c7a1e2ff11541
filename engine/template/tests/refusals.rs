//! What a template may not say, and what is answered.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use watchfire_door::Errors;
use watchfire_template::read;

/// All errors of a text, without the file's name.
fn refused(text: &str) -> String {
    let mut errors = Errors::default();
    read("FILE", text, &BTreeMap::new(), &["threshold"], &mut errors);
    errors.to_string().replace("FILE:", "")
}

/// The errors of a template with one rule of these keys, each on a line of its own from line 4.
fn rule(keys: &[&str]) -> String {
    let lines: Vec<String> =
        keys.iter().enumerate().map(|(at, key)| format!("{} {key}", if at == 0 { "  -" } else { "   " })).collect();
    refused(&format!("template: t\nversion: 1.0.0\nrules:\n{}\n", lines.join("\n")))
}

const WHEN: &str = "when: gpu_up < 1";

#[test]
fn a_template_needs_a_name_a_version_and_rules() {
    let cases = [
        ("{}", "1:1: missing key `rules`\n1:1: missing key `template`\n1:1: missing key `version`"),
        (
            "template: Bad Name\nversion: 1\nrules: []",
            "1:11: \"Bad Name\" is no template name; expected lower-case letters, digits and -\n3:8: a template needs at least one rule",
        ),
        ("template: t\nversion: 1\nrules: 5", "3:8: expected a list, found \"5\""),
        ("[]", "1:1: expected a mapping, found a list"),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn each_mistake_in_a_rule_is_told_at_its_place() {
    let cases: [(&[&str], &str); 17] = [
        (
            &["alert: 9x", WHEN, "severity: info"],
            "4:12: \"9x\" is no alert name; expected letters, digits and _, such as GpuTooHot",
        ),
        (
            &["alert: A"],
            "4:5: the rule has neither `module` nor `when`\n  hint: write `module: threshold`, or `when:` with an expression",
        ),
        (
            &["alert: A", WHEN, "module: threshold", "severity: info"],
            "6:13: the rule has both `module` and `when`; keep one",
        ),
        (
            &["alert: A", WHEN],
            "4:5: missing key `severity`\n  hint: write `severity: warning`, or grade `for` by severity",
        ),
        (&["alert: A", WHEN, "severity: bad"], "6:15: \"bad\" is none of info, warning, critical, emergency"),
        (
            &["alert: A", WHEN, "severity: info", "for: {warning: 5m}"],
            "6:15: `severity` and a graded `for` exclude each other\n  hint: keep the one that is meant",
        ),
        (
            &["alert: A", WHEN, "for: {bad: 5m, info: 1m}"],
            "6:11: severity \"bad\" is none of info, warning, critical, emergency",
        ),
        (
            &["alert: A", WHEN, "severity: info", "for: 5 minuets"],
            "7:10: \"5 minuets\" is no duration; expected a number with ms, s, m, h, d or w, such as 1h30m\n  hint: write `5m`",
        ),
        (
            &["alert: A", "module: treshold"],
            "5:13: there is no module `treshold`; expected one of threshold, or a file ./NAME.wasm or ./NAME.rhai\n  hint: did you mean `threshold`?",
        ),
        (
            &["alert: A", "module: threshold", "until: x > 1"],
            "6:12: `until` goes with `when`, not with `module`\n  hint: put it under `with`, if the module knows it",
        ),
        (
            &["alert: A", "module: threshold", "with: {above: {warning: 1, critical: 2}}", "for: {warning: 5m}"],
            "7:10: `for` says nothing of critical, which has a limit\n  hint: add `critical: 0s` to fire at once",
        ),
        (
            &["alert: A", WHEN, "severity: info", "couse: thermal"],
            "7:5: unknown key `couse`; expected one of alert, for, with, module, when, until, severity, scope, interval, labels, keep_firing_for, missing_data, missing_after, cause, annotations\n  hint: did you mean `cause`?",
        ),
        (
            &["alert: A", WHEN, "severity: info", "cause: heat"],
            "7:12: \"heat\" is none of hardware, thermal, power, hang, idle, supply, communication, software, capacity, telemetry",
        ),
        (&["alert: A", WHEN, "severity: info", "missing_data: keep"], "7:19: \"keep\" is none of hold, resolve, alert"),
        (
            &["alert: A", WHEN, "severity: info", "labels: {severity: x}"],
            "7:14: `severity` is no label of a template\n  hint: Watchfire sets it itself",
        ),
        (
            &["alert: A", WHEN, "severity: info", "annotations: {summary: \"{{ x\"}"],
            "7:28: the text does not parse: syntax error: unexpected end of input, expected end of variable block",
        ),
        (
            &["alert: A", WHEN, "severity: info", "for: $hold"],
            "7:10: \"$hold\" is no duration; expected a number with ms, s, m, h, d or w, such as 1h30m\n7:10: there is no parameter `$hold`\n  hint: declare it under `parameters:`",
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(rule(keys), expected, "{keys:?}");
    }
}

#[test]
fn parameters_keep_their_bounds() {
    let text = "template: t\nversion: 1\nparameters:\n  hot: {default: 85, min: 40, max: 110}\n  cold: {default: 200, max: 100}\nrules: [{alert: A, when: gpu_up < $hot, severity: info}]\n";
    assert_eq!(refused(text), "5:19: 200 is out of range; expected -inf to 100");
    let mut errors = Errors::default();
    let given = watchfire_door::read("main", "{hto: 1, hot: 300}", &mut errors).unwrap().map(&mut errors).unwrap();
    let given = given.entries().into_iter().map(|(name, _, node)| (name, node)).collect();
    read("FILE", &text.replace("200", "20"), &given, &[], &mut errors);
    assert_eq!(
        errors.to_string(),
        "main:1:7: the template has no parameter `hto`\n  hint: did you mean `hot`?\nmain:1:15: 300 is out of range; expected 40 to 110"
    );
}

#[test]
fn one_duration_stands_for_what_the_rule_can_raise() {
    use watchfire_core::Severity::{Critical, Info, Warning};
    let cases = [
        ("{alert: A, when: gpu_up < 1, severity: critical, for: 5m}", Critical),
        ("{alert: A, module: threshold, with: {above: {warning: 1, critical: 2}}}", Warning),
        ("{alert: A, when: gpu_up < 1, for: {info: 1m, critical: 5m}}", Info),
        ("{alert: A, module: ./own.rhai}", Info),
    ];
    for (rule, mildest) in cases {
        let mut errors = Errors::default();
        let text = format!("template: t\nversion: 1\nrules: [{rule}]");
        let template = read("FILE", &text, &BTreeMap::new(), &["threshold"], &mut errors).unwrap();
        assert_eq!((template.rules[0].spec.mildest(), errors.to_string()), (mildest, String::new()), "{rule}");
    }
}

#[test]
fn what_is_good_is_taken() {
    let text = "template: t\nversion: 1\nmin_version: 0.1.0\napplies_to: {gpu_vendor: nvidia, model: [\"NVIDIA H*\", L40S]}\ninterval: 1s\nrules:\n  - alert: A\n    when: gpu_up < 1\n    for: {info: 10m, critical: 2h}\n    missing_data: alert\n";
    let mut errors = Errors::default();
    let template = read("FILE", text, &BTreeMap::new(), &[], &mut errors).unwrap();
    assert!(errors.is_empty(), "{errors}");
    let spec = &template.rules[0].spec;
    assert_eq!((&*spec.id, spec.interval.as_secs()), ("t/A", 1));
    let host = |model: &str| watchfire_core::Labels::new([("gpu_vendor", "nvidia"), ("model", model)]);
    assert!(template.applies_to(&host("NVIDIA H100 80GB HBM3")) && !template.applies_to(&host("NVIDIA A100")));
}
