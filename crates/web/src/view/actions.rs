//! The forms of a queue and its pull requests.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{Header, PrState, PriorityName, QueueState};
use signalbox_domain::token::Scope;

use super::{QueueAddress, management};
use crate::model::{Field, Form};
use crate::visitor::Visitor;

fn form(place: &QueueAddress, id: &str, action: &str, button: &str) -> Form {
    Form {
        id: id.to_owned(),
        action: format!("/{}/queue/do", place.org),
        post: true,
        hidden: vec![
            ("action", action.to_owned()),
            ("repo", place.repo.to_string()),
            ("branch", place.branch.to_string()),
        ],
        button: button.to_owned(),
        ..Form::default()
    }
}

fn priority() -> Field {
    let named = |name: &PriorityName| (name.as_str().to_owned(), name.as_str().to_owned());
    let mut options = vec![(String::new(), "unchanged, or medium".to_owned())];
    options.extend(PriorityName::ALL.iter().map(named));
    Field {
        name: "priority",
        label: "Priority".to_owned(),
        kind: "select",
        options,
        ..Field::default()
    }
}

/// The forms of a queue.
pub(crate) fn of_queue(place: &QueueAddress, header: &Header, visitor: &Visitor) -> Vec<Form> {
    let mut forms = Vec::new();
    if visitor.may_send(Scope::QueueSubmit) {
        let mut submit = form(place, "submit", "submit", "Submit");
        "Submit a pull request".clone_into(&mut submit.title);
        submit.fields = vec![
            Field {
                name: "pr",
                label: "Pull request number".to_owned(),
                kind: "number",
                required: true,
                ..Field::default()
            },
            priority(),
        ];
        forms.push(submit);
        let mut several = form(place, "remove-several", "remove-several", "Remove");
        "Remove several pull requests".clone_into(&mut several.title);
        "Pull requests that are tested on top of them are tested again."
            .clone_into(&mut several.note);
        several.danger = true;
        let text = |name, label: &str, hint: &str| Field {
            name,
            label: label.to_owned(),
            kind: "text",
            hint: hint.to_owned(),
            required: true,
            ..Field::default()
        };
        several.fields = vec![
            text("numbers", "Pull request numbers", "Separated by spaces or commas."),
            text("confirm", "Type remove to confirm", ""),
        ];
        forms.push(several);
    }
    if visitor.may_send(Scope::QueueAdmin) {
        let why = |id: &str, required| Field {
            name: "reason",
            label: "Reason".to_owned(),
            kind: "text",
            hint: match id {
                "pause" => "Shown on every waiting pull request.",
                _ => "Recorded in the audit log.",
            }
            .to_owned(),
            required,
            ..Field::default()
        };
        let state_form = |id: &str, button: &str, title: &str, required| Form {
            title: title.to_owned(),
            note: management::note(header),
            fields: vec![why(id, required)],
            ..form(place, id, id, button)
        };
        match header.state {
            QueueState::Running => {
                forms.push(state_form("pause", "Pause", "Pause the queue", true));
                forms.push(state_form("drain", "Drain", "Drain the queue", true));
            }
            QueueState::Draining => {
                forms.push(state_form("resume", "Resume", "Resume the queue", false));
                forms.push(state_form("pause", "Pause", "Pause the queue", true));
            }
            QueueState::Paused { .. } => {
                forms.push(state_form("resume", "Resume", "Resume the queue", false));
                forms.push(state_form("drain", "Drain", "Drain the queue", true));
            }
            QueueState::SwitchingModes { .. } => {
                forms.push(state_form("pause", "Pause", "Pause the queue", true));
            }
        }
    }
    forms
}

/// The form that submits a pull request again.
pub(crate) fn again(place: &QueueAddress, prs: &[PrNumber], visitor: &Visitor) -> Vec<Form> {
    if !visitor.may_send(Scope::QueueSubmit) {
        return Vec::new();
    }
    let one = |pr: &PrNumber| {
        let mut one = form(place, &format!("again-{pr}"), "submit", &format!("Submit #{pr} again"));
        one.hidden.push(("pr", pr.to_string()));
        one
    };
    prs.iter().map(one).collect()
}

/// The forms of a pull request.
pub(crate) fn of_pr(
    place: &QueueAddress,
    pr: PrNumber,
    state: PrState,
    visitor: &Visitor,
) -> Vec<Form> {
    if !visitor.may_send(Scope::QueueSubmit) {
        return Vec::new();
    }
    let own = |id: &str, button: &str| {
        let mut form = form(place, id, id, button);
        form.hidden.push(("pr", pr.to_string()));
        form.hidden.push(("back", "pr".to_owned()));
        form
    };
    if state.is_terminal() {
        return if state == PrState::Merged {
            Vec::new()
        } else {
            vec![own("submit", "Submit again")]
        };
    }
    let mut forms = Vec::new();
    match state {
        PrState::Testing | PrState::PendingFailure => {
            forms.push(own("restart", "Restart tests"));
        }
        PrState::NotReady
        | PrState::Pending
        | PrState::TestsPassed
        | PrState::Merged
        | PrState::Failed
        | PrState::Cancelled => {}
    }
    forms.push(Form {
        title: "Change priority".to_owned(),
        fields: vec![priority()],
        ..own("priority", "Change")
    });
    forms.push(Form {
        title: "Remove from the queue".to_owned(),
        note: "Pull requests that are tested on top of it are tested again.".to_owned(),
        danger: true,
        ..own("remove", "Remove")
    });
    forms
}
