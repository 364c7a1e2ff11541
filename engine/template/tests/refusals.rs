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
            "7:5: unknown key `couse`; expected one of alert, for, with, module, when, until, value, severity, scope, interval, labels, keep_firing_for, missing_data, missing_after, cause, annotations, limits\n  hint: did you mean `cause`?",
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
fn what_would_never_fire_or_never_be_read_is_refused() {
    let cases: [(&[&str], &str); 5] = [
        (
            &["alert: 9x", WHEN, "severity: bad", "scope: bad", "interval: 0s"],
            "4:12: \"9x\" is no alert name; expected letters, digits and _, such as GpuTooHot\n6:15: \"bad\" is none of info, warning, critical, emergency\n7:12: \"bad\" is none of host, gpu, device, job, rank\n8:15: `interval` must be longer than 0s",
        ),
        (
            &["alert: A", WHEN, "for: {}"],
            "6:10: `for` names no severity, so nothing would ever fire\n  hint: write `for: 5m`, or `for: {warning: 5m, critical: 2m}`",
        ),
        (
            &["alert: A", WHEN, "severity: info", "labels: {my-team: x, 0: y}"],
            "7:14: \"my-team\" is no label name; expected letters, digits and _, such as team\n7:26: \"0\" is no label name; expected letters, digits and _, such as team",
        ),
        (
            &["alert: A", WHEN, "severity: info", "annotations: {summary: \"{{ lables.gpu }}\", more: \"{{ gpu }}\"}"],
            "7:28: the text asks for `lables`; there is labels, alert, template, severity, cause, note, value\n  hint: did you mean `labels`?\n7:54: the text asks for `gpu`; there is labels, alert, template, severity, cause, note, value\n  hint: a label is written `labels.gpu`",
        ),
        (
            &[
                "alert: A",
                WHEN,
                "severity: info",
                "annotations: {summary: \"{% if severity == 'critical' %}{{ value | rond }}{% endif %}\"}",
            ],
            "7:28: the text cannot be rendered: unknown filter: filter rond is unknown",
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(rule(keys), expected, "{keys:?}");
    }
}

#[test]
fn parameters_keep_their_bounds() {
    let text = "template: t\nversion: 1\nparameters:\n  hot: {default: 85, min: 40, max: 110}\n  cold: {default: 200, max: 100}\nrules: [{alert: A, when: gpu_up < $hot, severity: info}]\n";
    assert_eq!(refused(text), "5:19: 200 is out of range; expected at most 100");
    let mut errors = Errors::default();
    let given = watchfire_door::read("main", "{hto: 1, hot: 300}", &mut errors).unwrap().map(&mut errors).unwrap();
    let given = given.entries().into_iter().map(|(name, _, node)| (name, node)).collect();
    read("FILE", &text.replace("200", "20"), &given, &[], &mut errors);
    assert_eq!(
        errors.to_string(),
        "main:1:7: the template has no parameter `hto`\n  hint: did you mean `hot`?\nmain:1:15: 300 is out of range; expected 40 to 110"
    );
}

/// The errors of a template with these lines from line 3, before `rules`.
fn head(lines: &str) -> String {
    refused(&format!("template: t\nversion: 1.0.0\n{lines}\nrules: [{{alert: A, when: gpu_up < 1, severity: info}}]\n"))
}

#[test]
fn a_parameter_is_of_the_kind_of_its_default() {
    let cases = [
        ("a: {default: 5m, min: 1m, max: 10m}", ""),
        ("a: {default: text, doc: d, unit: u}", ""),
        ("a: {default: 5m, min: 6m}", "4:16: 5m is out of range; expected at least 6m"),
        ("a: {default: 5m, max: 3}", "4:25: expected a duration, as the default 5m is, found \"3\""),
        ("a: {default: 5, min: 1s}", "4:24: expected a number, as the default 5 is, found \"1s\""),
        ("a: {default: x, min: 1}", "4:24: bounds need a default that is a number or a duration"),
        ("a: {default: [1]}", "4:16: expected a text, found a list"),
        ("a: {default: }", ""),
        (
            "a-b: {default: 1}",
            "4:3: \"a-b\" is no parameter name; expected letters, digits and _\n  hint: a rule writes it as `$name`",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(head(&format!("parameters:\n  {line}")), expected, "{line}");
    }
}

#[test]
fn a_value_of_another_kind_is_told_where_it_was_given() {
    let text = "template: t\nversion: 1\nparameters: {hot: {default: 85}, hold: {default: 5m, max: 1h}}\nrules: [{alert: A, when: gpu_up < $hot, for: $hold, severity: info}]\n";
    let refused = |given: &str| {
        let mut errors = Errors::default();
        let given = watchfire_door::read("main", given, &mut errors).unwrap().map(&mut errors).unwrap();
        let given = given.entries().into_iter().map(|(name, _, node)| (name, node)).collect();
        read("FILE", text, &given, &[], &mut errors);
        errors.to_string()
    };
    assert_eq!(refused("{hot: 90, hold: 10m}"), "");
    assert_eq!(
        refused("{hot: very, hold: 2h}"),
        "main:1:7: expected a number, as the default 85 is, found \"very\"\nmain:1:19: 2h is out of range; expected at most 1h"
    );
}

#[test]
fn versions_and_facts_make_sense() {
    let cases = [
        ("min_version: 0.2.0-rc.1+build", ""),
        ("min_version: v9", "3:14: \"v9\" is no version; expected numbers such as 1.2.0"),
        ("min_version: 1.2.3.4", "3:14: \"1.2.3.4\" is no version; expected numbers such as 1.2.0"),
        ("applies_to: {model: []}", "3:21: `model` names no value, so the template would be for no host"),
        ("applies_to: {model: [A*, \"H*00\"]}", "3:26: \"H*00\": `*` may stand only at the end"),
        ("interval: 0s", "3:11: `interval` must be longer than 0s"),
    ];
    for (line, expected) in cases {
        assert_eq!(head(line), expected, "{line}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_template_is_a_reason_to_panic(keys in proptest::collection::vec(
        ("alert|module|when|until|severity|scope|with|for|interval|labels|annotations|cause|missing_data|x",
         "[a-z0-9$*{}%. |]{0,12}|\\[\\]|\\{\\}|\\{warning: [0-9]{1,20}[smhdw]\\}|\"\\{\\{ [a-z]{1,6} \\| [a-z]{1,6} \\}\\}\""), 0..6)) {
        let rule: String = keys.iter().map(|(key, value)| format!("    {key}: {value}\n")).collect();
        let text = format!("template: t\nversion: 1\nparameters: {{a: {{default: 1}}}}\nrules:\n  - alert: A\n{rule}");
        let mut errors = Errors::default();
        let template = read("FILE", &text, &BTreeMap::new(), &["threshold"], &mut errors);
        proptest::prop_assert!(template.is_some() || !errors.is_empty());
        let has_module = template.is_some_and(|template| template.rules.iter().all(|rule| rule.module.is_some()));
        proptest::prop_assert!(has_module || !errors.is_empty(), "a rule without a module and without an error: {}", text);
    }
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
