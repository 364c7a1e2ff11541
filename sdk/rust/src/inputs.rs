//! Short ways to say what a rule reads.

use crate::{Aggregate, EventInput, EventStat, Input, MetricInput, Reads, Scope};

/// The newest value of a metric, required, of the scope that its name tells (`gpu_…`, `host_…`, …).
pub fn last(metric: &str) -> Input {
    window(metric, Aggregate::Last, 0)
}

/// An aggregate of a metric over the last `seconds`, required, of the scope that its name tells.
pub fn window(metric: &str, aggregate: Aggregate, seconds: u64) -> Input {
    let reads = Reads::Metric(MetricInput { name: metric.to_owned(), aggregate });
    Input { reads, scope: scope_of(metric), window_ms: seconds * 1000, required: true }
}

/// Events of a kind on a GPU (none of `codes` = all) over the last `seconds`.
pub fn events(kind: &str, codes: &[u32], stat: EventStat, seconds: u64) -> Input {
    let reads = Reads::Event(EventInput { kind: kind.to_owned(), codes: codes.to_vec(), stat });
    Input { reads, scope: Scope::Gpu, window_ms: seconds * 1000, required: true }
}

impl Input {
    /// The same input, of another scope.
    pub fn of(self, scope: Scope) -> Self {
        Input { scope, ..self }
    }

    /// The same input, without which a row can still be judged.
    pub fn optional(self) -> Self {
        Input { required: false, ..self }
    }
}

/// The scope that a metric's name tells; a GPU's where it tells none.
pub fn scope_of(metric: &str) -> Scope {
    match metric.split('_').next() {
        Some("host") => Scope::Host,
        Some("filesystem" | "disk" | "nic") => Scope::Device,
        Some("job") => Scope::Job,
        Some("rank") => Scope::Rank,
        _ => Scope::Gpu,
    }
}
