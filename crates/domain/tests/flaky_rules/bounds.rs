//! Bounds of branch patterns, and the parameters of monitors.

use signalbox_domain::flaky::{
    BranchPattern, BranchScope, FailureCount, FailureRate, MonitorId, MonitorRule, Rule, Template,
};
use uuid::Uuid;

#[test]
fn a_scope_has_one_to_ten_patterns_of_one_to_255_bytes() {
    let check = |count: usize, length: usize| {
        let patterns = vec![BranchPattern("b".repeat(length)); count];
        BranchScope { patterns, ..BranchScope::all() }.check("branches").is_ok()
    };
    assert!(check(1, 1) && check(10, 255));
    assert!(!check(0, 1) && !check(11, 1) && !check(1, 0) && !check(1, 256));
}

#[test]
fn a_rule_lists_its_parameters_by_name() {
    let rule = Rule::FailureCount(FailureCount {
        count: 2,
        window_hours: 24,
        resolution_timeout_hours: 48,
    });
    let expected = [("failureCount", 2), ("windowHours", 24), ("resolutionTimeoutHours", 48)];
    let mut values = rule.values();
    values.sort_unstable_by_key(|(_, value)| *value);
    let numbers: Vec<u32> = values.iter().map(|(_, value)| *value).collect();
    assert_eq!(numbers, expected.map(|(_, value)| value));
    assert!(values.iter().all(|(name, _)| !name.is_empty()), "{values:?}");
}

#[test]
fn the_template_for_merge_queues_resolves_after_a_week() {
    let monitor = Template::FlakyInQueue.monitor(MonitorId(Uuid::from_u128(1)));
    let Rule::FailureCount(rule) = monitor.rule else { panic!("{:?}", monitor.rule) };
    assert_eq!((rule.count, rule.window_hours, rule.resolution_timeout_hours), (2, 24, 168));
    assert_eq!(monitor.check(), Ok(()));
}

#[test]
fn parameters_that_follow_from_others_follow_unless_they_are_given() {
    let start = FailureCount::START;
    let given = FailureCount::start_with(&[("failureCount", 3)]);
    assert_eq!(given, FailureCount { count: 3, ..FailureCount::start_with(&[]) });
    let all = [("failureCount", 3), ("windowHours", 48), ("resolutionTimeoutHours", 60)].as_slice();
    let expected = FailureCount { count: 3, window_hours: 48, resolution_timeout_hours: 60 };
    assert_eq!((start.with(all), FailureCount::start_with(all)), (expected, expected));
    assert_eq!(start.with(&[("unheardOf", 3)]), start);
    let rate = FailureRate::start_with(&[("activationThreshold", 40)]);
    let other = FailureRate::start_with(&[("activationThreshold", 40), ("resolutionThreshold", 7)]);
    assert_eq!((rate.activation_percent, other.resolution_percent), (40, 7));
    assert_ne!(rate.resolution_percent, FailureRate::start_with(&[]).resolution_percent);
}
