//! An agent that embeds the engine: it pushes what it reads, lets time pass, and reads the alerts.
//!
//! Run it with `cargo run --example embed`. Here the readings are made up and time is a number, so that it ends by
//! itself; an agent would read its sensors and its clock.

use std::time::Duration;

use watchfire_engine::{BuildError, Engine, Labels, Output, Time};

/// A rule of the agent's own; it could come from a file as well: `.templates("/etc/agent/templates")`.
const TEMPLATE: &str = r#"
template: agent
version: 1.0.0
rules:
  - alert: FanStopped
    when: "gpu_fan_ratio < 0.05 && gpu_temperature_celsius > 60"
    for: 30s
    severity: critical
    cause: hardware
    annotations: {summary: "fan of GPU {{ labels.gpu }} on {{ labels.host }} stands still{% if note %}: {{ note }}{% endif %}"}
"#;

fn main() -> Result<(), BuildError> {
    let every = Duration::from_secs(10);
    let mut engine =
        Engine::builder().template_text("agent.yaml", TEMPLATE).shipped_templates(&["gpu-thermal"]).build()?;
    let gpu = Labels::new([("host", "node-7"), ("gpu", "0"), ("uuid", "GPU-0")]);
    let series =
        (engine.series("gpu_fan_ratio", gpu.clone(), every), engine.series("gpu_temperature_celsius", gpu, every));
    let (Some(fan), Some(heat)) = series else { return Ok(()) };

    for second in (0..120).step_by(10) {
        let now = Time::from_millis(second * 1000);
        let stopped = second >= 40;
        engine.push(now, &[(fan, if stopped { 0.0 } else { 0.6 }), (heat, if stopped { 75.0 } else { 55.0 })]);
        for output in engine.advance(now) {
            if let Output::Alert { alert, .. } = output {
                println!("{second:>3} s  {:<8} {}", alert.view.state, alert.summary());
            }
        }
    }
    println!("{} alert(s) firing at the end", engine.alerts().len());
    Ok(())
}
