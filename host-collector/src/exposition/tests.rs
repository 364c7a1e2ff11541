#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn read(page: &str, options: &Options) -> (Vec<String>, Result<Report, Refused>) {
    let mut samples = Vec::new();
    let report = parse(page.as_bytes(), options, &mut |sample| samples.push(shown(&sample)));
    (samples, report)
}

fn shown(sample: &Sample<'_>) -> String {
    let labels: Vec<_> = sample.labels.iter().map(|label| format!("{}={}", label.name, label.value)).collect();
    let time = sample.timestamp.map_or(String::new(), |time| format!(" @{time}"));
    format!("{}[{}] {}{time}", sample.name, labels.join(","), sample.value)
}

fn text(page: &str) -> (Vec<String>, Report) {
    let (samples, report) = read(page, &Options::new(Format::Text));
    (samples, report.unwrap())
}

fn errors(report: &Report) -> Vec<String> {
    report.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn one_bad_quote_costs_one_line() {
    let page = "a{x=\"1\"} 1\n\
        gitlab_token_days_remaining{name=\"MacBook Pro 14\" registry R/W\",id=\"218\"} -794\n\
        b 2\n";
    let (samples, report) = text(page);
    assert_eq!(samples, ["a[x=1] 1", "b[] 2"]);
    assert_eq!(report.error_count, 1);
    assert_eq!(errors(&report), [r#"line 2, column 51: expected ',' or '}', found "registry R/W\",id=\"218\"} -794""#]);
    let strict = Options { strict: true, ..Options::new(Format::Text) };
    assert!(matches!(read(page, &strict).1, Err(Refused::BadLine(LineError { line: 2, column: 51, .. }))));
}

#[test]
fn escapes_are_undone_and_unknown_ones_refused() {
    let page = "m{path=\"C:\\Users\\x\"} 1\nm{path=\"C:\\\\Users\\\\x\"} 1\nm{t=\"a\\nb\\\"c\\\\\"} 1\n";
    let (samples, report) = text(page);
    assert_eq!(samples, ["m[path=C:\\Users\\x] 1", "m[t=a\nb\"c\\] 1"]);
    assert_eq!(errors(&report), [r"line 1, column 11: invalid escape sequence '\U'"]);
}

#[test]
fn text_where_a_number_belongs_is_refused() {
    let page = "DCGM_FI_DEV_UUID{gpu=\"0\"} GPU-265c9814\nDCGM_FI_DRIVER_VERSION{gpu=\"0\"} 535.104.12\nok 1\n";
    let (samples, report) = text(page);
    assert_eq!(samples, ["ok[] 1"]);
    assert_eq!(report.error_count, 2);
    assert_eq!(report.errors[0].to_string(), "line 1, column 27: expected float as value, found \"GPU-265c9814\"");
}

#[test]
fn quoted_names_are_read_and_exemplars_belong_to_openmetrics() {
    let page = "{\"gpu.temp\",\"θ\"=\"x\"} 1\nm_bucket{le=\"1\"} 5 # {trace_id=\"a\"} 0.5\n";
    let (samples, report) = text(page);
    assert_eq!(samples, ["gpu.temp[θ=x] 1"]);
    assert_eq!(errors(&report), ["line 2, column 20: an exemplar in the text format: only OpenMetrics has them"]);
    let (samples, report) = read(&format!("{page}# EOF\n"), &Options::new(Format::OpenMetrics));
    assert_eq!(samples.len(), 2);
    assert_eq!(report.unwrap().error_count, 0);
}

#[test]
fn openmetrics_counts_seconds_and_must_end() {
    let options = Options::new(Format::OpenMetrics);
    let page =
        "# TYPE a counter\n# UNIT a seconds\na_total 1 1767225600.25 # {t=\"x\"} 1 1767225600\na_created 5\n# EOF\n";
    let (samples, report) = read(page, &options);
    assert_eq!(samples, ["a_total[] 1 @1767225600250", "a_created[] 5"]);
    assert_eq!(report.unwrap().error_count, 0);
    assert_eq!(read("a 1\n", &options).1, Err(Refused::Incomplete));
    assert_eq!(read("", &options).1, Err(Refused::Incomplete));
    let early = read("a 1\n# EOF\nb 2\n# EOF\n", &options);
    assert_eq!(errors(&early.1.unwrap()), ["line 2, column 1: text follows behind \"# EOF\""]);
}

#[test]
fn types_come_from_the_comments_and_created_is_no_measurement() {
    let page = "# TYPE vllm:iteration_tokens_total histogram\n\
        vllm:iteration_tokens_total_bucket{le=\"1.0\"} 1\n\
        vllm:iteration_tokens_total_created 5\n\
        # TYPE done_total counter\ndone_total 1\ndone_created 5\nplain_created 5\n";
    let mut found = Vec::new();
    let options = Options::new(Format::Text);
    parse(page.as_bytes(), &options, &mut |s| found.push((s.name.to_owned(), s.kind, s.created))).unwrap();
    let expected = [
        ("vllm:iteration_tokens_total_bucket", Kind::Histogram, false),
        ("vllm:iteration_tokens_total_created", Kind::Histogram, true),
        ("done_total", Kind::Counter, false),
        ("done_created", Kind::Unknown, true),
        ("plain_created", Kind::Unknown, false),
    ];
    assert_eq!(found, expected.map(|(name, kind, created)| (name.to_owned(), kind, created)));
}

#[test]
fn html_is_refused_and_a_torn_line_is_an_error() {
    assert_eq!(read("\n <html>", &Options::new(Format::Text)).1, Err(Refused::Html));
    let (samples, report) = text("a 1\nb 23");
    assert_eq!((samples.len(), report.error_count), (1, 1));
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_are_tolerated() {
    let (samples, report) = text("\u{feff}# TYPE a gauge\r\na 1\r\n\r\n");
    assert_eq!((samples.as_slice(), report.error_count), (&["a[] 1".to_owned()][..], 0));
}

#[test]
fn bytes_that_are_no_utf8_cost_their_line_only() {
    let mut samples = 0;
    let page = b"a{l=\"\xbd\"} 1\nb 2\n";
    let report = parse(page, &Options::new(Format::Text), &mut |_| samples += 1).unwrap();
    assert_eq!((samples, errors(&report)), (1, vec!["line 1, column 6: invalid UTF-8".to_owned()]));
}

#[test]
fn every_limit_is_kept_and_named() {
    let labels: Vec<_> = (0..=Limits::LABELS).map(|at| format!("l{at}=\"x\"")).collect();
    let long = "x".repeat(Limits::VALUE_BYTES + 1);
    let name = "n".repeat(Limits::NAME_BYTES + 1);
    let page = format!("a{{{}}} 1\nb{{l=\"{long}\"}} 1\n{name} 1\nc{{{name}=\"x\"}} 1\nok 1\n", labels.join(","));
    let (samples, report) = text(&page);
    assert_eq!(samples, ["ok[] 1"]);
    let told: Vec<_> = report.errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(
        told,
        [
            "this sample has 65 labels or more, the limit is 64",
            "the value of label l has 1025 bytes, the limit is 1024",
            "the metric name has 513 bytes, the limit is 512",
            "the label name has 513 bytes, the limit is 512",
        ]
    );
}

#[test]
fn too_many_samples_refuse_the_page_and_errors_kept_are_bounded() {
    let many = "a 1\n".repeat(usize::try_from(Limits::SAMPLES).unwrap() + 1);
    assert_eq!(read(&many, &Options::new(Format::Text)).1, Err(Refused::TooManySamples(Limits::SAMPLES)));
    let (_, report) = text(&"bad\n".repeat(1000));
    assert_eq!((report.error_count, report.errors.len()), (1000, Limits::ERRORS_KEPT));
    let huge = format!("m{{l=\"{}\n", "y".repeat(400_000));
    assert!(text(&huge).1.errors[0].message.len() < 100, "an error repeats little of what it found");
}

#[test]
fn content_types() {
    let cases = [
        (None, Ok(Format::Text)),
        (Some("text/plain; version=0.0.4; charset=utf-8"), Ok(Format::Text)),
        (Some("application/openmetrics-text; version=1.0.0"), Ok(Format::OpenMetrics)),
        (Some("text/html; charset=utf-8"), Err(())),
        (Some("application/json"), Err(())),
    ];
    for (header, expected) in cases {
        assert_eq!(Format::of_content_type(header).map_err(|_| ()), expected, "{header:?}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(page in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        for format in [Format::Text, Format::OpenMetrics] {
            let _ = parse(&page, &Options::new(format), &mut |_| {});
        }
    }

    #[test]
    fn no_near_miss_makes_it_panic(page in "([a-z_{}=\"\\\\ ,#\n\t0-9.é+-]{0,60}\n){0,5}# EOF\n") {
        for format in [Format::Text, Format::OpenMetrics] {
            let _ = parse(page.as_bytes(), &Options::new(format), &mut |_| {});
        }
    }

    #[test]
    fn what_is_written_is_read_back(value in ".{0,30}", number in proptest::num::f64::ANY) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let written = if number.is_nan() { "NaN".to_owned() } else { format!("{number}") };
        let page = format!("m{{l=\"{escaped}\"}} {written}\n");
        let mut read = Vec::new();
        parse(page.as_bytes(), &Options::new(Format::Text), &mut |sample| {
            read.push((sample.labels[0].value.clone().into_owned(), sample.value));
        }).unwrap();
        proptest::prop_assert_eq!(&read[0].0, &value);
        proptest::prop_assert!(read[0].1 == number || number.is_nan());
    }
}
