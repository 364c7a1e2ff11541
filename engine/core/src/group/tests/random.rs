//! Random time lines: what receivers come to believe.

use proptest::prelude::*;

use super::*;

const GPUS: u64 = 5;

/// Alerts of a message: which, in what state, how bad.
type Content = Vec<(u64, State, Severity)>;

/// What one receiver believes, from its messages alone.
#[derive(Default)]
struct Belief {
    firing: BTreeMap<u64, Severity>,
    last: BTreeMap<Arc<str>, (Content, Time)>,
}

impl Belief {
    fn hear(&mut self, sent: &Notification, repeat_interval: Duration) -> Result<(), TestCaseError> {
        prop_assert!(!sent.alerts.is_empty());
        let mut content: Content =
            sent.alerts.iter().map(|alert| (alert.fingerprint, alert.state, alert.severity)).collect();
        // By fingerprint: an alert that ended and fires again before that was told is younger, and no news.
        content.sort_by_key(|one| one.0);
        if let Some((last, time)) = self.last.insert(sent.group_key.clone(), (content.clone(), sent.time)) {
            let firing = |all: &Content| all.iter().filter(|one| one.1 == State::Firing).copied().collect::<Content>();
            let has_end = content.iter().any(|one| one.1 == State::Resolved);
            let is_same = !has_end && firing(&last) == content;
            prop_assert_eq!(is_same, sent.reason == Reason::Repeat, "{} after {:?}", words(sent), last);
            prop_assert!(!is_same || sent.time.since(time) >= repeat_interval);
        }
        for (gpu, state, severity) in content {
            match state {
                State::Firing => self.firing.insert(gpu, severity),
                _ => {
                    let known = self.firing.remove(&gpu);
                    prop_assert!(known.is_some(), "{}: the end of what was never told", words(sent));
                    known
                }
            };
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    /// Random alerts, with a restart in the middle: each receiver believes what is true once its group's times have
    /// passed, hears of no end without a beginning, and nothing twice but repeats.
    #[test]
    fn receivers_come_to_believe_what_is_true(
        script in prop::collection::vec((0i64..200, 0..GPUS, prop::option::of(prop_oneof![Just(Info), Just(Warning), Just(Critical), Just(Emergency)])), 1..60),
        waits in (0u64..60, 0u64..400),
        restart_after in 0usize..60,
    ) {
        let route = |route: Route| Route { group_wait: secs(waits.0), group_interval: secs(waits.1), repeat_interval: secs(1000), ..route };
        let root = || {
            let mut root = route(split());
            root.routes = root.routes.into_iter().map(route).collect();
            root
        };
        let (mut world, mut second, mut sent) = (World::new(root()), 0, Vec::new());
        for (step, (pause, gpu, severity)) in script.iter().enumerate() {
            second += pause;
            match severity {
                Some(severity) => world.fire(second, *gpu, *severity),
                None => world.end(second, *gpu),
            }
            if step == restart_after {
                sent.append(&mut world.sent);
                world = restarted(world, second, root());
            }
        }
        world.to(second + 400 + 60);
        sent.append(&mut world.sent);
        let mut beliefs: BTreeMap<Arc<str>, Belief> = BTreeMap::new();
        for one in &sent {
            beliefs.entry(one.receiver.clone()).or_default().hear(one, secs(1000))?;
        }
        for (receiver, is_its) in [("ops", false), ("pager", true)] {
            let truth: BTreeMap<u64, Severity> = world.alerts.iter().map(|(gpu, alert)| (*gpu, alert.severity)).filter(|(_, severity)| (*severity >= Critical) == is_its).collect();
            let believed = beliefs.remove(receiver).unwrap_or_default().firing;
            prop_assert_eq!(believed, truth, "{} after {:?}", receiver, sent.iter().map(words).collect::<Vec<_>>());
        }
    }
}
