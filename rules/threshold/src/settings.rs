//! What a template may write under `with:`, and the limits that come of it.

use serde::Deserialize;
use watchfire_sdk::prelude::*;

/// As written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub metric: String,
    above: Option<Limits>,
    below: Option<Limits>,
    clear_below: Option<Limits>,
    clear_above: Option<Limits>,
    scope: Option<String>,
    aggregate: Option<String>,
    window: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    info: Option<f64>,
    warning: Option<f64>,
    critical: Option<f64>,
    emergency: Option<f64>,
}

const LEVELS: [(Level, &str); 4] = [
    (Level::Info, "info"),
    (Level::Warning, "warning"),
    (Level::Critical, "critical"),
    (Level::Emergency, "emergency"),
];

impl Limits {
    fn all(&self) -> [Option<f64>; 4] {
        [self.info, self.warning, self.critical, self.emergency]
    }
}

/// One severity's limits.
#[derive(Clone, Copy, Debug)]
struct Step {
    level: Level,
    name: &'static str,
    limit: f64,
    clear: f64,
    /// Whether `clear` is a limit of its own, at which the severity still holds.
    has_clear: bool,
}

/// The limits, mildest first.
#[derive(Debug)]
pub struct Ladder {
    steps: Vec<Step>,
    /// 1 where the metric must not be above, -1 where it must not be below.
    sign: f64,
    /// The calmest value at which anything holds.
    calm: f64,
}

impl Ladder {
    /// Whether no value is at or beyond the calmest limit. No early end and no arithmetic: this is what most of the
    /// time is spent on.
    pub fn is_calm(&self, values: &[f64]) -> bool {
        let calm = self.calm;
        let beyond = |any: bool, beyond: bool| any | beyond;
        if self.sign > 0.0 {
            !values.iter().map(|value| *value >= calm).fold(false, beyond)
        } else {
            !values.iter().map(|value| *value <= calm).fold(false, beyond)
        }
    }

    /// The severity that a value raises and the one that it holds.
    pub fn judge(&self, value: f64) -> (Level, Level) {
        let worst = |meets: &dyn Fn(&Step) -> bool| {
            self.steps.iter().rev().find(|step| meets(step)).map_or(Level::None, |step| step.level)
        };
        let raise = worst(&|step| self.sign * (value - step.limit) > 0.0);
        let hold = worst(&|step| {
            let beyond = self.sign * (value - step.clear);
            beyond > 0.0 || (step.has_clear && beyond == 0.0)
        });
        (raise, hold)
    }

    /// Which limit a value is beyond.
    pub fn words(&self, value: f64) -> String {
        let (side, calm) = if self.sign > 0.0 { ("above", "below") } else { ("below", "above") };
        match self.steps.iter().rev().find(|step| self.sign * (value - step.limit) > 0.0) {
            Some(step) => format!("is {side} {} ({}), clears {calm} {}", step.limit, step.name, step.clear),
            None => "is within its limits".to_owned(),
        }
    }
}

impl Settings {
    /// The input and the limits, or all that is wrong.
    pub fn check(&self) -> Result<(Input, Ladder), Vec<SettingError>> {
        let mut errors = Vec::new();
        let input = self.input(&mut errors);
        let ladder = self.ladder(&mut errors);
        match (input, ladder) {
            (Some(input), Some(ladder)) if errors.is_empty() => Ok((input, ladder)),
            _ => Err(errors),
        }
    }

    fn ladder(&self, errors: &mut Vec<SettingError>) -> Option<Ladder> {
        let (name, limits, clear_name, clear, sign) = match (self.above, self.below) {
            (Some(limits), None) => ("above", limits, "clear_below", self.clear_below, 1.0),
            (None, Some(limits)) => ("below", limits, "clear_above", self.clear_above, -1.0),
            (None, None) => return refuse(errors, "above", "set `above` or `below`".into()),
            (Some(_), Some(_)) => return refuse(errors, "below", "set `above` or `below`, not both".into()),
        };
        let (stray, its) =
            if sign > 0.0 { (self.clear_above, "clear_above") } else { (self.clear_below, "clear_below") };
        if stray.is_some() {
            let other = if sign > 0.0 { "below" } else { "above" };
            return refuse(errors, its, format!("goes with `{other}`; use `{clear_name}`"));
        }
        let steps = steps(&limits, &clear.unwrap_or_default(), clear_name, sign, errors);
        check_order(name, &steps, sign, errors);
        let calm = sign * steps.iter().map(|step| sign * step.clear).fold(f64::INFINITY, f64::min);
        Some(Ladder { steps, sign, calm })
    }

    fn input(&self, errors: &mut Vec<SettingError>) -> Option<Input> {
        let scope = self.scope(errors)?;
        let aggregate = self.aggregate(errors)?;
        let window_ms = self.window_ms(errors)?;
        let windowed = !matches!(aggregate, Aggregate::Last);
        if windowed && window_ms == 0 {
            let name = self.aggregate.as_deref().unwrap_or_default();
            return refuse(errors, "window", format!("`{name}` needs a window, such as 5m"));
        }
        if !windowed && window_ms > 0 {
            return refuse(errors, "window", "a window needs an aggregate, such as mean".into());
        }
        Some(Input { window_ms, ..window(&self.metric, aggregate, 0).of(scope) })
    }

    fn scope(&self, errors: &mut Vec<SettingError>) -> Option<Scope> {
        let word = self.scope.as_deref().or_else(|| self.metric.split('_').next()).unwrap_or_default();
        Some(match word {
            "host" => Scope::Host,
            "gpu" => Scope::Gpu,
            "device" | "filesystem" | "disk" | "nic" => Scope::Device,
            "job" => Scope::Job,
            "rank" => Scope::Rank,
            _ if self.scope.is_some() => {
                return refuse(errors, "scope", format!("{word:?} is none of host, gpu, device, job, rank"));
            }
            _ => {
                let message =
                    format!("the name {:?} tells no scope; set `scope` to host, gpu, device, job or rank", self.metric);
                return refuse(errors, "scope", message);
            }
        })
    }

    fn aggregate(&self, errors: &mut Vec<SettingError>) -> Option<Aggregate> {
        Some(match self.aggregate.as_deref().unwrap_or("last") {
            "last" => Aggregate::Last,
            "min" => Aggregate::Min,
            "max" => Aggregate::Max,
            "mean" => Aggregate::Mean,
            "sum" => Aggregate::Sum,
            "count" => Aggregate::Count,
            "stddev" => Aggregate::Stddev,
            "increase" => Aggregate::Increase,
            "rate" => Aggregate::Rate,
            "slope" => Aggregate::Slope,
            other => {
                let known = "last, min, max, mean, sum, count, stddev, increase, rate, slope";
                return refuse(errors, "aggregate", format!("{other:?} is none of {known}"));
            }
        })
    }

    fn window_ms(&self, errors: &mut Vec<SettingError>) -> Option<u64> {
        let Some(text) = &self.window else { return Some(0) };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit_ms = match &text[digits..] {
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => 0,
        };
        match text[..digits].parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms)) {
            Some(ms) if ms > 0 => Some(ms),
            _ => refuse(
                errors,
                "window",
                format!("{text:?} is no duration; expected a number with s, m, h or d, such as 5m"),
            ),
        }
    }
}

fn steps(limits: &Limits, clear: &Limits, clear_name: &str, sign: f64, errors: &mut Vec<SettingError>) -> Vec<Step> {
    let mut steps = Vec::new();
    for ((level, name), (limit, clear)) in LEVELS.into_iter().zip(limits.all().into_iter().zip(clear.all())) {
        let path = format!("{clear_name}.{name}");
        match (limit, clear) {
            (None, Some(_)) => {
                refuse::<()>(errors, &path, format!("there is no limit for {name}"));
            }
            (Some(limit), Some(clear)) if sign * (clear - limit) > 0.0 => {
                refuse::<()>(errors, &path, format!("{clear} is beyond the limit {limit}"));
            }
            (Some(limit), clear) => {
                steps.push(Step { level, name, limit, clear: clear.unwrap_or(limit), has_clear: clear.is_some() });
            }
            (None, None) => {}
        }
    }
    steps
}

fn check_order(name: &str, steps: &[Step], sign: f64, errors: &mut Vec<SettingError>) {
    if steps.is_empty() && errors.is_empty() {
        refuse::<()>(errors, name, "no severity is set; expected info, warning, critical or emergency".into());
    }
    for pair in steps.windows(2) {
        if sign * (pair[1].limit - pair[0].limit) <= 0.0 {
            let message = format!("{} is not beyond {} of {}", pair[1].limit, pair[0].limit, pair[0].name);
            refuse::<()>(errors, &format!("{name}.{}", pair[1].name), message);
        }
        let both = pair[0].has_clear && pair[1].has_clear;
        if both && sign * (pair[1].clear - pair[0].clear) < 0.0 {
            let message =
                format!("it clears at {}, after {}, which clears at {}", pair[1].clear, pair[0].name, pair[0].clear);
            let side = if sign > 0.0 { "clear_below" } else { "clear_above" };
            refuse::<()>(errors, &format!("{side}.{}", pair[1].name), message);
        }
    }
}

fn refuse<T>(errors: &mut Vec<SettingError>, path: &str, message: String) -> Option<T> {
    errors.push(SettingError { path: path.to_owned(), message });
    None
}
