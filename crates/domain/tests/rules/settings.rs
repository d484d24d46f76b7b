//! Settings: parsing, bounds and warnings.

use signalbox_domain::queue::{
    BatchingRule, HostStatuses, LineSyntax, Mode, PrState, Refusal, ReparentingMode, SETTINGS,
    SettingKind, SettingValue, Settings, SettingsPatch, SettingsWarning, Targets,
};
use signalbox_domain::testing::Rules;

use super::{Command, PrNumber, World, states};

fn settings() -> Settings {
    Settings::new(Mode::Single, 2).expect("valid settings")
}

#[test]
fn ineffective_combinations_of_settings_are_warned_about() {
    let given = |patch: SettingsPatch| patch.applied_to(&settings()).expect("valid").warnings();
    let none = SettingsPatch::default;
    assert_eq!(given(none()), []);
    let depth = SettingsPatch { pending_failure_depth: Some(1), ..none() };
    assert_eq!(given(depth.clone()), [SettingsWarning::DepthOnlyDelays]);
    let optimistic = SettingsPatch { can_optimistically_merge: Some(true), ..none() };
    assert_eq!(given(optimistic.clone()), []);
    assert_eq!(given(SettingsPatch { can_optimistically_merge: Some(true), ..depth }), []);
    let ones = SettingsPatch { batch: Some(true), batching_min_size: Some(1), ..none() };
    assert_eq!(given(ones.clone()), [SettingsWarning::BatchesOfOne]);
    assert_eq!(given(SettingsPatch { batching_min_size: Some(2), ..ones.clone() }), []);
    assert_eq!(given(SettingsPatch { batch: Some(false), ..ones }), []);
    let agents = SettingsPatch { agent_labels: Some(vec!["agent:*".to_owned()]), ..none() };
    assert_eq!(given(agents.clone()), [SettingsWarning::AgentsWithoutLimit]);
    assert_eq!(given(SettingsPatch { fair_share: Some(true), ..agents.clone() }), []);
    assert_eq!(given(SettingsPatch { author_hourly_limit: Some(1), ..agents }), []);
    for (slots, of_bisections, is_few) in
        [(40, 1, true), (41, 2, true), (40, 2, false), (20, 1, false), (500, 0, false)]
    {
        let all = SettingsPatch {
            reparenting_mode: Some(ReparentingMode::All),
            concurrency: Some(slots),
            bisection_concurrency: Some(of_bisections),
            ..none()
        };
        let few = [SettingsWarning::FewBisectionSlots];
        let expected = if is_few { &few[..] } else { &[] };
        assert_eq!(given(all.clone()), expected, "{of_bisections} of {slots}");
        let batches = Some(ReparentingMode::Batches);
        assert_eq!(given(SettingsPatch { reparenting_mode: batches, ..all }), []);
    }
}

#[test]
fn a_list_of_required_statuses_cannot_be_deleted_and_set_together() {
    let patch = |list: &[&str], delete| SettingsPatch {
        required_statuses: Some(list.iter().map(|it| (*it).to_owned()).collect()),
        delete_required_statuses: delete,
        ..SettingsPatch::default()
    };
    let refused = patch(&["test"], true).applied_to(&settings());
    assert!(
        matches!(&refused, Err(Refusal::InvalidSetting { field, .. }) if field == "deleteRequiredStatuses"),
        "{refused:?}"
    );
    let kept = patch(&["test"], false).applied_to(&settings()).expect("valid");
    assert_eq!(kept.required_statuses, Some(vec!["test".to_owned()]));
    let deleted = patch(&[], true).applied_to(&kept).expect("valid");
    assert_eq!(deleted.required_statuses, None);
}

#[test]
fn every_setting_parses_its_own_text_and_rejects_other_kinds() {
    for spec in SETTINGS {
        let mut patch = SettingsPatch::default();
        let value = spec.value(&settings());
        assert!(spec.set(&mut patch, value.clone()), "{}", spec.name);
        assert_eq!(spec.proposed(&patch), Some(value), "{}", spec.name);
        match spec.kind {
            SettingKind::Flag => {
                assert_eq!(spec.parse("yes"), Some(SettingValue::Flag(true)));
                assert_eq!(spec.parse("true"), Some(SettingValue::Flag(true)));
                assert_eq!(spec.parse("no"), Some(SettingValue::Flag(false)));
                assert_eq!(spec.parse("false"), Some(SettingValue::Flag(false)));
                assert_eq!(spec.parse("on"), None, "{}", spec.name);
            }
            SettingKind::Word(words) => {
                for word in words {
                    let small = word.to_ascii_lowercase();
                    assert_eq!(spec.parse(&small), Some(SettingValue::Word(word)));
                }
                assert_eq!(spec.parse("unheard of"), None, "{}", spec.name);
            }
            SettingKind::Whole { .. } => {
                assert_eq!(spec.parse("3"), Some(SettingValue::Whole(3)));
                assert_eq!(spec.parse("three"), None, "{}", spec.name);
            }
            SettingKind::Text { .. }
            | SettingKind::Names { .. }
            | SettingKind::Rules
            | SettingKind::Lines(_) => {}
        }
        let other = match spec.kind {
            SettingKind::Flag => SettingValue::Whole(1),
            _ => SettingValue::Flag(true),
        };
        let before = patch.clone();
        assert!(!spec.set(&mut patch, other), "{}", spec.name);
        assert_eq!(patch, before, "{}", spec.name);
    }
}

#[test]
fn a_candidate_is_tested_only_where_a_status_is_required() {
    let named = || Some(vec!["test".to_owned()]);
    let none = HostStatuses::default;
    assert!(!none().are_usable());
    assert!(!HostStatuses { repository: Some(Vec::new()), ..none() }.are_usable());
    assert!(HostStatuses { repository: named(), ..none() }.are_usable());
    assert!(HostStatuses { branch_protection: named(), ..none() }.are_usable());
    let broken = HostStatuses {
        repository: named(),
        branch_protection: named(),
        repository_error: Some("line 3: no table".into()),
        ..none()
    };
    assert!(!broken.are_usable());
}

#[test]
fn a_rule_isolates_the_targets_that_its_pattern_names() {
    let tested = |pattern: &str, target: &str| {
        let mut settings = Settings::new(Mode::Parallel, 4).expect("valid settings");
        settings.batch = true;
        settings.batching_min_size = 2;
        let policy = "isolate".to_owned();
        settings.batching_rules = vec![BatchingRule { target_pattern: pattern.to_owned(), policy }];
        let mut world = World::new(settings, Rules::default());
        world.reports_targets = false;
        world.submit(1, None).expect("not refused");
        let mut targets = world.targets(1);
        targets.targets = Targets::Only(std::iter::once(target.to_owned()).collect());
        world.ask(Command::SetTargets { pr: PrNumber(1), targets }).expect("not refused");
        // An isolated target is tested immediately; others wait for their batch to fill.
        states(&world) == [(1, PrState::Testing)]
    };
    assert!(tested("//app:*", "//app:server"));
    assert!(!tested("//app:*", "//lib:server"));
    assert!(tested("//app", "//app"));
    assert!(!tested("//app", "//app:server"));
    assert!(tested("//*:*_test", "//app:unit_test"));
    assert!(!tested("//*:*_test", "//app:unit_tests"));
    assert!(tested("//a*c*e", "//abcde"));
    assert!(!tested("//a*c*e", "//ace/"));
    assert!(!tested("//aa*aa", "//aaa"), "text matched by the first part is not matched again");
    assert!(tested("*", "//anything"));
}

#[test]
fn the_bounds_of_each_setting_are_allowed_and_the_next_values_are_not() {
    let names = |count: usize, length: usize| vec!["n".repeat(length); count];
    let rules = |count: usize, pattern: &str, policy: &str| {
        let (target_pattern, policy) = (pattern.to_owned(), policy.to_owned());
        SettingValue::Rules(vec![BatchingRule { target_pattern, policy }; count])
    };
    for spec in SETTINGS {
        let (allowed, refused) = match spec.kind {
            SettingKind::Whole { min, max, .. } => {
                let above = max.checked_add(1).map(SettingValue::Whole);
                let below = min.checked_sub(1).map(SettingValue::Whole);
                let inside = [min, max].map(SettingValue::Whole);
                (inside.to_vec(), above.into_iter().chain(below).collect::<Vec<_>>())
            }
            SettingKind::Text { max } => {
                let text = |length| SettingValue::Text("t".repeat(length));
                (vec![text(1), text(max)], vec![text(0), text(max + 1)])
            }
            SettingKind::Names { .. } => {
                let names = |count, length| SettingValue::Names(names(count, length));
                let allowed = vec![names(0, 0), names(100, 1), names(1, 255)];
                (allowed, vec![names(101, 1), names(1, 256), names(1, 0)])
            }
            SettingKind::Rules => {
                let allowed = vec![rules(0, "", ""), rules(100, "//a", "isolate")];
                let unknown = rules(1, "//a", "share");
                (allowed, vec![rules(101, "//a", "isolate"), unknown, rules(1, "", "isolate")])
            }
            SettingKind::Lines(syntax) => {
                let rules = |rule: &str, count| SettingValue::Names(vec![rule.to_owned(); count]);
                let (valid, invalid) = match syntax {
                    LineSyntax::Freeze => ("22:00/06:00[UTC]", "22:00/06:00"),
                    LineSyntax::TargetRule => ("api/** api", "api/**"),
                    LineSyntax::Capacity => ("ios 2", "ios"),
                };
                let more = "r".repeat(255 - valid.len() - 1);
                let longest = match syntax {
                    LineSyntax::Freeze | LineSyntax::TargetRule => format!("{valid} {more}"),
                    LineSyntax::Capacity => format!("{more} {valid}"),
                };
                let allowed = vec![rules("", 0), rules(valid, 100), rules(&longest, 1)];
                let too_long = format!(" {longest}");
                (allowed, vec![rules(valid, 101), rules(&too_long, 1), rules(invalid, 1)])
            }
            SettingKind::Flag | SettingKind::Word(_) => (Vec::new(), Vec::new()),
        };
        for value in allowed {
            assert_eq!(spec.check(&value), Ok(()), "{} {value:?}", spec.name);
        }
        for value in refused {
            let result = spec.check(&value);
            let is_refused =
                matches!(&result, Err(Refusal::InvalidSetting { field, .. }) if field == spec.name);
            assert!(is_refused, "{} {value:?}: {result:?}", spec.name);
        }
    }
}

#[test]
fn each_setting_has_a_description_and_its_value_as_text() {
    let mut settings = settings();
    settings.required_statuses = Some(vec!["test".to_owned(), "lint".to_owned()]);
    let isolate = |pattern: &str| BatchingRule {
        target_pattern: pattern.to_owned(),
        policy: "isolate".to_owned(),
    };
    settings.batching_rules = vec![isolate("//a"), isolate("//b")];
    for spec in SETTINGS {
        assert!(spec.doc().contains(' ') && spec.doc().ends_with('.'), "{}", spec.name);
        let text = spec.text(&settings);
        match spec.value(&settings) {
            SettingValue::Whole(number) => assert_eq!(text, Some(number.to_string())),
            SettingValue::Flag(flag) => assert_eq!(text, Some(flag.to_string())),
            SettingValue::Word(word) => assert_eq!(text.as_deref(), Some(word)),
            SettingValue::Text(own) => assert_eq!(text, Some(own)),
            SettingValue::Names(names) => assert_eq!(text, Some(names.join(", "))),
            SettingValue::Rules(_) => {
                assert_eq!(text.as_deref(), Some("//a: isolate, //b: isolate"));
            }
        }
    }
    settings.required_statuses = None;
    let names = SETTINGS.iter().find(|spec| spec.name == "requiredStatuses").expect("a setting");
    assert_eq!(names.text(&settings), None, "the repository decides");
}
