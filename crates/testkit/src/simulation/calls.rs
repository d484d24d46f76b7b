//! Calls of the API.

use std::sync::Arc;

use signalbox_domain::queue::{
    ChangeSource, Mode, Priority, ReportedTargets, RequestedState, SettingsPatch,
};
use signalbox_services::{Error, QueueChange, QueueService, SubmitOptions};

use super::world::{Authored, World};

impl World {
    /// Calls the API on a random server. The call is lost if the server dies.
    pub(super) fn ask<R>(&self, name: String, call: impl FnOnce(Arc<QueueService>) -> R)
    where
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let Some(server) = self.draw(|random| random.pick(&self.servers).map(|it| it.id)) else {
            return;
        };
        let Some(server) = self.servers.iter().find(|it| it.id == server) else { return };
        let (call, schedule) = (call(server.queues.clone()), self.schedule.clone());
        schedule.note(format!("s{} is called: {name}", server.id));
        let answered = name.clone();
        self.schedule.spawn(server.id, name, async move {
            match call.await {
                Ok(()) => schedule.note_here(format!("{answered}: done")),
                Err(error) => schedule.note_here(format!("{answered}: {error}")),
            }
        });
    }

    pub(super) fn any_pr(&self) -> Option<Authored> {
        self.draw(|random| random.pick(&self.prs).cloned())
    }

    pub(super) fn submit(&mut self) {
        if let Some(pr) = self.any_pr() {
            self.submit_one(&pr);
        }
    }

    /// Most pull requests are submitted as soon as they are opened.
    pub(super) fn open_and_submit(&mut self) {
        if let Some(pr) = self.open().filter(|_| self.draw(|random| random.per_mille(800))) {
            self.submit_one(&pr);
        }
    }

    fn submit_one(&self, pr: &Authored) {
        let (priority, no_batch) = self.draw(|random| {
            let priority = match random.below(12) {
                0 => Some(0),
                1 => Some(10),
                2 => Some(200),
                _ => None,
            };
            (priority.map(Priority::number), random.per_mille(100).then_some(true))
        });
        let (caller, repo, main) = (self.caller.clone(), self.repo.clone(), self.main.clone());
        let name = format!("submit #{} {:?} {no_batch:?}", pr.number, priority.map(|it| it.value));
        let number = pr.number;
        let options = SubmitOptions { priority, no_batch, ..SubmitOptions::default() };
        self.ask(name, |queues| async move {
            queues.submit(&caller, &repo, &main, number, options).await
        });
        if self.temper.mode == Mode::Parallel && self.draw(|random| random.per_mille(800)) {
            self.targets_of(pr);
        }
    }

    pub(super) fn report_targets(&mut self) {
        if let Some(pr) = self.any_pr() {
            self.targets_of(&pr);
        }
    }

    /// Reports the true targets, or all targets.
    fn targets_of(&self, pr: &Authored) {
        let head = self.host.inner.shown(&self.repo, pr.number).head;
        let (any_head, all) = self.draw(|random| (random.per_mille(300), random.per_mille(100)));
        let head = (!any_head).then_some(head);
        let targets =
            if all { ReportedTargets::all(head) } else { ReportedTargets::only(head, [&pr.area]) };
        let (caller, repo, main) = (self.caller.clone(), self.repo.clone(), self.main.clone());
        let number = pr.number;
        self.ask(format!("targets of #{number}"), |queues| async move {
            queues.set_targets(&caller, &repo, &main, number, targets).await
        });
    }

    pub(super) fn cancel(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        let (caller, repo, main) = (self.caller.clone(), self.repo.clone(), self.main.clone());
        self.ask(format!("cancel #{}", pr.number), |queues| async move {
            queues.cancel(&caller, &repo, &main, pr.number).await
        });
    }

    pub(super) fn restart(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        let (caller, repo, main) = (self.caller.clone(), self.repo.clone(), self.main.clone());
        self.ask(format!("restart #{}", pr.number), |queues| async move {
            queues.restart(&caller, &repo, &main, pr.number).await
        });
    }

    pub(super) fn change_settings(&mut self) {
        let settings = self.some_settings(200);
        self.update(settings, None);
    }

    pub(super) fn change_mode(&mut self) {
        let mode =
            self.draw(|random| if random.per_mille(500) { Mode::Single } else { Mode::Parallel });
        self.update(SettingsPatch { mode: Some(mode), ..SettingsPatch::default() }, None);
    }

    pub(super) fn change_state(&mut self) {
        let state = self.draw(|random| match random.below(4) {
            0 => RequestedState::Paused,
            1 => RequestedState::Draining,
            _ => RequestedState::Running,
        });
        self.update(SettingsPatch::default(), Some(state));
    }

    /// Changes settings or the state of the queue.
    pub(super) fn update(&self, settings: SettingsPatch, state: Option<RequestedState>) {
        let (caller, repo, main) = (self.caller.clone(), self.repo.clone(), self.main.clone());
        let name = match state {
            Some(state) => format!("update to {}", state.as_str()),
            None => "update settings".to_owned(),
        };
        // Terraform manages the settings, and users pause.
        let source = match state {
            Some(_) => ChangeSource::Direct,
            None => ChangeSource::Terraform,
        };
        self.ask(name, |queues| async move {
            let change = QueueChange { settings, state, reason: None, source };
            queues.update_queue(&caller, &repo, &main, change).await.map(drop)
        });
    }

    /// Delivers a hint that a pull request changed, whether it did or not. Most changes have no
    /// hint.
    pub(super) fn hint(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        let (org, repo) = (self.watch.queue().header.org, self.watch.queue().header.repo);
        self.ask(format!("hint of #{}", pr.number), |queues| async move {
            queues.pull_request_hinted(org, repo, pr.number).await
        });
    }

    /// Repeats a fact, however late.
    pub(super) fn repeat_fact(&mut self) {
        let facts = self.watch.facts();
        let Some(fact) = self.draw(|random| random.pick(&facts).cloned()) else { return };
        let queue = self.watch.reference();
        self.ask(format!("repeat {}", fact.name()), |queues| async move {
            queues.absorb(queue, fact).await
        });
    }
}
