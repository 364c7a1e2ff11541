//! Samples out of a Prometheus, or what speaks its HTTP API.
//!
//! An instant query with a range selector answers the samples as they were stored; `query_range` would answer values
//! drawn to its own steps, and hide gaps.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use watchfire_engine::Time;

/// The time that one request asks for: an hour of thousands of series fits into one answer.
const CHUNK: Duration = Duration::from_secs(3600);
/// How long one answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Words by which the metrics of the exporters that Watchfire knows begin.
const KNOWN: &str = "DCGM_.*|node_.*|gpu_.*|host_.*|nvml_.*|nvidia_.*|up";

/// What is asked for.
#[derive(Debug)]
pub struct Range<'a> {
    /// The server's address, such as `http://127.0.0.1:9090`.
    pub url: &'a str,
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// A selector; that of the exporters' metrics if none.
    pub selector: Option<&'a str>,
    /// Further metrics that the rules read.
    pub metrics: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

impl Range<'_> {
    /// Writes the samples as a page with times, which is then read as any other; how many there were.
    ///
    /// # Errors
    /// What went wrong, with the address.
    pub fn fetch(&self, file: &Path) -> Result<u64, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let said = |error: std::io::Error| format!("{}: {error}", file.display());
        let mut out = BufWriter::new(std::fs::File::create(file).map_err(said)?);
        let (mut at, mut samples) = (self.from, 0);
        while at < self.to {
            let end = (at + CHUNK).min(self.to);
            let text = runtime.block_on(watchfire_collector::scrape::get(&self.request(at, end), ANSWER_WAIT));
            let text = text.map_err(|why| format!("{}: {why}", self.url))?;
            samples += self.write(&text, &mut out).map_err(|why| format!("{}: {why}", self.url))?;
            at = end;
        }
        out.write_all(b"# EOF\n").and_then(|()| out.flush()).map_err(said)?;
        Ok(samples)
    }

    fn query(&self, span: Duration) -> String {
        let all = || format!("{{__name__=~\"{}\"}}", [&[KNOWN.to_owned()], self.metrics.as_slice()].concat().join("|"));
        let selector = self.selector.map_or_else(all, str::to_owned);
        format!("{selector}[{}ms]", span.as_millis())
    }

    /// Samples after `from`, up to and with `to`: the next chunk begins where this one ends.
    fn request(&self, from: Time, to: Time) -> String {
        let span = to.since(from);
        let mut url = format!("{}/api/v1/query?query=", self.url.trim_end_matches('/'));
        for byte in self.query(span).bytes() {
            let _ = write!(url, "%{byte:02X}");
        }
        let _ = write!(url, "&time={}", to.as_millis() as f64 / 1000.0);
        url
    }

    fn write(&self, text: &str, out: &mut impl std::io::Write) -> Result<u64, String> {
        let answer: Answer =
            serde_json::from_str(text).map_err(|error| format!("the answer is no JSON of Prometheus: {error}"))?;
        if answer.status != "success" {
            return Err(answer.error.unwrap_or(answer.status));
        }
        let data = answer.data.ok_or("the answer has no data")?;
        if data.kind != "matrix" {
            return Err(format!("the answer is a {}; expected a matrix", data.kind));
        }
        let mut samples = 0;
        for mut series in data.result {
            let name = series.metric.remove("__name__").unwrap_or_default();
            let labels: Vec<String> = series.metric.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
            for (time, value) in &series.values {
                writeln!(out, "{name}{{{}}} {value} {time}", labels.join(",")).map_err(|error| error.to_string())?;
                samples += 1;
            }
        }
        Ok(samples)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const RANGE: Range<'_> =
        Range { url: "http://h:9090/", from: Time::EPOCH, to: Time::EPOCH, selector: Some("up"), metrics: Vec::new() };

    #[test]
    fn samples_become_lines_and_errors_are_told() {
        let mut out = Vec::new();
        let text = r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up","job":"a\"b"},"values":[[1.5,"1"],[2,"NaN"]]}]}}"#;
        assert_eq!(RANGE.write(text, &mut out), Ok(2));
        assert_eq!(String::from_utf8(out).unwrap(), "up{job=\"a\\\"b\"} 1 1.5\nup{job=\"a\\\"b\"} NaN 2\n");
        let refused = r#"{"status":"error","error":"parse error"}"#;
        assert_eq!(RANGE.write(refused, &mut Vec::new()), Err("parse error".to_owned()));
        assert!(RANGE.write("<html>", &mut Vec::new()).is_err());
        let request = RANGE.request(Time::EPOCH, Time::from_millis(1500));
        assert_eq!(request, "http://h:9090/api/v1/query?query=%75%70%5B%31%35%30%30%6D%73%5D&time=1.5");
    }
}
