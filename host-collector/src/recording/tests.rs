#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use watchfire_core::{Labels, Series};

use super::*;

fn read(text: &str) -> (Vec<Moment>, Option<String>, Option<String>) {
    let mut reader = match Reader::new(text.as_bytes()) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), None, Some(error.to_string())),
    };
    let (mut moments, mut failed) = (Vec::new(), None);
    for moment in reader.by_ref() {
        match moment {
            Ok(moment) => moments.push(moment),
            Err(error) => failed = Some(error.to_string()),
        }
    }
    (moments, reader.note().map(str::to_owned), failed)
}

fn write(header: &Header, moments: &[Moment]) -> String {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    moments.iter().for_each(|moment| writer.write(moment).unwrap());
    String::from_utf8(writer.into_inner()).unwrap()
}

fn example() -> Vec<Moment> {
    let labels = Labels::new([("gpu", "0"), ("host", "h1")]);
    let stale_after = Duration::from_secs(45);
    let series = Arc::new(Series { metric: "gpu_temperature_celsius".into(), labels: labels.clone(), stale_after });
    let odd = Arc::new(Series { metric: "odd.name".into(), labels: Labels::new([("θ", "a\"b\\c\nd")]), stale_after });
    let at = |millis, values: &[(&Arc<Series>, f64)], events: Vec<Occurrence>| {
        let time = Time::from_millis(millis);
        let observation = |&(series, value): &(&Arc<Series>, f64)| Observation { series: series.clone(), time, value };
        Moment { time, observations: values.iter().map(observation).collect(), events }
    };
    let lost = |job: Option<&str>| Occurrence {
        kind: "xid".into(),
        labels: labels.clone(),
        time: Time::from_millis(2000),
        code: 79,
        job: job.map(Into::into),
    };
    vec![
        at(1000, &[(&series, 71.5), (&odd, f64::INFINITY)], vec![]),
        at(2000, &[(&series, f64::from_bits(0x7ff0_0000_0000_0002))], vec![lost(None), lost(Some("job 7"))]),
        at(3000, &[], vec![]),
    ]
}

#[test]
fn it_reads_well_and_reads_back() {
    let header = Header::default().with("host", "h1").with("injected", "GPU 3: lost").with("injected", "GPU 5: hot");
    let text = write(&header, &example());
    insta::assert_snapshot!(text, @r#"
    #watchfire-recording v1
    # host: h1
    # injected: GPU 3: lost
    # injected: GPU 5: hot
    s 0 45000 gpu_temperature_celsius{gpu="0",host="h1"}
    s 1 45000 {"odd.name","θ"="a\"b\\c\nd"}
    t 1000
    v 0 71.5
    v 1 +Inf
    t 2000
    v 0 stale
    e xid 79 {gpu="0",host="h1"}
    e xid 79 {gpu="0",host="h1"} "job 7"
    t 3000
    "#);
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    assert_eq!(reader.header(), &header);
    assert_eq!(reader.header().injected().count(), 2);
    assert_eq!(reader.header().synthetic(), None);
    let back: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(format!("{back:?}"), format!("{:?}", example()));
    assert_eq!(reader.note(), None);
}

#[test]
fn a_torn_end_is_left_out_and_told_wherever_it_is_torn() {
    let text = write(&Header::default(), &example());
    let body = text.find("t 1000").unwrap();
    let whole = format!("{:?}", example());
    for end in body..text.len() {
        let torn = !text[..end].ends_with('\n');
        if !text.is_char_boundary(end) {
            continue;
        }
        let (moments, note, failed) = read(&text[..end]);
        assert_eq!((note.is_some(), failed), (torn, None), "cut at {end}");
        for moment in &moments {
            for observation in &moment.observations {
                assert!(whole.contains(&format!("{observation:?}")), "cut at {end}: {observation:?}");
            }
        }
    }
}

#[test]
fn joined_recordings_begin_anew_and_a_torn_one_is_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rec");
    let header = Header::default().with("host", "h1");
    let mut moments = example();
    append_to(&path, &header).unwrap().write(&moments[0]).unwrap();
    // The crash tears a value: 7 is no 71.5.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.strip_suffix("1.5\nv 1 +Inf\n").unwrap()).unwrap();
    append_to(&path, &header).unwrap().write(&moments[1]).unwrap();
    let (back, note, failed) = read(&std::fs::read_to_string(&path).unwrap());
    moments[0].observations.clear();
    assert_eq!(format!("{back:?}"), format!("{:?}", &moments[..2]));
    assert_eq!((note, failed), (None, None));
}

#[test]
fn nothing_of_a_long_torn_line_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rec");
    std::fs::write(&path, format!("{MAGIC}\ns 0 1 a{{b=\"{}", "x".repeat(200_000))).unwrap();
    drop(append_to(&path, &Header::default()).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{MAGIC}\n{MAGIC}\n"));
    std::fs::write(&path, &MAGIC[..9]).unwrap();
    drop(append_to(&path, &Header::default()).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{MAGIC}\n"));
    std::fs::write(&path, "somebody's letter").unwrap();
    assert!(append_to(&path, &Header::default()).unwrap_err().to_string().contains("is no recording"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's letter");
}

#[test]
fn mistakes_are_told_with_their_place() {
    let told = |body: &str| read(&format!("{MAGIC}\n{body}\n")).2.unwrap();
    let cases = [
        read("hello\n").2.unwrap(),
        read("#watchfire-recording v9\n").2.unwrap(),
        read("").2.unwrap(),
        told("x 1"),
        told("t soon"),
        told("t 5\nt 4"),
        told("v 0 1"),
        told("s 0 1000 a\nv 0 1"),
        told("s 0 1000 a\nt 1\nv 0 1,5"),
        told("s 0 1000 a{b=\"c\\d\"}"),
        told("s 0 1000 a{b=\"c\"} d"),
        told("s zero 1000 a"),
        told("t 1\ne xid many {}"),
        told("t 1\ne xid 79 {} job"),
    ];
    insta::assert_snapshot!(cases.join("\n"), @r##"
    line 1, column 1: this is no recording: expected "#watchfire-recording v1" as the first line
    line 1, column 1: found "#watchfire-recording v9", expected "#watchfire-recording v1": it was made by another version
    line 0, column 1: this is no recording: expected "#watchfire-recording v1" as the first line
    line 2, column 1: found "x", expected s, t, v, e or #
    line 2, column 3: found "soon", expected milliseconds since 1970
    line 3, column 3: time goes back from 5 to 4
    line 2, column 3: series "0" was never named by a line "s"
    line 3, column 1: expected a line "t" before it
    line 4, column 5: found "1,5", expected a number
    line 2, column 16: invalid escape sequence '\d'
    line 2, column 18: found " d" behind the series
    line 2, column 3: expected "s NUMBER STALE_MS SERIES"
    line 3, column 3: expected "e KIND CODE {LABELS}"
    line 3, column 12: expected a text in quotes, found "job"
    "##);
}

#[test]
fn limits_are_kept() {
    let long = format!("{MAGIC}\ns 0 1 a{{b=\"{}\"}}\n", "x".repeat(LINE_BYTES_MAX));
    assert!(read(&long).2.unwrap().contains("more than 131072 bytes"));
    let headers = format!("{MAGIC}\n{}", "# a: b\n".repeat(HEADER_MAX + 1));
    assert_eq!(read(&headers).2.unwrap(), "line 66, column 1: more than 64 header lines");
    let values = format!("{MAGIC}\ns 0 1 a\nt 1\n{}", "v 0 1\n".repeat(MOMENT_MAX + 1));
    assert!(read(&values).2.unwrap().contains("more than 2000000 values at one moment"));
    let series = (0..=SERIES_MAX).map(|at| format!("s {at} 1 a\n")).collect::<String>();
    assert!(read(&format!("{MAGIC}\n{series}")).2.unwrap().contains("more than 1000000 series"));
}

#[test]
fn what_cannot_be_written_is_refused() {
    let header = Header::default().with("a:b", "c");
    assert!(Writer::new(Vec::new(), &header).is_err());
    let mut moment = example().remove(1);
    moment.events[0].kind = "two words".into();
    assert!(Writer::new(Vec::new(), &Header::default()).unwrap().write(&moment).is_err());
}

fn any_moments() -> impl Strategy<Value = Vec<Moment>> {
    let series = ("[a-z_:.é]{1,8}", prop::collection::btree_map("[a-zé_]{1,4}", ".{1,6}", 0..3), 0u64..100_000);
    let series = series.prop_map(|(metric, labels, stale)| {
        Arc::new(Series {
            metric: metric.into(),
            labels: Labels::new(labels),
            stale_after: Duration::from_millis(stale),
        })
    });
    let moment = (0i64..5000, prop::collection::vec((series, any::<u64>()), 0..5));
    prop::collection::vec(moment, 0..6).prop_map(|steps| {
        let mut millis = 0;
        let mut moment = |(step, values): (i64, Vec<(Arc<Series>, u64)>)| {
            millis += step;
            let time = Time::from_millis(millis);
            let observation = |(series, bits)| Observation { series, time, value: f64::from_bits(bits) };
            Moment { time, observations: values.into_iter().map(observation).collect(), events: Vec::new() }
        };
        steps.into_iter().map(&mut moment).collect()
    })
}

proptest! {
    #[test]
    fn everything_written_reads_back_to_the_bit(moments in any_moments()) {
        let (back, note, failed) = read(&write(&Header::default(), &moments));
        prop_assert_eq!((note, failed), (None, None));
        prop_assert_eq!(back.len(), moments.len());
        for (one, other) in back.iter().zip(&moments) {
            prop_assert_eq!(one.time, other.time);
            let bits = |moment: &Moment| -> Vec<_> {
                let values = moment.observations.iter();
                values.map(|one| (one.series.clone(), one.time, one.value.to_bits())).collect()
            };
            prop_assert_eq!(bits(one), bits(other));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(body in "([stve#] [0-9a-z{}\"=, .-]{0,20}\n){0,8}") {
        let _ = read(&format!("{MAGIC}\n{body}"));
    }
}
