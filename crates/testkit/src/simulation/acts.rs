//! Random actions: of authors and users on the host, and faults. Calls of the API are in `calls`.

use signalbox_domain::ids::BranchName;
use signalbox_domain::ports::Clock as _;
use signalbox_domain::queue::{Mergeability, PullRequestState};
use signalbox_domain::time::Span;

use super::world::{World, is_at_fault, outside_path};
use signalbox_conformance::fake_host::{Call, Failure};

type Act = fn(&mut World);

/// The actions and their weights.
const ACTS: &[(u32, Act)] = &[
    (30, World::submit),
    (4, World::report_targets),
    (3, World::cancel),
    (5, World::restart),
    (5, World::change_settings),
    (1, World::change_mode),
    (5, World::change_state),
    (8, World::hint),
    (8, World::repeat_fact),
    (12, World::open_and_submit),
    (3, World::push),
    (2, World::close_or_reopen),
    (2, World::toggle_draft),
    (3, World::change_dependencies),
    (2, World::toggle_mergeability),
    (1, World::retarget),
    (2, World::merge_by_hand),
    (3, World::push_target),
    (3, World::outage),
    (10, World::plan_failure),
    (2, World::compose_wrongly),
    (5, World::crash),
    (3, World::add_server),
    (2, World::pass_time),
];

impl World {
    /// Executes one random action.
    pub(super) fn act(&mut self) {
        let all = ACTS.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.draw(|random| random.below(all));
        for (weight, act) in ACTS {
            if drawn < *weight {
                return act(self);
            }
            drawn -= weight;
        }
    }

    fn push(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        let content = self.content(pr.number.0);
        self.host.inner.push(&self.repo, pr.number, &[(&pr.path, &content)]);
        self.schedule.note(format!("#{} is pushed to: {content}", pr.number));
        if is_at_fault(&content) {
            for known in self.prs.iter_mut().filter(|it| it.number == pr.number) {
                known.spotless = false;
            }
        }
    }

    fn close_or_reopen(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        self.host.inner.edit(&self.repo, pr.number, |it| {
            it.state = match it.state {
                PullRequestState::Open => PullRequestState::Closed,
                PullRequestState::Closed => PullRequestState::Open,
                PullRequestState::Merged => PullRequestState::Merged,
            };
        });
        self.schedule.note(format!("#{} is closed or reopened", pr.number));
    }

    fn toggle_draft(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        self.host.inner.edit(&self.repo, pr.number, |it| it.draft = !it.draft);
        self.schedule.note(format!("#{} is drafted or not", pr.number));
    }

    fn change_dependencies(&mut self) {
        let (Some(pr), Some(on)) = (self.any_pr(), self.any_pr()) else { return };
        let body = match self.draw(|random| random.below(4)) {
            0 => String::new(),
            1 => "Depends-On: #999".to_owned(),
            _ => format!("Depends-On: #{}", on.number),
        };
        self.host.inner.edit(&self.repo, pr.number, |it| it.body.clone_from(&body));
        self.schedule.note(format!("#{} is described as {body:?}", pr.number));
    }

    fn toggle_mergeability(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        self.host.inner.edit(&self.repo, pr.number, |it| {
            it.mergeability = match it.mergeability {
                Mergeability::Mergeable => Mergeability::NotMergeable("no approval".to_owned()),
                Mergeability::NotMergeable(_) => Mergeability::InProgress,
                Mergeability::InProgress | Mergeability::Unspecified => Mergeability::Mergeable,
            };
        });
        self.schedule.note(format!("#{} is approved or not", pr.number));
    }

    fn retarget(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        self.host.inner.edit(&self.repo, pr.number, |it| {
            let other = if it.base.as_str() == "main" { "release" } else { "main" };
            it.base = BranchName::new(other).expect("valid");
        });
        self.schedule.note(format!("#{} wants another base", pr.number));
    }

    /// Merges a pull request outside the queue, if it would have passed.
    fn merge_by_hand(&mut self) {
        let Some(pr) = self.any_pr() else { return };
        let accept = |files: &_| self.host.rules.are_good(files);
        let merged = self.host.inner.merge_by_hand(&self.repo, pr.number, accept);
        if let Some(head) = merged {
            self.pushed.insert(head);
            self.schedule.note(format!("#{} is merged by hand", pr.number));
        }
    }

    /// Pushes to the target outside the queue, without making it red.
    fn push_target(&mut self) {
        let path = outside_path(self.outside + 1);
        let mut files = self.host.inner.files(&self.repo, "main").unwrap_or_default();
        files.insert(path.clone(), "1".to_owned());
        if self.host.rules.are_good(&files) {
            self.outside += 1;
            let head = self.host.inner.push_branch(&self.repo, "main", &[(&path, "1")]);
            self.pushed.insert(head);
            self.schedule.note(format!("main is pushed to: {path}"));
        }
    }

    fn outage(&mut self) {
        let down = self.draw(|random| random.per_mille(500));
        self.host.inner.set_down(down);
        self.schedule.note(if down { "the host is down" } else { "the host is up" });
    }

    fn plan_failure(&mut self) {
        let calls = [
            Call::PullRequest,
            Call::Head,
            Call::ChangedPaths,
            Call::RequiredStatuses,
            Call::BuildCandidate,
            Call::BuildCandidate,
            Call::Land,
            Call::Land,
            Call::Land,
            Call::DeleteBranch,
            Call::TestBranches,
        ];
        let (call, nth, kind) = self
            .draw(|random| (random.pick(&calls).copied(), random.between(1, 3), random.below(5)));
        let Some(call) = call else { return };
        let failure = match kind {
            0 => Failure::Unavailable,
            1 => Failure::RateLimited(self.schedule.clock.now().plus(Span::seconds(40))),
            _ => Failure::AnswerLost,
        };
        self.host.inner.fail(call, nth, failure);
        self.schedule.note(format!("call {nth} of {call:?} will fail: {failure:?}"));
    }

    fn compose_wrongly(&mut self) {
        let call = self.draw(|random| random.pick(&[Call::BuildCandidate, Call::Land]).copied());
        let Some(call) = call else { return };
        self.host.inner.compose_wrongly(call);
        self.schedule.note(format!("the next {call:?} is composed wrongly"));
    }

    /// Kills a server at a random point. Another one starts, now or later.
    fn crash(&mut self) {
        let Some(id) = self.draw(|random| random.pick(&self.servers).map(|it| it.id)) else {
            return self.start_server();
        };
        self.schedule.note(format!("s{id} dies"));
        self.schedule.kill(id);
        self.servers.retain(|it| it.id != id);
        if self.draw(|random| random.per_mille(800)) {
            self.start_server();
        }
    }

    fn add_server(&mut self) {
        if self.servers.len() < usize::try_from(self.temper.servers).unwrap_or(1) {
            self.start_server();
        }
    }

    fn pass_time(&mut self) {
        let seconds = self.draw(|random| match random.below(10) {
            0 => random.between(3_600, 90_000),
            1..3 => random.between(600, 3_600),
            _ => random.between(10, 600),
        });
        self.schedule.clock.advance(Span::seconds(seconds));
        self.schedule.note(format!("{seconds} seconds pass"));
    }
}
