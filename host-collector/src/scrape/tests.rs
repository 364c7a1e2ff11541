#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use watchfire_core::sample::is_stale_marker;

/// What the server does with one connection.
#[derive(Clone)]
enum Turn {
    /// Sends these bytes and closes.
    Send(Vec<u8>),
    /// Sends these bytes and says no more, without closing.
    Hang(Vec<u8>),
}

/// A server that does one turn for each connection; answers its address.
async fn serve(turns: Vec<Turn>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for turn in turns {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(socket.read_u8().await.unwrap());
            }
            match turn {
                Turn::Send(bytes) => socket.write_all(&bytes).await.unwrap(),
                Turn::Hang(bytes) => {
                    socket.write_all(&bytes).await.unwrap();
                    tokio::spawn(async move {
                        let _open = socket;
                        std::future::pending::<()>().await;
                    });
                }
            }
        }
    });
    format!("http://{address}/metrics")
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn ok(body: &str) -> Turn {
    Turn::Send(answer("200 OK", "content-type: text/plain; version=0.0.4\r\n", body.as_bytes()))
}

fn config(url: &str) -> ScrapeConfig {
    ScrapeConfig { host: Some("h1".to_owned()), ..ScrapeConfig::new(url) }
}

async fn scraper(turns: Vec<Turn>) -> Scraper {
    Scraper::new(config(&serve(turns).await)).unwrap()
}

fn value(report: &ScrapeReport, metric: &str) -> Option<f64> {
    report.observations.iter().find(|one| &*one.series.metric == metric).map(|one| one.value)
}

fn ended(report: &ScrapeReport) -> Vec<&str> {
    let ended = report.observations.iter().filter(|one| is_stale_marker(one.value));
    ended.map(|one| &*one.series.metric).collect()
}

#[tokio::test]
async fn a_good_page_is_taken_and_vanished_series_end() {
    let mut scraper = scraper(vec![ok("a{x=\"1\"} 1\nb 2\n"), ok("b 3\n")]).await;
    let first = scraper.scrape(Time::from_millis(1000)).await;
    assert_eq!(first.outcome, ScrapeOutcome::Complete);
    assert_eq!(
        (value(&first, "up"), value(&first, "scrape_samples"), value(&first, "a")),
        (Some(1.0), Some(2.0), Some(1.0))
    );
    let up = first.observations.iter().find(|one| &*one.series.metric == "up").unwrap();
    assert_eq!(up.series.labels, Labels::new([("host", "h1"), ("instance", scraper.instance())]));
    assert_eq!((up.time, up.series.stale_after), (Time::from_millis(1000), Duration::from_secs(45)));
    let second = scraper.scrape(Time::from_millis(16_000)).await;
    assert_eq!((ended(&second), value(&second, "b")), (vec!["a"], Some(3.0)));
}

#[tokio::test]
async fn a_failed_scrape_takes_nothing_and_ends_everything() {
    let text = "content-type: text/plain\r\n";
    let short = |head: &str| format!("HTTP/1.1 200 OK\r\n{text}{head}\r\n").into_bytes();
    let broken: Vec<(&str, Vec<u8>)> = vec![
        ("content-length larger than the body", [short("content-length: 500\r\n"), b"a 9\n".to_vec()].concat()),
        ("chunked without an end", [short("transfer-encoding: chunked\r\n"), b"4\r\na 9\n\r\n".to_vec()].concat()),
        ("500 with valid lines", answer("500 Internal Server Error", text, b"An error has occurred\n\na 9\n")),
        ("401", answer("401 Unauthorized", "", b"")),
        ("301", answer("301 Moved Permanently", "location: https://other/metrics?token=s3cret\r\n", b"")),
        ("login page", answer("200 OK", "content-type: text/html; charset=utf-8\r\n", b"<html>a 9\n")),
        ("html as text", answer("200 OK", text, b"<!DOCTYPE html>\na 9\n")),
        ("openmetrics without its end", answer("200 OK", "content-type: application/openmetrics-text\r\n", b"a 9\n")),
        ("nothing at all", Vec::new()),
    ];
    let mut told = Vec::new();
    for (what, bytes) in broken {
        let mut scraper = scraper(vec![ok("a 1\n"), Turn::Send(bytes), ok("a 2\n")]).await;
        scraper.scrape(Time::from_millis(0)).await;
        let report = scraper.scrape(Time::from_millis(15_000)).await;
        let ScrapeOutcome::Failed(failure) = &report.outcome else { unreachable!("{what}: {:?}", report.outcome) };
        assert_eq!((value(&report, "up"), value(&report, "scrape_samples")), (Some(0.0), Some(0.0)), "{what}");
        assert_eq!(ended(&report), ["a"], "{what}");
        assert_eq!(report.observations.len(), 5, "{what}: the marker and four series of its own");
        told.push(format!("{what}: {failure}"));
        let again = scraper.scrape(Time::from_millis(30_000)).await;
        assert_eq!((value(&again, "up"), value(&again, "a")), (Some(1.0), Some(2.0)), "{what}");
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    content-length larger than the body: the page is incomplete: error decoding response body: error reading a body from connection: end of file before message length reached
    chunked without an end: the page is incomplete: error decoding response body: error reading a body from connection: unexpected EOF during chunk size line
    500 with valid lines: the target answers HTTP 500
    401: the target answers HTTP 401: it wants credentials
    301: the target answers HTTP 301: it moved to https://other/metrics; redirects are not followed, put the new address into the url
    login page: the answer is an HTML page (a login page?), expected metrics
    html as text: the answer is an HTML page (a login page?), expected metrics
    openmetrics without its end: the page is incomplete: OpenMetrics ends with a line `# EOF`
    nothing at all: cannot reach the target: error sending request: client error (SendRequest): connection closed before message completed
    "#);
}

#[tokio::test]
async fn a_page_that_comes_too_late_is_not_half_taken() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\na 9\nb 9\n".to_vec();
    let url = serve(vec![ok("a 1\n"), Turn::Hang(half), Turn::Hang(Vec::new())]).await;
    let timeout = Duration::from_millis(200);
    let mut scraper = Scraper::new(ScrapeConfig { timeout, ..config(&url) }).unwrap();
    scraper.scrape(Time::from_millis(0)).await;
    for _ in 0..2 {
        let report = scraper.scrape(Time::from_millis(15_000)).await;
        assert_eq!(report.outcome, ScrapeOutcome::Failed(Failure::Timeout(timeout)));
        assert!(report.duration >= timeout && value(&report, "scrape_duration_seconds").unwrap() >= 0.2);
        assert_eq!((value(&report, "up"), value(&report, "b")), (Some(0.0), None));
    }
}

#[tokio::test]
async fn nobody_at_home_is_told_plainly() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut scraper = Scraper::new(config(&format!("http://user:s3cret@{address}/metrics"))).unwrap();
    let report = scraper.scrape(Time::EPOCH).await;
    let text = format!("{:?} {scraper:?}", report.outcome);
    assert!(matches!(report.outcome, ScrapeOutcome::Failed(Failure::Unreachable(_))), "{text}");
    assert!(text.contains("refused"), "{text}");
    let shown = format!("{:?} {:?}", report.outcome, scraper.config());
    assert!(!shown.contains("s3cret"), "{shown}");
}

/// `a 1` and a line end, 5000 times: 20,000 bytes.
const GZIP: [u8; 62] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc3, 0x31, 0x0d, 0x00, 0x00, 0x08, 0x03, 0xb0,
    0x1f, 0x15, 0x58, 0x40, 0xd2, 0xfc, 0x9b, 0x98, 0x0c, 0x9e, 0x36, 0x69, 0xf6, 0x26, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa,
    0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xbe, 0x2f, 0x76, 0xf4, 0xbe,
    0x47, 0x20, 0x4e, 0x00, 0x00,
];

#[tokio::test]
async fn the_limit_counts_unpacked_bytes() {
    let headers = "content-type: text/plain\r\ncontent-encoding: gzip\r\n";
    let turn = || Turn::Send(answer("200 OK", headers, &GZIP));
    let url = serve(vec![turn(), turn()]).await;
    let mut scraper = Scraper::new(ScrapeConfig { page_bytes: 19_999, ..config(&url) }).unwrap();
    let report = scraper.scrape(Time::EPOCH).await;
    assert_eq!(report.outcome, ScrapeOutcome::Failed(Failure::TooLarge(19_999)));
    let mut scraper = Scraper::new(ScrapeConfig { page_bytes: 20_000, ..config(&url) }).unwrap();
    let report = scraper.scrape(Time::EPOCH).await;
    assert_eq!((report.outcome, report.samples), (ScrapeOutcome::Complete, 5000));
    assert!(GZIP.len() < 200, "so the limit is not that of the packed bytes");
    assert_eq!(report.observations.iter().filter(|one| &*one.series.metric == "a").count(), 1);
}

#[tokio::test]
async fn a_torn_gzip_page_is_not_taken() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", GZIP.len() - 20);
    let bytes = [head.as_bytes(), &GZIP[..GZIP.len() - 20]].concat();
    let report = scraper(vec![Turn::Send(bytes)]).await.scrape(Time::EPOCH).await;
    assert!(matches!(report.outcome, ScrapeOutcome::Failed(Failure::Incomplete(_))), "{:?}", report.outcome);
}

#[tokio::test]
async fn a_bad_line_makes_it_partial_and_strict_refuses() {
    let page = "a 1\nb{x=\"1\"y} 2\nc 3\n";
    let url = serve(vec![ok(page), ok(page)]).await;
    let report = Scraper::new(config(&url)).unwrap().scrape(Time::EPOCH).await;
    let ScrapeOutcome::Partial { error_count: 1, errors } = &report.outcome else {
        unreachable!("{:?}", report.outcome)
    };
    assert_eq!((errors[0].line, errors[0].column), (2, 8));
    assert_eq!((value(&report, "up"), value(&report, "scrape_line_errors")), (Some(1.0), Some(1.0)));
    let mut strict = Scraper::new(ScrapeConfig { strict: true, ..config(&url) }).unwrap();
    let report = strict.scrape(Time::EPOCH).await;
    assert!(matches!(report.outcome, ScrapeOutcome::Failed(Failure::Refused(_))), "{:?}", report.outcome);
    assert_eq!((value(&report, "up"), value(&report, "a").is_some_and(f64::is_finite)), (Some(0.0), false));
}

#[tokio::test]
async fn dropped_samples_are_counted_for_the_target() {
    let page = "DCGM_FI_DEV_MEMORY_TEMP{gpu=\"0\",UUID=\"u\"} 9223372036854775794\n";
    let report = scraper(vec![ok(page)]).await.scrape(Time::EPOCH).await;
    let dropped = report.observations.iter().find(|one| &*one.series.metric == "scrape_samples_dropped_total").unwrap();
    assert_eq!((dropped.series.labels.get("reason"), dropped.value), (Some("dcgm_blank"), 1.0));
}

#[test]
fn a_scrape_can_move_between_threads() {
    fn moves<T: Send>(_: &T) {}
    let mut scraper = Scraper::new(config("http://127.0.0.1:1/metrics")).unwrap();
    moves(&scraper);
    moves(&scraper.scrape(Time::EPOCH));
}

#[test]
fn a_target_that_cannot_be_is_refused() {
    let told = |config: ScrapeConfig| Scraper::new(config).unwrap_err().to_string();
    let cases = [
        told(ScrapeConfig::new("127.0.0.1:9400/metrics")),
        told(ScrapeConfig::new("ftp://h/metrics")),
        told(ScrapeConfig { timeout: Duration::from_secs(16), ..ScrapeConfig::new("http://h/metrics") }),
    ];
    insta::assert_snapshot!(cases.join("\n"), @r#"
    the scrape url cannot be used: relative URL without a base; expected something like http://127.0.0.1:9400/metrics
    the scrape url cannot be used: found scheme "ftp", expected http or https; expected something like http://127.0.0.1:9400/metrics
    the scrape timeout (16s) must be above 0 and at most the interval (15s)
    "#);
}
