//! The form of the settings of a queue, and two people who change them.

use std::collections::BTreeSet;

use signalbox_domain::queue::{ChangeSource, EffectClass, Mode, SETTINGS, SettingsPatch};
use signalbox_domain::time::Span;
use signalbox_services::{Error, QueueChange, SubmitOptions};
use signalbox_simulator::SimulationError;

use crate::support::{Browser, House, calc, main_branch};

const PATH: &str = "/acme/queue/settings?repo=git.test%2Facme%2Fcalc&branch=main";
const SAVE: &str = "/acme/queue/settings";

async fn house() -> House {
    let house = House::new().await;
    let queues = &house.pages.queues;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let made =
        queues.create_queue(caller, &repo, &branch, Mode::Single, Some(2), ChangeSource::Direct);
    made.await.expect("a queue");
    house.settle().await;
    house
}

/// The version that the form of a preview carries.
async fn version(browser: &Browser<'_>) -> String {
    let page = browser.get(&format!("{PATH}&concurrency=9")).await;
    page.between("name=\"version\" value=\"", "\"").to_owned()
}

async fn slots(house: &House) -> u32 {
    let queue = house.pages.queues.queue(&house.caller, &calc(), &main_branch()).await;
    queue.expect("a queue").header.settings.concurrency
}

fn form<'a>(slots: &'a str, version: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("repo", "git.test/acme/calc"),
        ("branch", "main"),
        ("concurrency", slots),
        ("version", version),
    ]
}

#[actix_web::test]
async fn the_form_has_exactly_the_settings_of_the_table() {
    let house = house().await;
    let page = house.admin().await.get(PATH).await;
    let form = page.between("id=\"settings-form\"", "</form>");
    let named = form.split(" name=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let fields: Vec<&str> = named.map(|(name, _)| name).collect();
    let settings = SETTINGS.iter().map(|spec| spec.field);
    let expected: BTreeSet<&str> = settings.chain(["repo", "branch", "version"]).collect();
    assert_eq!(fields.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(fields.len(), expected.len(), "each once: {fields:?}");
}

#[actix_web::test]
async fn the_second_of_two_editors_sees_both_versions() {
    let house = house().await;
    let (ada, grace) = (house.admin().await, house.admin().await);
    let (seen, also_seen) = (version(&ada).await, version(&grace).await);
    assert_eq!((seen.len(), &seen), (16, &also_seen));
    let reply = ada.post(SAVE, &form("5", &seen)).await;
    assert_eq!(reply.status, 303, "{}", reply.body);
    let late = grace.post(SAVE, &form("7", &also_seen)).await;
    assert_eq!(late.status, 412);
    assert!(late.body.contains("Your changes were not saved."));
    let row = late.between("id=\"both-concurrency\"", "</tr>");
    assert!(row.contains(">5<") && row.contains(">7<"), "{row}");
    assert_eq!(slots(&house).await, 5);
    let preview = grace.get(&format!("{PATH}&concurrency=7&version={also_seen}")).await;
    assert!(preview.body.contains("Another user changed the settings after you opened the form."));
    let newest = version(&grace).await;
    assert_eq!(grace.post(SAVE, &form("7", &newest)).await.status, 303);
    assert_eq!(slots(&house).await, 7);
}

#[actix_web::test]
async fn steps_of_the_queue_do_not_change_its_settings_version() {
    let house = house().await;
    let admin = house.admin().await;
    let seen = version(&admin).await;
    let pr = house.host.open(&calc(), "main", &[("b", "2")]);
    let (queues, caller) = (&house.pages.queues, &house.caller);
    queues
        .submit(caller, &calc(), &main_branch(), pr, SubmitOptions::default())
        .await
        .expect("submitted");
    house.settle().await;
    assert_eq!(admin.post(SAVE, &form("3", &seen)).await.status, 303);
    assert_eq!(admin.post(SAVE, &form("4", "")).await.status, 412, "without a version");
    assert_eq!(slots(&house).await, 3);
}

#[actix_web::test]
async fn a_freeze_is_set_in_the_form_and_shown_on_the_page_of_the_queue() {
    let house = house().await;
    let admin = house.admin().await;
    let seen = version(&admin).await;
    let freezes = "22:00/23:00[UTC]\r\n2026-01-01T00:00/2030-01-04T08:00[Europe/Berlin] <b>audit</b>\r\n\
         2026-01-01T00:00/..[UTC]{label:mobile; !target:docs} release train";
    let mut form = form("2", &seen).to_vec();
    form.push(("freezes", freezes));
    assert_eq!(admin.post(SAVE, &form).await.status, 303);
    let page = admin.get("/acme/queue?repo=git.test%2Facme%2Fcalc&branch=main").await;
    let has = |text: &str| assert!(page.body.contains(text), "{}", page.body);
    has("The target branch is frozen until 2030-01-04T07:00:00.000Z.");
    has("&#60;b&#62;audit&#60;/b&#62;");
    let partial = page.between("Frozen: label:mobile; !target:docs.", "</div>");
    assert!(partial.contains("Release train."), "{partial}");
    let wrong = "22:00/22:00[UTC]";
    form.pop();
    form.push(("freezes", wrong));
    let refused = admin.post(SAVE, &form).await;
    assert!(refused.status >= 400, "{}", refused.status);
}

/// Terraform sets the concurrency.
async fn terraform_applies(house: &House, concurrency: u32) {
    let settings = SettingsPatch { concurrency: Some(concurrency), ..SettingsPatch::default() };
    let change =
        QueueChange { settings, source: ChangeSource::Terraform, ..QueueChange::default() };
    let queues = &house.pages.queues;
    let applied = queues.update_queue(&house.caller, &calc(), &main_branch(), change).await;
    applied.expect("applied");
}

#[actix_web::test]
async fn a_queue_that_terraform_manages_is_changed_only_with_a_confirmation() {
    let house = house().await;
    let admin = house.admin().await;
    let page = admin.get(PATH).await;
    assert!(!page.body.contains("Terraform"), "{}", page.body);
    terraform_applies(&house, 4).await;
    house.clock.advance(Span::minutes(5));
    let page = admin.get(PATH).await;
    let warning = page.between("id=\"management\"", "</section>");
    assert!(
        warning.contains("Managed by Terraform.") && warning.contains("5 min ago"),
        "{warning}"
    );
    assert!(!page.body.contains("id=\"drift\""));

    let seen = version(&admin).await;
    let preview = admin.get(&format!("{PATH}&concurrency=9")).await;
    let save = preview.between("id=\"save\"", "</form>");
    let confirm = "type=\"checkbox\" name=\"confirm\" value=\"terraform\" required";
    assert!(save.contains(confirm), "{save}");
    let refused = admin.post(SAVE, &form("9", &seen)).await;
    assert_eq!((refused.status, slots(&house).await), (400, 4));
    assert!(refused.body.contains("because Terraform manages this queue"), "{}", refused.body);
    let confirmed = [&form("9", &seen)[..], &[("confirm", "terraform")]].concat();
    assert_eq!(admin.post(SAVE, &confirmed).await.status, 303);
    assert_eq!(slots(&house).await, 9);

    let page = admin.get(PATH).await;
    assert!(page.body.contains("Changed outside Terraform"), "{}", page.body);
    let row = page.between("id=\"drift-concurrency\"", "</tr>");
    for cell in [">Concurrency<", ">4<", ">9<", ">token "] {
        assert!(row.contains(cell), "{cell}: {row}");
    }
    terraform_applies(&house, 4).await;
    let page = admin.get(PATH).await;
    assert!(page.body.contains("Managed by Terraform") && !page.body.contains("id=\"drift\""));
}

#[actix_web::test]
async fn a_pause_of_a_queue_that_terraform_manages_is_drift_until_it_is_resumed() {
    let house = house().await;
    terraform_applies(&house, 2).await;
    let admin = house.admin().await;
    let queue = "/acme/queue?repo=git.test%2Facme%2Fcalc&branch=main";
    let pause = admin.get(queue).await;
    assert!(
        pause.between("id=\"pause\"", "</form>").contains("Its next apply may undo the change.")
    );
    let act = |action: &'static str| {
        [
            ("repo", "git.test/acme/calc"),
            ("branch", "main"),
            ("reason", "release"),
            ("action", action),
        ]
    };
    assert_eq!(admin.post("/acme/queue/do", &act("pause")).await.status, 303);
    let page = admin.get(PATH).await;
    let row = page.between("id=\"drift-state\"", "</tr>");
    assert!(
        row.contains(">State<") && row.contains(">Running<") && row.contains(">Paused<"),
        "{row}"
    );
    assert_eq!(admin.post("/acme/queue/do", &act("resume")).await.status, 303);
    let page = admin.get(PATH).await;
    assert!(page.body.contains("Managed by Terraform") && !page.body.contains("id=\"drift\""));
}

/// Submits a pull request that adds a file, whose tests take ten minutes.
async fn tested(house: &House, file: &str) {
    let pr = house.host.open(&calc(), "main", &[(file, "2")]);
    let (queues, caller) = (&house.pages.queues, &house.caller);
    let options = SubmitOptions::default();
    queues.submit(caller, &calc(), &main_branch(), pr, options).await.expect("submitted");
    house.settle_but(&[EffectClass::Checks]).await;
    house.clock.advance(Span::minutes(10));
    house.settle().await;
}

#[actix_web::test]
async fn a_preview_can_be_simulated_with_the_last_days() {
    let house = house().await;
    let admin = house.admin().await;
    let preview = format!("{PATH}&concurrency=9&version={}", version(&admin).await);
    assert!(admin.get(&preview).await.body.contains("Simulate the last 14 days"));
    let simulated = format!("{preview}&simulate=yes");
    let empty = admin.get(&simulated).await;
    let section = empty.between("id=\"what-if\"", "</section>");
    assert!(section.contains("it has no merged or failed pull requests"), "{section}");
    for file in ["b", "bad", "c"] {
        tested(&house, file).await;
    }
    let page = admin.get(&simulated).await;
    let section = page.between("id=\"what-if\"", "</section>");
    assert!(section.contains("3 submissions from ") && section.contains("20 seeds"), "{section}");
    for row in ["recorded", "now", "changed"] {
        assert!(section.contains(&format!("id=\"simulation-{row}\"")), "{section}");
    }
    assert!(section.contains("The model fits. Recommended: "), "{section}");
    let stale = admin.get(&format!("{PATH}&concurrency=9&version=0")).await;
    let form = stale.between("id=\"simulate\"", "</form>");
    assert!(form.contains("name=\"version\" value=\"\""), "{form}");
    let stale = admin.get(&format!("{PATH}&concurrency=9&version=&simulate=yes")).await.body;
    assert!(stale.contains("Another user changed the settings after you opened the form."));
    let page = admin.get(&format!("{simulated}&author_limit=3")).await;
    assert!(page.body.contains("Not simulated: "), "{}", page.body);
    // The preview can still be saved, and nothing was.
    assert!(page.body.contains("Save these changes"));
    assert_eq!(slots(&house).await, 2);
    // A visitor who only reads sees it too.
    let reader = house.browser("reader", &[signalbox_domain::token::Scope::QueueRead]).await;
    let page = reader.get(&simulated).await;
    assert!(page.body.contains("id=\"what-if\"") && !page.body.contains("Save these changes"));
}

#[actix_web::test]
async fn simulations_run_one_at_a_time_and_not_for_long() {
    let house = house().await;
    let admin = house.admin().await;
    tested(&house, "b").await;
    let (what_if, caller) = (&house.pages.what_if, &house.caller);
    let question = || async {
        what_if.question(caller, &calc(), &main_branch(), 1, SettingsPatch::default()).await
    };
    let first = question().await.expect("a place");
    assert!(matches!(question().await.err(), Some(Error::Simulating)));
    let page = admin.get(&format!("{PATH}&concurrency=9&simulate=yes")).await;
    assert!(page.body.contains("nother simulation is running"), "{}", page.body);
    assert!(first.answer().is_ok());
    let late = question().await.expect("a place, after the first");
    house.clock.advance(Span::seconds(10));
    let stopped = late.answer().err();
    assert!(matches!(stopped, Some(Error::Simulation(SimulationError::Stopped))), "{stopped:?}");
    assert!(question().await.is_ok());
}

#[actix_web::test]
async fn a_change_of_mode_is_previewed_and_saved() {
    let house = house().await;
    let admin = house.admin().await;
    let page = admin.get(&format!("{PATH}&concurrency=2&mode=PARALLEL")).await;
    assert!(page.body.contains("This switches modes."), "{}", page.body);
    let save = page.between("id=\"save\"", "</form>");
    assert!(save.contains("name=\"mode\" value=\"PARALLEL\""), "{save}");
    let seen = version(&admin).await;
    let mut form = form("2", &seen).to_vec();
    form.push(("mode", "PARALLEL"));
    assert_eq!(admin.post(SAVE, &form).await.status, 303);
    let queue = house.pages.queues.queue(&house.caller, &calc(), &main_branch()).await;
    assert_eq!(queue.expect("a queue").header.settings.mode, Mode::Parallel);
}
