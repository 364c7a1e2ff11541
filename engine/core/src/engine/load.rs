//! Which rules are judged. What stays the same is not touched by a change of the others.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Engine, Loaded, quarantine_of};
use crate::effect::Effect;
use crate::judge::Judge;
use crate::order::{self, LoadError};
use crate::rule::{Descriptor, Program, RuleSpec};
use crate::schedule::{Due, Schedule};
use crate::tap::Tap;
use crate::time::Time;

/// A rule of a new set.
pub enum Candidate {
    /// The one that is loaded under the id of this specification, as it is: nothing of it has changed.
    Same(RuleSpec),
    /// Another, or one that has changed.
    New(RuleSpec, Box<dyn Program>),
}

impl Candidate {
    /// What it reads and writes; none where it is the one that is loaded.
    pub fn descriptor(&self) -> Option<&Descriptor> {
        match self {
            Candidate::Same(_) => None,
            Candidate::New(_, program) => Some(program.descriptor()),
        }
    }

    /// Its specification.
    pub fn spec(&self) -> &RuleSpec {
        match self {
            Candidate::Same(spec) | Candidate::New(spec, _) => spec,
        }
    }
}

/// What became of the rules when others were put in their place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Rules that were not touched.
    pub kept: usize,
    /// Rules that were there and have changed.
    pub rebuilt: usize,
    /// Rules that are new.
    pub added: usize,
    /// Rules that are gone.
    pub removed: usize,
}

impl Engine {
    /// Sets who watches the calls of a rule, or nobody; false where there is no such rule. A reload that changes
    /// the rule ends it.
    pub fn tap(&mut self, rule: &str, tap: Option<Box<dyn Tap>>) -> bool {
        let judge = self.judges.iter_mut().find(|judge| *judge.spec().id == *rule);
        judge.map(|judge| judge.tap(tap)).is_some()
    }

    /// What a rule reads, in words.
    pub fn inputs_of(&self, rule: &str) -> Vec<String> {
        let judge = self.judges.iter().find(|judge| *judge.spec().id == *rule);
        judge.map(Judge::inputs_in_words).unwrap_or_default()
    }

    /// Puts `rules` in place of those that are loaded, as if all of them had changed.
    ///
    /// # Errors
    /// As [`Engine::reload`].
    pub fn load(&mut self, now: Time, rules: Vec<Loaded>, effects: &mut Vec<Effect>) -> Result<(), LoadError> {
        let rules = rules.into_iter().map(|(spec, program)| Candidate::New(spec, program)).collect();
        self.reload(now, rules, effects).map(drop)
    }

    /// Puts `rules` in place of those that are loaded. A rule that is the same goes on as if nothing had happened.
    /// One that has changed keeps its alerts and its place in time and, where it still means the same, its windows
    /// and state; a quarantine of its is over. The alerts of a rule that is gone end.
    ///
    /// # Errors
    /// Where the rules do not fit together; then nothing is changed.
    pub fn reload(
        &mut self,
        now: Time,
        rules: Vec<Candidate>,
        effects: &mut Vec<Effect>,
    ) -> Result<Reloaded, LoadError> {
        let order = self.order(&rules)?;
        let mut old: HashMap<Arc<str>, Judge> =
            self.judges.drain(..).map(|judge| (judge.spec().id.clone(), judge)).collect();
        let mut rules: Vec<Option<Candidate>> = rules.into_iter().map(Some).collect();
        let mut done = Reloaded::default();
        for candidate in order.into_iter().filter_map(|at| rules[at].take()) {
            let before = old.remove(&candidate.spec().id);
            let judge = self.judge_of(now, candidate, before, &mut done, effects);
            self.judges.extend(judge);
        }
        let mut gone: Vec<Judge> = old.into_values().collect();
        gone.sort_by(|a, b| a.spec().id.cmp(&b.spec().id));
        done.removed = gone.len();
        gone.iter_mut().for_each(|judge| self.finish(now, judge, effects));
        self.bind_all();
        self.schedule_rules(now);
        self.tell_migrations(effects);
        Ok(done)
    }

    fn judge_of(
        &mut self,
        now: Time,
        candidate: Candidate,
        before: Option<Judge>,
        done: &mut Reloaded,
        effects: &mut Vec<Effect>,
    ) -> Option<Judge> {
        let (spec, program) = match candidate {
            Candidate::Same(_) => {
                done.kept += 1;
                return before;
            }
            Candidate::New(spec, program) => (spec, program),
        };
        *(if before.is_some() { &mut done.rebuilt } else { &mut done.added }) += 1;
        let mut judge = Judge::new(spec, program);
        if let Some(before) = before {
            if before.health().is_quarantined() {
                self.set_condition(now, quarantine_of(before.spec(), None), effects);
            }
            judge.inherit(before, now);
        }
        Some(judge)
    }

    pub(super) fn tell_migrations(&mut self, effects: &mut Vec<Effect>) {
        let told = self.judges.iter_mut().filter_map(|judge| {
            let migration = judge.take_migration()?;
            Some(Effect::StateMigrated { rule: judge.spec().id.clone(), migration })
        });
        effects.extend(told);
    }

    fn finish(&mut self, now: Time, judge: &mut Judge, effects: &mut Vec<Effect>) {
        for transition in judge.end(now, "rule removed") {
            self.changed(now, transition, effects);
        }
        self.removed.extend(judge.take_changed());
        self.gone.push(judge.spec().id.clone());
        self.groups.forget_rule(now, &judge.spec().id);
        self.set_condition(now, quarantine_of(judge.spec(), None), effects);
    }

    fn schedule_rules(&mut self, now: Time) {
        let conditions = self.schedule.at(Due::Conditions);
        self.schedule = Schedule::default();
        for (rule, judge) in self.judges.iter().enumerate() {
            let next = judge.next().unwrap_or_else(|| now.align_up(judge.spec().interval));
            self.schedule.add(Due::Rule(rule), next);
        }
        self.schedule.set(Due::Conditions, conditions);
        self.schedule.set(Due::Groups, self.groups.due());
    }

    /// Checks that rules fit together, without loading them.
    ///
    /// # Errors
    /// Where they do not.
    pub fn check(&self, rules: &[Candidate]) -> Result<(), LoadError> {
        self.order(rules).map(drop)
    }

    /// The order of evaluation of a new set.
    fn order(&self, rules: &[Candidate]) -> Result<Vec<usize>, LoadError> {
        let loaded: HashMap<&str, &Judge> = self.judges.iter().map(|judge| (&*judge.spec().id, judge)).collect();
        let described: Vec<(&str, &Descriptor)> = rules
            .iter()
            .map(|candidate| match candidate {
                Candidate::New(spec, program) => Ok((&*spec.id, program.descriptor())),
                Candidate::Same(spec) => {
                    let judge = loaded.get(&*spec.id).ok_or_else(|| LoadError::NotLoaded(spec.id.to_string()))?;
                    Ok((&*spec.id, judge.descriptor()))
                }
            })
            .collect::<Result<_, _>>()?;
        described.iter().try_for_each(|(id, descriptor)| order::check(id, descriptor))?;
        order::order(&described)
    }
}

/// Checks what can be checked of one rule alone.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_rule(spec: &RuleSpec, program: &dyn Program) -> Result<(), LoadError> {
    order::check(&spec.id, program.descriptor())
}
