//! Comparisons of floats as IEEE 754 has them, and as every other language of rules does. Rhai's own take numbers for
//! equal that differ in their last bit, and infinity for no larger than any limit.

use rhai::{Engine, FLOAT, INT};

/// Registers them; they count only where the engine's own operators are not fast.
pub fn register(engine: &mut Engine) {
    engine
        .register_fn("==", |left: FLOAT, right: FLOAT| left == right)
        .register_fn("!=", |left: FLOAT, right: FLOAT| left != right)
        .register_fn("<", |left: FLOAT, right: FLOAT| left < right)
        .register_fn("<=", |left: FLOAT, right: FLOAT| left <= right)
        .register_fn(">", |left: FLOAT, right: FLOAT| left > right)
        .register_fn(">=", |left: FLOAT, right: FLOAT| left >= right);
    engine
        .register_fn("==", |left: FLOAT, right: INT| left == right as FLOAT)
        .register_fn("!=", |left: FLOAT, right: INT| left != right as FLOAT)
        .register_fn("<", |left: FLOAT, right: INT| left < right as FLOAT)
        .register_fn("<=", |left: FLOAT, right: INT| left <= right as FLOAT)
        .register_fn(">", |left: FLOAT, right: INT| left > right as FLOAT)
        .register_fn(">=", |left: FLOAT, right: INT| left >= right as FLOAT);
    engine
        .register_fn("==", |left: INT, right: FLOAT| left as FLOAT == right)
        .register_fn("!=", |left: INT, right: FLOAT| left as FLOAT != right)
        .register_fn("<", |left: INT, right: FLOAT| (left as FLOAT) < right)
        .register_fn("<=", |left: INT, right: FLOAT| left as FLOAT <= right)
        .register_fn(">", |left: INT, right: FLOAT| left as FLOAT > right)
        .register_fn(">=", |left: INT, right: FLOAT| left as FLOAT >= right);
    engine.set_fast_operators(false);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use rhai::packages::{LogicPackage, Package};

    #[test]
    fn floats_are_compared_to_the_last_bit() {
        let mut engine = Engine::new_raw();
        LogicPackage::new().register_into_engine(&mut engine);
        register(&mut engine);
        for (text, expected) in [
            ("a > b", true),
            ("a == b", false),
            ("a != b", true),
            ("b < a && b <= a && !(b >= a)", true),
            ("i > b && i > 85 && 85 < i && !(i < b)", true),
            ("n > b || n < b || n == n || n >= 1", false),
            ("85 == b && 85 >= b && b <= 85 && b != 86", true),
        ] {
            let mut scope = rhai::Scope::new();
            let next = f64::from_bits(85f64.to_bits() + 1);
            scope.push("a", next).push("b", 85.0).push("i", f64::INFINITY).push("n", f64::NAN);
            let said = engine.eval_with_scope::<bool>(&mut scope, text).unwrap();
            assert_eq!(said, expected, "{text}");
        }
    }
}
