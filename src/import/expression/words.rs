//! Texts of expressions, and what is said of what cannot become one.

use promql_parser::parser::AggregateExpr;

use super::super::Refusal;
use super::{Value, shorten};

/// How tightly the outermost operator of a text binds, as in Rhai.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binds {
    Or,
    And,
    Equal,
    Compare,
    Add,
    Multiply,
    Sign,
    Power,
    Whole,
}

/// A text of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text(pub String, pub Binds);

impl Text {
    pub(super) fn atom(text: impl Into<String>) -> Self {
        Text(text.into(), Binds::Whole)
    }

    /// Whether it is a metric alone.
    pub(super) fn is_metric(&self) -> bool {
        self.1 == Binds::Whole && !self.0.contains('(')
    }

    /// In brackets, where it binds less tightly than `binds`.
    fn within(&self, binds: Binds) -> String {
        if self.1 < binds { format!("({})", self.0) } else { self.0.clone() }
    }

    /// `self op other`; the right side is bracketed where it binds no tighter, as `-` and `/` group to the left.
    pub(super) fn with(&self, op: &str, binds: Binds, other: &Text) -> Text {
        let tighter = if other.1 == binds { format!("({})", other.0) } else { other.within(binds) };
        // A comparison of a comparison, and a power of a power, are never meant without brackets.
        let left = match binds {
            Binds::Equal | Binds::Compare | Binds::Power if self.1 == binds => format!("({})", self.0),
            _ => self.within(binds),
        };
        Text(format!("{left} {op} {tighter}"), binds)
    }

    pub(super) fn negated(self) -> Text {
        Text(format!("-{}", self.within(Binds::Whole)), Binds::Sign)
    }

    pub(super) fn not(&self) -> Text {
        Text(format!("!{}", self.within(Binds::Whole)), Binds::Sign)
    }

    /// Both conditions.
    pub(super) fn and(&self, other: &Text) -> Text {
        Text(format!("{} && {}", self.within(Binds::And), other.within(Binds::And)), Binds::And)
    }

    /// Either condition.
    pub(super) fn or(&self, other: &Text) -> Text {
        Text(format!("{} || {}", self.within(Binds::Or), other.within(Binds::Or)), Binds::Or)
    }
}

/// Whether a text begins with what is read, and not with a longer name.
pub(super) fn begins_with(text: &str, read: &str) -> bool {
    text.strip_prefix(read).is_some_and(|rest| !rest.starts_with(|c: char| is_name(c) || c == '{'))
}

/// Whether a text speaks of what is read.
pub(super) fn mentions(text: &str, read: &str) -> bool {
    let ends = |at: usize| !text[..at].ends_with(is_name) && begins_with(&text[at..], read);
    text.match_indices(read).any(|(at, _)| ends(at))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// A number as Rhai reads a float: always with a point.
pub(super) fn number(value: f64) -> Text {
    let plain = format!("{value:?}");
    match value {
        _ if value.is_nan() => Text("(0.0 / 0.0)".into(), Binds::Whole),
        _ if value.is_infinite() && value > 0.0 => Text("(1.0 / 0.0)".into(), Binds::Whole),
        _ if value.is_infinite() => Text("(-1.0 / 0.0)".into(), Binds::Whole),
        _ if plain.contains('e') && !plain.split('e').next().unwrap_or_default().contains('.') => {
            let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
            signed(format!("{digits}.0e{exponent}"))
        }
        _ => signed(plain),
    }
}

fn signed(text: String) -> Text {
    let binds = if text.starts_with('-') { Binds::Sign } else { Binds::Whole };
    Text(text, binds)
}

pub(super) fn constant(value: f64) -> Value {
    Value::Scalar { text: number(value), constant: Some(value) }
}

/// A value in our unit, told in Prometheus' unit.
#[expect(clippy::float_cmp, reason = "factors are exact, and 1 says that nothing is to be done")]
pub(super) fn rescaled(value: &Text, scale: f64) -> Text {
    let whole = (1.0 / scale).round();
    if scale == 1.0 {
        value.clone()
    } else if scale < 1.0 && (whole * scale - 1.0).abs() < 1e-12 {
        value.with("*", Binds::Multiply, &number(whole))
    } else {
        value.with("/", Binds::Multiply, &number(scale))
    }
}

/// What Watchfire has of its own in the place of a sum over a host.
const COMPUTED: [(&str, &str); 4] = [
    (
        "node_cpu_seconds_total",
        "write `mean(host_cpu_busy_ratio, \"5m\")`: Watchfire computes the share of busy processor time of each host",
    ),
    (
        "node_filesystem",
        "write `filesystem_avail_ratio` or `filesystem_files_free_ratio`: Watchfire computes them of each file system",
    ),
    ("node_memory", "write `host_memory_available_ratio`: Watchfire computes it of each host"),
    ("DCGM", "give the GPUs of one job to a module that groups its rows (`group_by`)"),
];

pub(super) fn aggregation(aggregate: &AggregateExpr) -> Refusal {
    let part = shorten(aggregate);
    let own = COMPUTED.iter().find(|(metric, _)| part.contains(metric)).map(|(_, own)| *own);
    let reason = format!("`{}` puts several series together; a row stands for one", aggregate.op);
    Refusal::new(part, reason)
        .instead(own.unwrap_or("judge each series by itself, or write a module that groups its rows (`group_by`)"))
}
