//! Reports for people.

use watchfire_engine::clock::rfc3339;
use watchfire_engine::door::format_duration;

use super::{Difference, Episode, Incident, Report, Score, Sight};

fn seconds(seconds: f64) -> String {
    format_duration(std::time::Duration::from_secs(seconds.max(0.0).round() as u64))
}

/// The numbers, as a table.
pub fn show_report(report: &Report) -> String {
    let mut out = format!("\n{:.2} days\n", report.days);
    out += &format!(
        "{:<44} {:<9} {:>7} {:>9} {:>10} {:>10} {:>10} {:>6}\n",
        "rule", "severity", "alerts", "a day", "firing", "median", "longest", "flaps"
    );
    for one in &report.rules {
        out += &format!(
            "{:<44} {:<9} {:>7} {:>9.2} {:>10} {:>10} {:>10} {:>6}\n",
            one.rule,
            one.severity,
            one.alerts,
            one.per_day,
            seconds(one.firing_seconds),
            seconds(one.median_seconds),
            seconds(one.longest_seconds),
            one.flaps
        );
    }
    out += &list("never fired", &report.silent);
    out += &list("fired nearly all the time", &report.always);
    for (receiver, per_day) in &report.messages_per_day {
        out += &format!("messages to {receiver}: {per_day:.2} a day\n");
    }
    for (rule, count) in &report.failures {
        out += &format!("rule {rule} failed {count} time(s)\n");
    }
    out
}

fn list(what: &str, names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("{what}: {}\n", names.join(", ")) }
}

/// The fit to incidents, and what was missed or wrong; `sights` are those of the missed, then of the false.
pub fn show_score(score: &Score, episodes: &[Episode], incidents: &[Incident], sights: &[Sight]) -> String {
    let percent = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let mut out = format!(
        "\nprecision {} ({} of {} alerts), recall {} ({} of {} incidents), F1 {}\n",
        percent(score.precision),
        score.true_alerts,
        episodes.len(),
        percent(score.recall),
        score.told,
        incidents.len(),
        percent(score.f1)
    );
    if let Some([low, median, high]) = score.lead_seconds {
        out += &format!(
            "lead time: median {median:.0} s, 10 % {low:.0} s, 90 % {high:.0} s (positive: before the incident)\n"
        );
    }
    let missed = score.missed.iter().map(|at| {
        let one = &incidents[*at];
        format!("missed  {} to {} {:?} (line {})\n", rfc3339(one.start), rfc3339(one.end), one.labels, one.line)
    });
    let wrong = score.false_alerts.iter().map(|at| format!("false   {}\n", line(&episodes[*at])));
    let mut sights = sights.iter();
    for text in missed.chain(wrong) {
        out += &text;
        let lines = sights.next().map(Sight::lines).unwrap_or_default();
        lines.iter().for_each(|line| out += &format!("        {line}\n"));
    }
    out
}

fn line(one: &Episode) -> String {
    let labels: Vec<String> = one.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let end = if one.open { "still firing".to_owned() } else { format!("to {}", rfc3339(one.end)) };
    format!("{} {end} {:<9} {} {{{}}}", rfc3339(one.start), one.severity.as_str(), one.alert, labels.join(", "))
}

/// What another version changes.
pub fn show_difference(differences: &[Difference], same: usize) -> String {
    let mut out = String::new();
    for one in differences {
        out += &match one {
            Difference::OnlyOld { old } => format!("- {}\n", line(old)),
            Difference::OnlyNew { new } => format!("+ {}\n", line(new)),
            Difference::Changed { old, new } => format!("~ {}\n  {}\n", line(old), line(new)),
        };
    }
    let count = |wanted: fn(&Difference) -> bool| differences.iter().filter(|one| wanted(one)).count();
    let gone = count(|one| matches!(one, Difference::OnlyOld { .. }));
    let new = count(|one| matches!(one, Difference::OnlyNew { .. }));
    let changed = differences.len() - gone - new;
    out += &format!("{same} the same, {changed} changed, {gone} only old, {new} only new\n");
    out
}
