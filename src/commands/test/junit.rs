//! Reports as JUnit's XML, which build servers read.

use std::fmt::Write as _;
use std::time::Duration;

use watchfire_engine::scenarios::{Failed, Report};

/// One suite for all scenarios; a scenario is a case, its file the case's class.
pub fn document(reports: &[Report], took: Duration) -> String {
    let failed = reports.iter().filter(|report| report.failure.is_some()).count();
    let counts = format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\"", reports.len());
    let time = format!("time=\"{:.3}\"", took.as_secs_f64());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"watchfire\" {counts} {time}>\n  <testsuite name=\"scenarios\" {counts} skipped=\"0\" {time}>\n"
    );
    reports.iter().for_each(|report| case(&mut text, report));
    text + "  </testsuite>\n</testsuites>\n"
}

fn case(text: &mut String, report: &Report) {
    let (name, file) = (escaped(&report.name), escaped(&report.file));
    let seconds = report.took.as_secs_f64();
    let _ = write!(text, "    <testcase name=\"{name}\" classname=\"{file}\" time=\"{seconds:.3}\"");
    match &report.failure {
        None => text.push_str("/>\n"),
        Some(failure) => {
            let _ = write!(text, ">\n      {}\n    </testcase>\n", failed(failure));
        }
    }
}

fn failed(failure: &Failed) -> String {
    let said = failure.text();
    let differs = matches!(failure, Failed::Differs(_));
    let first = if differs { "something else happened" } else { said.lines().next().unwrap_or_default() };
    let (kind, first, said) = (failure.kind(), escaped(first), escaped(said));
    format!("<failure type=\"{kind}\" message=\"{first}\">{said}</failure>")
}

/// As XML's text and attributes take it; characters that XML cannot hold become U+FFFD.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_what_build_servers_read() {
        let report = |name: &str, failure| Report {
            file: "a & b.yaml".into(),
            name: name.into(),
            failure,
            blessed: None,
            took: Duration::from_millis(1500),
        };
        let reports = [
            report("hot <85>", None),
            report("\u{1b}[31m\"x\"", Some(Failed::Differs("p\n+ 1m A & B".into()))),
            report("bad", Some(Failed::Invalid("f:1:1: missing key\nmore".into()))),
        ];
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="watchfire" tests="3" failures="2" errors="0" time="2.000">
  <testsuite name="scenarios" tests="3" failures="2" errors="0" skipped="0" time="2.000">
    <testcase name="hot &lt;85&gt;" classname="a &amp; b.yaml" time="1.500"/>
    <testcase name="�[31m&quot;x&quot;" classname="a &amp; b.yaml" time="1.500">
      <failure type="differs" message="something else happened">p
+ 1m A &amp; B</failure>
    </testcase>
    <testcase name="bad" classname="a &amp; b.yaml" time="1.500">
      <failure type="invalid" message="f:1:1: missing key">f:1:1: missing key
more</failure>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(document(&reports, Duration::from_secs(2)), expected);
    }
}
