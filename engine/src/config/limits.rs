//! `limits:` and `limits_max:`: how far rules may go.

use watchfire_door::{Errors, Map, Node, nearest, parse_duration};
use watchfire_sandbox::{Changes, FIELDS, Field, Limits, Policy, Unit};

/// How far rules may go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleLimits {
    /// The limits of ordinary rules.
    pub limits: Limits,
    /// Those of large modules, and how far a template may raise any.
    pub policy: Policy,
}

/// The least memory that all rules together can be given, bytes.
const TOTAL_MEMORY_MIN: u64 = 1 << 20;
/// The most memory that all rules together can be given, bytes.
const TOTAL_MEMORY_MAX: u64 = 1 << 40;

/// Reads both keys of the main configuration.
pub(super) fn read(limits: Option<Node>, most: Option<Node>, errors: &mut Errors) -> RuleLimits {
    let mut read = RuleLimits::default();
    if let Some(most) = most {
        read.policy.most = changes(&most, errors);
    }
    let Some(mut map) = limits.as_ref().and_then(|node| node.map(errors)) else { return read };
    let policy = &mut read.policy;
    policy.large_modules = map.take("large_modules").and_then(|node| node.bool(errors)).unwrap_or(true);
    let total = map.take("total_memory_bytes");
    let total = total.and_then(|node| bounded(&node, Unit::Bytes, TOTAL_MEMORY_MIN, TOTAL_MEMORY_MAX, errors));
    policy.total_memory_bytes = total.unwrap_or(policy.total_memory_bytes);
    for (key, class) in [("large", &mut policy.large), ("python", &mut policy.python)] {
        let node = map.take(key);
        *class = node.map_or_else(|| class.clone(), |node| class.with(&changes(&node, errors)));
    }
    read.limits = read.limits.with(&fields(map, errors));
    read
}

/// A mapping of limits, such as a template's rule has.
pub(crate) fn changes(node: &Node, errors: &mut Errors) -> Changes {
    node.map(errors).map(|map| fields(map, errors)).unwrap_or_default()
}

fn fields(map: Map, errors: &mut Errors) -> Changes {
    let mut changes = Changes::default();
    for (name, place, node) in map.entries() {
        let Some(field) = Field::named(&name) else {
            let message = format!("there is no limit `{name}`");
            match nearest(&name, FIELDS.iter().map(|field| field.name)) {
                Some(near) => errors.hint(&place, message, format!("did you mean `{near}`?")),
                None => errors.hint(&place, message, "docs/limits.md lists all limits"),
            }
            continue;
        };
        if let Some(value) = bounded(&node, field.unit, field.min, field.max, errors) {
            changes.set(field, value);
        }
    }
    changes
}

fn bounded(node: &Node, unit: Unit, min: u64, max: u64, errors: &mut Errors) -> Option<u64> {
    let text = node.text(errors)?;
    let number = match unit {
        Unit::Time => parse_duration(&text).ok().and_then(|span| u64::try_from(span.as_millis()).ok()),
        _ => unit.read_number(&text),
    };
    let Some(value) = number else {
        errors.add(node.place(), format!("{text:?} is not {}", unit.expected()));
        return None;
    };
    if !(min..=max).contains(&value) {
        let (min, max) = (unit.show(min), unit.show(max));
        errors.add(node.place(), format!("{text} is out of bounds; expected {min} to {max}"));
        return None;
    }
    Some(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (RuleLimits, String) {
        let mut errors = Errors::default();
        let mut map = watchfire_door::read("w.yaml", text, &mut errors).unwrap().map(&mut errors).unwrap();
        let read = read(map.take("limits"), map.take("limits_max"), &mut errors);
        (read, errors.to_string())
    }

    #[test]
    fn each_limit_is_read_in_its_unit() {
        for field in FIELDS {
            for value in [field.min, field.max] {
                let (read, errors) = read_text(&format!("limits: {{{}: {}}}", field.name, field.unit.show(value)));
                assert_eq!((errors.as_str(), (field.get)(&read.limits)), ("", value), "{}", field.name);
            }
            for value in [field.min.checked_sub(1), field.max.checked_add(1)].into_iter().flatten() {
                let (_, errors) = read_text(&format!("limits: {{{}: {}}}", field.name, field.unit.show(value)));
                assert!(errors.contains("out of bounds"), "{} {value}: {errors}", field.name);
            }
        }
    }

    #[test]
    fn classes_grants_and_the_total_have_keys_of_their_own() {
        let text = "limits:\n  memory_bytes: 32MiB\n  wall: 100ms\n  total_memory_bytes: 1GiB\n  large_modules: false\n  \
                    large: {steps_max: 1_000_000}\n  python: {memory_bytes: 256MiB}\nlimits_max: {steps_per_row: 10000}\n";
        let (read, errors) = read_text(text);
        assert_eq!(errors, "");
        assert_eq!((read.limits.memory_bytes, read.limits.wall.as_millis()), (32 << 20, 100));
        let policy = read.policy;
        assert_eq!((policy.total_memory_bytes, policy.large_modules), (1 << 30, false));
        assert_eq!((policy.large.steps_max, policy.python.memory_bytes), (1_000_000, 256 << 20));
        assert_eq!(
            policy.most.iter().map(|(field, value)| (field.name, value)).collect::<Vec<_>>(),
            [("steps_per_row", 10_000)]
        );
    }

    #[test]
    fn mistakes_are_told_all_at_once_with_places_and_hints() {
        let (_, errors) = read_text("limits:\n  memory_byte: 1MiB\n  wall: 5\n  steps_base: 1MiB\n  notes: 65\n");
        for said in [
            "w.yaml:2:3: there is no limit `memory_byte`",
            "did you mean `memory_bytes`?",
            "w.yaml:3:9: \"5\" is not a duration such as 250ms or 30s",
            "w.yaml:4:15: \"1MiB\" is not a number of steps",
            "w.yaml:5:10: 65 is out of bounds; expected 0 to 64",
        ] {
            assert!(errors.contains(said), "{said}\n{errors}");
        }
    }
}
