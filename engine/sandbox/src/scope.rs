//! Words of the contract on their way into and out of scripts.

use watchfire_core::window::PromQl;
use watchfire_core::{Aggregate, EventStat, Scope};

/// Before the name of a function of Prometheus.
pub const PROMQL: &str = "promql_";

fn promql(name: &str, argument: Option<f64>) -> Result<Aggregate, String> {
    let function = PromQl::named(name.trim_start_matches(PROMQL), argument);
    function.map(Aggregate::PromQl).ok_or_else(|| {
        format!(
            "there is no `{name}` that Prometheus has over a range, or its number is missing, too much or no quantile"
        )
    })
}

/// The aggregate with a name; `quantile` needs its argument.
pub fn aggregate(name: &str, argument: Option<f64>) -> Result<Aggregate, String> {
    Ok(match (name, argument) {
        ("last", None) => Aggregate::Last,
        ("min", None) => Aggregate::Min,
        ("max", None) => Aggregate::Max,
        ("mean", None) => Aggregate::Mean,
        ("sum", None) => Aggregate::Sum,
        ("count", None) => Aggregate::Count,
        ("stddev", None) => Aggregate::Stddev,
        ("increase", None) => Aggregate::Increase,
        ("rate", None) => Aggregate::Rate,
        ("slope", None) => Aggregate::Slope,
        ("quantile", Some(q)) if (0.0..=1.0).contains(&q) => Aggregate::Quantile(q),
        ("histogram_quantile", Some(q)) if (0.0..=1.0).contains(&q) => Aggregate::HistogramQuantile(q),
        (name, argument) if name.starts_with(PROMQL) => promql(name, argument)?,
        ("quantile" | "histogram_quantile", _) => return Err(format!("`{name}` needs a quantile between 0 and 1")),
        _ => {
            return Err(format!(
                "{name:?} is none of last, min, max, mean, sum, count, stddev, increase, rate, slope, quantile, histogram_quantile"
            ));
        }
    })
}

/// The question about events with a name.
pub fn event_stat(name: &str) -> Result<EventStat, String> {
    Ok(match name {
        "count" => EventStat::Count,
        "age" => EventStat::Age,
        "last_code" => EventStat::LastCode,
        "distinct_jobs" => EventStat::DistinctJobs,
        _ => return Err(format!("{name:?} is none of count, age, last_code, distinct_jobs")),
    })
}

/// The scope with a name.
pub fn scope(name: &str) -> Result<Scope, String> {
    let known = || Scope::ALL.map(Scope::as_str).join(", ");
    Scope::ALL
        .into_iter()
        .find(|scope| scope.as_str() == name)
        .ok_or_else(|| format!("{name:?} is none of {}", known()))
}
