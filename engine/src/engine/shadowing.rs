//! Templates that run in shadow of those that watch.

use watchfire_core::{Effect, Event, LoadError, Occurrence, Time};

use super::Engine;
use crate::catalog::Catalog;
use crate::shadow::Shadow;

impl Engine {
    /// What is to run in shadow begins with the rules that watch.
    pub(super) fn begin_shadow(&mut self, now: Time) {
        let Some(catalog) = self.pending_shadow.take() else { return };
        self.load_shadow(now, catalog);
    }

    fn load_shadow(&mut self, now: Time, catalog: Catalog) {
        let shadow = self.shadow.get_or_insert_with(|| Box::new(Shadow::new()));
        // What could be wrong was checked when the catalogue was made.
        if let Err(error) = shadow.load(now, catalog, &self.core) {
            tracing::error!(%error, "the templates in shadow could not be loaded");
        }
    }

    /// Whether what is to run in shadow fits together.
    pub(super) fn check_shadow(&self, catalog: Option<&Catalog>) -> Result<(), LoadError> {
        match (catalog, &self.shadow) {
            (None, _) => Ok(()),
            (Some(catalog), Some(shadow)) => shadow.check(catalog),
            (Some(catalog), None) => Shadow::new().check(catalog),
        }
    }

    pub(super) fn set_shadow(&mut self, now: Time, catalog: Option<Catalog>) {
        match catalog {
            Some(catalog) => self.load_shadow(now, catalog),
            None => self.shadow = None,
        }
    }

    /// Hands the samples at hand to both.
    pub(super) fn take_samples(&mut self, now: Time) {
        self.core.step(now, Event::Samples(&self.samples), &mut self.effects);
        if let Some(shadow) = &mut self.shadow {
            shadow.take(now, &self.samples, &self.core);
        }
    }

    /// Hands an event to both.
    pub(super) fn take_event(&mut self, now: Time, event: Occurrence) {
        if let Some(shadow) = &mut self.shadow {
            shadow.happened(now, event.clone());
        }
        self.core.step(now, Event::Occurred(event), &mut self.effects);
    }

    /// Lets deadlines of both pass without judging.
    pub(super) fn pass_over(&mut self, before: Time) {
        self.core.pass_over(before);
        if let Some(shadow) = &mut self.shadow {
            shadow.pass_over(before);
        }
    }

    pub(super) fn note_for_shadow(&mut self, effects: &[Effect]) {
        let Some(shadow) = &mut self.shadow else { return };
        for effect in effects {
            if let Effect::Transition(transition) = effect {
                shadow.note(transition);
            }
        }
    }
}
