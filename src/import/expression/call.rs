//! Functions.

use std::time::Duration;

use promql_parser::parser::{Call, Expr, MatrixSelector};

use super::super::{Refusal, selector};
use super::words::{Binds, Text, constant, number};
use super::{Value, Vector, Walk, shorten};

/// How the unit of a function's result is that of its argument.
enum Unit {
    Same,
    None,
}

/// Functions over a range that a template has, by Prometheus' names.
const RANGE: [(&str, Unit); 17] = [
    ("rate", Unit::Same),
    ("increase", Unit::Same),
    ("delta", Unit::Same),
    ("irate", Unit::Same),
    ("idelta", Unit::Same),
    ("deriv", Unit::Same),
    ("avg_over_time", Unit::Same),
    ("min_over_time", Unit::Same),
    ("max_over_time", Unit::Same),
    ("sum_over_time", Unit::Same),
    ("stddev_over_time", Unit::Same),
    ("last_over_time", Unit::Same),
    ("count_over_time", Unit::None),
    ("present_over_time", Unit::None),
    ("changes", Unit::None),
    ("resets", Unit::None),
    ("stdvar_over_time", Unit::None),
];

/// Functions of one number that Rhai has, and what it calls them.
const PLAIN: [(&str, &str); 6] =
    [("abs", "abs"), ("ceil", "ceiling"), ("floor", "floor"), ("sqrt", "sqrt"), ("exp", "exp"), ("ln", "ln")];

impl Walk {
    pub(super) fn call(&mut self, call: &Call) -> Result<Value, Refusal> {
        let name = call.func.name;
        let args: Vec<&Expr> = call.args.args.iter().map(|arg| &**arg).collect();
        if let Some((_, unit)) = RANGE.iter().find(|(known, _)| *known == name) {
            return self.range(call, name, args.first().copied(), None, matches!(unit, Unit::Same));
        }
        match (name, args.as_slice()) {
            ("quantile_over_time", [q, range]) => self.range(call, name, Some(range), Some(q), true),
            ("predict_linear", [range, ahead]) => self.range(call, name, Some(range), Some(ahead), true),
            ("time", []) => Ok(Value::Scalar { text: Text::atom("now()"), constant: None }),
            ("clamp_min", [of, low]) => self.clamp(of, Some(low), None),
            ("clamp_max", [of, high]) => self.clamp(of, None, Some(high)),
            ("clamp", [of, low, high]) => self.clamp(of, Some(low), Some(high)),
            (_, [of]) if PLAIN.iter().any(|(known, _)| *known == name) => {
                let ours = PLAIN.iter().find(|(known, _)| *known == name).map_or(name, |(_, ours)| ours);
                self.plain(ours, of)
            }
            _ => Err(refused(call)),
        }
    }

    /// A function over a range; `beside` is its number.
    fn range(
        &mut self,
        call: &Call,
        name: &str,
        range: Option<&Expr>,
        beside: Option<&Expr>,
        keeps_unit: bool,
    ) -> Result<Value, Refusal> {
        let MatrixSelector { vs, range } = match range {
            Some(Expr::MatrixSelector(range)) => range,
            Some(Expr::Subquery(subquery)) => return self.value(&Expr::Subquery(subquery.clone())),
            _ => return Err(Refusal::new(shorten(call), format!("`{name}` looks back at a range of one metric"))),
        };
        let number = match beside.map(|expr| self.value(expr)).transpose()? {
            None => None,
            Some(Value::Scalar { constant: Some(number), .. }) => Some(number),
            Some(_) => return Err(Refusal::new(shorten(call), format!("the number of `{name}` must be a constant"))),
        };
        if name == "quantile_over_time" && !number.is_some_and(|q| (0.0..=1.0).contains(&q)) {
            return Err(Refusal::new(shorten(call), "a quantile is between 0 and 1"));
        }
        let span = span(*range).ok_or_else(|| Refusal::new(shorten(call), "a window is of whole seconds"))?;
        let read = selector::convert(vs, &mut self.remarks)?;
        #[expect(clippy::float_cmp, reason = "1 is exact")]
        if name == "stdvar_over_time" && read.scale != 1.0 {
            return Err(Refusal::new(
                shorten(call),
                format!("{} has another unit here, and a variance its square", read.foreign),
            )
            .instead("compare stddev_over_time"));
        }
        let beside = number.map(|number| format!("{number:?}, ")).unwrap_or_default();
        let text = format!("promql_{name}({}, {beside}\"{}\")", read.text, span);
        let scale = if keeps_unit { read.scale } else { 1.0 };
        Ok(Value::Vector(self.read(Text::atom(text), scale, read.foreign)))
    }

    fn clamp(&mut self, of: &Expr, low: Option<&Expr>, high: Option<&Expr>) -> Result<Value, Refusal> {
        let vector = self.vector(of)?.in_their_unit();
        let mut text = vector.value.0.clone();
        for (function, limit) in [("max", low), ("min", high)] {
            let Some(limit) = limit else { continue };
            let Value::Scalar { text: limit, .. } = self.value(limit)? else {
                return Err(Refusal::new(shorten(limit), "a limit of `clamp` must be one number"));
            };
            text = format!("{function}({text}, {})", limit.0);
        }
        Ok(Value::Vector(Vector { value: Text::atom(text), ..vector }))
    }

    fn plain(&mut self, ours: &str, of: &Expr) -> Result<Value, Refusal> {
        let vector = self.vector(of)?;
        // The size of a number is the same share of it in every unit; all other functions depend on the unit.
        let vector = if ours == "abs" { vector } else { vector.in_their_unit() };
        Ok(Value::Vector(Vector { value: Text::atom(format!("{ours}({})", vector.value.0)), ..vector }))
    }

    fn vector(&mut self, expr: &Expr) -> Result<Vector, Refusal> {
        match self.value(expr)? {
            Value::Vector(vector) => Ok(vector),
            Value::Scalar { .. } => Err(Refusal::new(shorten(expr), "it is no vector")),
        }
    }
}

/// A window as an expression has it: one number and one unit.
fn span(range: Duration) -> Option<String> {
    let seconds = range.as_secs();
    let whole = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let (unit, name) = whole.into_iter().find(|(unit, _)| seconds.is_multiple_of(*unit))?;
    (range.subsec_nanos() == 0 && seconds > 0).then(|| format!("{}{name}", seconds / unit))
}

impl Value {
    /// Its value in Prometheus' unit where `scale` is 1, or in the unit of `scale`.
    #[expect(clippy::float_cmp, reason = "factors are exact, and 1 says that nothing is to be done")]
    pub(super) fn scaled(text: &Text, known: Option<f64>, scale: f64) -> Text {
        match known {
            Some(value) => number(value * scale),
            None if scale == 1.0 => text.clone(),
            None => text.with("*", Binds::Multiply, &number(scale)),
        }
    }

    pub(super) fn known(value: f64) -> Value {
        constant(value)
    }
}

/// What stands in the way of a function, and what there is in its place.
fn refused(call: &Call) -> Refusal {
    let name = call.func.name;
    let (why, instead) = match name {
        "absent" | "absent_over_time" => (
            "it asks whether there is no series at all; a row stands for a series that was seen",
            "write `missing_data: alert` in a rule over the metric: it fires for each row that goes missing; for GPUs use the template gpu-presence, for exporters `up`",
        ),
        "histogram_quantile" => (
            "an expression has no quantile of a histogram",
            "a module has: an input with the aggregate `histogram_quantile`",
        ),
        "label_replace" | "label_join" => (
            "it makes labels; rows have those of their series",
            "leave it out, or set labels at the source by `labels:`",
        ),
        "vector" | "scalar" => {
            ("it makes a vector of a number or a number of a vector", "compare with the number itself")
        }
        _ => ("a template has no such function", "write a module in Rhai or Rust"),
    };
    Refusal::new(shorten(call), format!("`{name}`: {why}")).instead(instead)
}
