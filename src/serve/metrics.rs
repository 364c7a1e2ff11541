//! Watchfire's own metrics, as exposition text.

use std::fmt::Write as _;

use watchfire_engine::Engine;

/// All of them.
pub fn text(engine: &Engine, reload: &super::LastReload) -> String {
    let status = engine.status();
    let mut out = String::new();
    gauge(&mut out, "watchfire_alerts_firing", "Alerts that fire.", status.firing as f64);
    gauge(&mut out, "watchfire_alerts_pending", "Alerts that are pending.", status.pending as f64);
    gauge(&mut out, "watchfire_series", "Series that are known.", status.series as f64);
    gauge(&mut out, "watchfire_engine_bytes", "Bytes kept for series and rules.", status.bytes as f64);
    gauge(
        &mut out,
        "watchfire_durable",
        "1 where alerts survive a restart.",
        f64::from(u8::from(status.durable.is_ok())),
    );
    gauge(
        &mut out,
        "watchfire_templates_invalid",
        "Templates that could not be loaded.",
        status.broken_templates.len() as f64,
    );
    head(&mut out, "watchfire_samples_total", "counter", "Samples taken.");
    let _ = writeln!(out, "watchfire_samples_total {}", status.samples_total);
    for (name, help, value) in lost(&status) {
        head(&mut out, name, "counter", help);
        let _ = writeln!(out, "{name} {value}");
    }
    reload.metrics(&mut out);
    rules(&mut out, &status.rules);
    shadow(&mut out, status.shadow.as_ref());
    channels(&mut out, engine);
    out
}

/// What was left out or forgotten.
fn lost(status: &watchfire_engine::Status) -> [(&'static str, &'static str, u64); 4] {
    [
        (
            "watchfire_series_refused_total",
            "Samples of series left out because the engine was full.",
            status.series_refused_total,
        ),
        ("watchfire_rows_refused_total", "Targets left out because a rule was full.", status.rows_refused_total),
        (
            "watchfire_messages_lost_total",
            "Messages and transitions lost because the storage could not be written.",
            status.messages_lost_total,
        ),
        ("watchfire_history_dropped_total", "Transitions that left the history.", status.history_dropped_total),
    ]
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn gauge(out: &mut String, name: &str, help: &str, value: f64) {
    head(out, name, "gauge", help);
    let _ = writeln!(out, "{name} {value}");
}

fn rules(out: &mut String, rules: &[watchfire_engine::RuleReport]) {
    type Read = fn(&watchfire_engine::RuleReport) -> u64;
    let kinds: [(&str, &str, &str, Read); 6] = [
        ("watchfire_rule_ticks_total", "counter", "Ticks of a rule.", |rule| rule.ticks_total),
        ("watchfire_rule_ticks_missed_total", "counter", "Ticks of a rule that came too late.", |rule| {
            rule.ticks_missed_total
        }),
        ("watchfire_rule_failures_total", "counter", "Calls of a rule that failed.", |rule| rule.failures_total),
        ("watchfire_rule_rows_refused_total", "counter", "Targets left out because the rule was full.", |rule| {
            rule.rows_refused_total
        }),
        (
            "watchfire_rule_events_unplaced_total",
            "counter",
            "Events that belong to none of the rule's targets.",
            |rule| rule.events_unplaced_total,
        ),
        ("watchfire_rule_quarantined", "gauge", "1 while a rule is quarantined.", |rule| u64::from(rule.quarantined)),
    ];
    for (name, kind, help, read) in kinds {
        head(out, name, kind, help);
        for rule in rules {
            let _ = writeln!(out, "{name}{{rule={:?}}} {}", rule.id, read(rule));
        }
    }
}

/// What templates in shadow would have done otherwise.
fn shadow(out: &mut String, shadow: Option<&watchfire_engine::ShadowStatus>) {
    let Some(shadow) = shadow else { return };
    head(
        out,
        "watchfire_shadow_differences_total",
        "counter",
        "Alerts that a rule in shadow would have told otherwise.",
    );
    for rule in &shadow.rules {
        let kinds = [
            ("only_old", rule.only_old_total),
            ("only_new", rule.only_new_total),
            ("severity", rule.severity_differs_total),
        ];
        for (kind, total) in kinds {
            let _ = writeln!(out, "watchfire_shadow_differences_total{{rule={:?},kind={kind:?}}} {total}", rule.id);
        }
    }
    let name = "watchfire_shadow_differing_seconds_total";
    head(out, name, "counter", "For how long they would have, summed over targets.");
    for rule in &shadow.rules {
        let _ = writeln!(out, "{name}{{rule={:?}}} {}", rule.id, rule.seconds_differing);
    }
}

fn channels(out: &mut String, engine: &Engine) {
    let Some(Ok(channels)) = engine.courier().map(|courier| courier.status()) else { return };
    type Read = fn(&watchfire_engine::notify::outbox::ChannelTotals) -> u64;
    let kinds: [(&str, &str, &str, Read); 3] = [
        ("watchfire_notifications_delivered_total", "counter", "Messages that a receiver has.", |totals| {
            totals.delivered
        }),
        ("watchfire_notifications_failed_total", "counter", "Messages that were given up.", |totals| totals.failed),
        ("watchfire_notifications_queued", "gauge", "Messages that wait.", |totals| totals.queued),
    ];
    for (name, kind, help, read) in kinds {
        head(out, name, kind, help);
        for channel in &channels {
            let totals = &channel.totals;
            let _ =
                writeln!(out, "{name}{{receiver={:?},channel={:?}}} {}", totals.receiver, totals.channel, read(totals));
        }
    }
}
