//! A rule that fails: what becomes of its alerts, and how it comes back.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::{Judgement, Native, World, above, at, gpu, hit, metric, native, spec};
use watchfire_core::engine::Engine;
use watchfire_core::route::RouteTree;
use watchfire_core::{
    Batch, Descriptor, LimitHit, Outcome, Program, RuleFailure, RuleSpec, Scope, Severity, State, Target,
};

#[test]
fn a_quarantined_rule_freezes_its_alerts_and_comes_back_through_a_try_in_the_shadow() {
    let judge: Judgement = Box::new(|batch, out| {
        let second = batch.now.as_millis() / 1000;
        if (10..60).contains(&second) {
            let hit = LimitHit { limit: "steps_base", used: None, allowed: 7, unit: "steps", rows: batch.rows };
            return Err(RuleFailure::Limit(hit));
        }
        // Before it fails it fires; as soon as it answers again it would resolve.
        if second < 10 {
            out.hits.push(hit(0, Severity::Critical, 1.0));
        }
        Ok(())
    });
    let mut world = World::new(vec![(spec("R", 0), native(vec![metric("gpu_x", Scope::Gpu)], judge))]);
    for second in (0..=120).step_by(5) {
        world.sample(second, "gpu_x", gpu(0), 1.0);
        world.tick_to(second);
        let alert = world.engine.alerts().find(|view| &*view.alert == "R");
        let status = world.engine.rules().next().unwrap();
        match second {
            0..=20 => assert!(!alert.unwrap().stale, "second {second}"),
            25 => assert_eq!(status.limit_hits.get("steps_base"), Some(&3)),
            _ => {}
        }
        if status.quarantined {
            let alert = world.engine.alerts().find(|view| &*view.alert == "R").unwrap();
            assert!(alert.stale && alert.state == State::Firing, "second {second}: frozen and marked");
        }
    }
    let told = world.transitions();
    let named = |name: &str| told.iter().filter(|t| t.1 == name).map(|t| (t.0, t.3)).collect::<Vec<_>>();
    assert_eq!(named("WatchfireRuleQuarantined"), [(25, State::Firing), (115, State::Resolved)], "{told:?}");
    assert_eq!(named("R"), [(0, State::Firing), (120, State::Resolved)], "the try at 115 changed nothing: {told:?}");
}

#[test]
fn evidence_is_asked_for_within_bounds_and_no_more_once_it_fails() {
    struct Wordy {
        inner: Native,
        asked: Arc<std::sync::atomic::AtomicU32>,
        fails: bool,
    }
    impl Program for Wordy {
        fn descriptor(&self) -> &Descriptor {
            self.inner.descriptor()
        }
        fn on_targets(&mut self, targets: &[Target]) -> Result<(), RuleFailure> {
            self.inner.on_targets(targets)
        }
        fn evaluate(&mut self, batch: &Batch<'_>, out: &mut Outcome) -> Result<(), RuleFailure> {
            self.inner.evaluate(batch, out)
        }
        fn explain(&mut self, _: u32) -> Result<Option<String>, RuleFailure> {
            self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if self.fails { Err(RuleFailure::Trap("unreachable".into())) } else { Ok(None) }
        }
    }
    for (fails, expected) in [(false, Outcome::NOTES_MAX as u32), (true, 1)] {
        let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let inner = native(vec![metric("gpu_x", Scope::Gpu)], above(0.0, Severity::Warning));
        let wordy = Wordy { inner, asked: asked.clone(), fails };
        let mut world = World { engine: Engine::new(RouteTree::to("ops")), effects: Vec::new() };
        let rules: Vec<(RuleSpec, Box<dyn Program>)> = vec![(spec("R", 0), Box::new(wordy))];
        world.engine.load(at(0), rules, &mut world.effects).unwrap();
        for index in 0..100 {
            world.sample(0, "gpu_x", gpu(index), 1.0);
        }
        world.tick_to(5);
        let fired = world.transitions().iter().filter(|t| t.3 == State::Firing).count();
        assert_eq!(
            (fired, asked.load(std::sync::atomic::Ordering::Relaxed)),
            (100, expected),
            "all alert nevertheless"
        );
        let failures = world.engine.rules().next().unwrap().counts.explain_failures_total;
        assert_eq!(failures, u64::from(fails));
    }
}
