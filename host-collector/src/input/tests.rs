#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::recording::Writer;
use watchfire_core::Observation;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn open(&self, name: &str, text: &str, columns: &[&str]) -> Result<Input, InputError> {
        let csv = columns.iter().map(|column| column.parse().unwrap()).collect();
        open(&self.file(name, text), &InputOptions { csv, ..InputOptions::default() })
    }

    fn read(&self, name: &str, text: &str, columns: &[&str]) -> Vec<String> {
        self.open(name, text, columns).unwrap().flat_map(|moment| shown(&moment.unwrap())).collect()
    }

    /// What is told of a file that cannot be used, without its folder.
    fn told(&self, name: &str, text: &str, columns: &[&str]) -> String {
        let told = self.open(name, text, columns).unwrap_err().to_string();
        told.replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn shown(moment: &Moment) -> Vec<String> {
    let one = |one: &Observation| {
        let Series { metric, labels, .. } = &*one.series;
        format!("{} {metric}{labels} {}", one.time.as_millis(), one.value)
    };
    moment.observations.iter().map(one).collect()
}

#[test]
fn openmetrics_families_are_merged_by_time() {
    let text =
        "# TYPE a gauge\na 1 20\na 2 10\n# TYPE b counter\nb_total 3 10.5\nb_created 1 10.5\nb_total 4 20\n# EOF\n";
    let seen = Folder::new().read("x.om", text, &[]);
    assert_eq!(seen, ["10000 a{} 2", "10500 b_total{} 3", "20000 a{} 1", "20000 b_total{} 4"]);
}

#[test]
fn prometheus_text_counts_milliseconds() {
    assert_eq!(Folder::new().read("x.prom", "a 1 20\na 2 10\n", &[]), ["10 a{} 2", "20 a{} 1"]);
}

#[test]
fn foreign_words_are_mapped_and_computed_by_moment() {
    let gpu = "{gpu=\"0\",UUID=\"u\",Hostname=\"h1\"}";
    let text = format!("DCGM_FI_DEV_FB_USED{gpu} 1 5\nDCGM_FI_DEV_FB_FREE{gpu} 3 5\n# EOF\n");
    let seen = Folder::new().read("x.om", &text, &[]);
    let labels = r#"gpu="0", host="h1", uuid="u""#;
    assert!(
        seen.contains(&format!(r#"5000 gpu_memory_used_ratio{{denominator="used+free", {labels}}} 0.25"#)),
        "{seen:?}"
    );
    assert!(seen.contains(&format!("5000 gpu_up{{{labels}}} 1")), "{seen:?}");
}

#[test]
fn gpus_with_times_of_their_own_are_not_gone() {
    let line =
        |gpu: u32, second: u32| format!("gpu_temperature_celsius{{gpu=\"{gpu}\",uuid=\"u{gpu}\"}} 50 {second}\n");
    let mut text: String = (0..20).map(|at| format!("{}{}", line(0, at * 15), line(1, at * 15 + 7))).collect();
    text.push_str(&(20..40).map(|at| line(0, at * 15)).collect::<String>());
    let seen = Folder::new().read("x.om", &format!("{text}# EOF\n"), &[]);
    let down: Vec<_> = seen.iter().filter(|one| one.contains("gpu_up") && one.ends_with(" 0")).collect();
    // Last seen at 292 s, missed from the first page after 412 s.
    assert_eq!(down.first().unwrap().as_str(), r#"420000 gpu_up{gpu="1", uuid="u1"} 0"#);
}

#[test]
fn csv_in_its_long_form() {
    let text = "\u{feff}time,metric,value,host,gpu\r\n1767225615,gpu_temperature_celsius,71,h1,0\r\n\
        2026-01-01T00:00:00Z,gpu_temperature_celsius,70,h1,0\r\n1767225600,other,,h1,\r\n1767225600,other,5,,\r\n";
    let seen = Folder::new().read("x.csv", text, &[]);
    let labels = r#"gpu="0", host="h1""#;
    assert_eq!(
        seen,
        [
            format!("1767225600000 gpu_temperature_celsius{{{labels}}} 70"),
            "1767225600000 other{} 5".to_owned(),
            format!("1767225600000 gpu_up{{{labels}}} 1"),
            format!("1767225615000 gpu_temperature_celsius{{{labels}}} 71"),
            format!("1767225615000 gpu_up{{{labels}}} 1"),
        ]
    );
}

#[test]
fn csv_in_its_wide_form_with_columns_named_anew() {
    let text = "timestamp,node,temp,DCGM_FI_DEV_SM_CLOCK,load\n10,h1,70,345,1.5\n";
    let columns = ["time=timestamp", "host=node", "gpu_temperature_celsius=temp", "metric:my_load=load"];
    let seen = Folder::new().read("x.csv", text, &columns);
    assert_eq!(
        seen,
        [
            r#"10000 gpu_temperature_celsius{host="h1"} 70"#,
            r#"10000 gpu_sm_clock_hertz{host="h1"} 345000000"#,
            r#"10000 my_load{host="h1"} 1.5"#,
        ]
    );
}

#[test]
fn recordings_stream_with_their_header_and_spans() {
    let folder = Folder::new();
    let header = Header::default().with("synthetic", "made up");
    let series = std::sync::Arc::new(Series::every("a", watchfire_core::Labels::default(), Duration::from_secs(15)));
    let time = watchfire_core::Time::from_millis(5);
    let moment = Moment { observations: vec![Observation { series, time, value: 1.0 }], ..Moment::empty(time) };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.write(&moment).unwrap();
    let text = String::from_utf8(writer.into_inner()).unwrap() + "v 0";
    let mut input = folder.open("anything", &text, &[]).unwrap();
    assert_eq!(input.header().synthetic(), Some("made up"));
    let back: Vec<_> = input.by_ref().map(Result::unwrap).collect();
    assert_eq!(back, [moment]);
    assert_eq!(input.note(), Some("line 6 is torn and was left out"));
}

#[test]
fn what_cannot_be_used_is_told_with_its_place_and_what_to_do() {
    let folder = Folder::new();
    let cases = [
        folder.told("x.om", "a 1\nb{x=y} 1 5\nc 1 5\n# EOF\n", &[]),
        folder.told("x.om", "a 1 5\n", &[]),
        folder.told("x.prom", "a 1\n", &[]),
        folder.told("x.txt", "a 1\n", &[]),
        folder.told("x.csv", "when,metric,value\n1,a,1\n", &[]),
        folder.told("x.csv", "time,value\n1,1\n", &[]),
        folder.told("x.csv", "time,metric\n1,a\n", &[]),
        folder.told("x.csv", "time,speed\n1,1\n", &[]),
        folder.told("x.csv", "time,metric,value\n1,a,1\nsoon,a,1\n3,a,1 kW\n4,,1\n5,a,1,x\n", &[]),
        folder.told("x.csv", "time,metric,value\n1,a,1\n", &["host=node"]),
        folder.told("x.rec", &format!("{MAGIC} beta\n"), &[]),
    ];
    insta::assert_snapshot!(cases.join("\n"), @r##"
    x.om:1:1: a sample without a time: a replay needs one behind every value, in seconds since 1970
    x.om:2:5: expected a text in quotes, found "y} 1 5"
    x.om: the page is incomplete: OpenMetrics ends with a line `# EOF`; was the file cut off? If it is Prometheus text, call it .prom
    x.prom:1:1: a sample without a time: a replay needs one behind every value, in milliseconds since 1970
    x.txt: unknown kind of input; expected a recording, .om, .prom or .csv
    x.csv: no column is called time; found when, metric, value; say which with --csv time=COLUMN
    x.csv: there is a column value and none called metric; say whose values they are with --csv metric:NAME=value
    x.csv: there is a column metric and none called value; say which with --csv value=COLUMN
    x.csv: no column is called like a known metric; found time, speed; say which with --csv metric:NAME=COLUMN
    x.csv:3:1: found time "soon", expected seconds or milliseconds since 1970, or 2026-01-01T00:00:00Z
    x.csv:4:3: found "1 kW", expected a number
    x.csv:5:2: no metric is named
    x.csv:6:4: 4 cells, the header has 3
    x.csv: there is no column "node"; found time, metric, value
    x.rec: line 1, column 1: found "#watchfire-recording v1 beta", expected "#watchfire-recording v1": it was made by another version
    "##);
    let missing = open(&folder.0.path().join("none.om"), &InputOptions::default()).unwrap_err().to_string();
    assert!(missing.contains("none.om: No such file"), "{missing}");
}

#[test]
fn the_size_limit_is_kept_and_many_errors_are_told_in_part() {
    let folder = Folder::new();
    let path = folder.file("x.om", "a 1 5\n# EOF\n");
    let options = InputOptions { file_bytes_max: 11, ..InputOptions::default() };
    assert!(open(&path, &options).unwrap_err().to_string().contains("more than 11 bytes"));
    assert!(open(&path, &InputOptions { file_bytes_max: 12, ..options }).is_ok());
    let told = folder.told("y.om", &format!("{}# EOF\n", "a 1\n".repeat(30)), &[]);
    assert_eq!(told.lines().count(), 21);
    assert_eq!(told.lines().last(), Some("y.om: 10 more lines cannot be used"));
}

#[test]
fn columns_are_written_as_name_and_column() {
    assert!("time".parse::<CsvColumn>().is_err());
    assert!("=a".parse::<CsvColumn>().is_err());
    let column: CsvColumn = "metric:a=b c".parse().unwrap();
    assert_eq!((column.name.as_str(), column.column.as_str()), ("metric:a", "b c"));
}

#[test]
fn samples_that_are_not_believed_are_counted() {
    let mut input = Folder::new().open("x.om", "gpu_temperature_celsius 345 5\n# EOF\n", &[]).unwrap();
    assert!(input.next().unwrap().unwrap().observations.is_empty());
    assert_eq!(input.dropped().unwrap().get(crate::mapping::Reason::Implausible), 1);
}
