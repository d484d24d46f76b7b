use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("RFC 3339")
}

/// The state as `frozen until END REASON`, or `free until START`.
fn state(rules: &[&str], now: &str) -> String {
    let rules: Vec<String> = rules.iter().map(|&rule| rule.to_owned()).collect();
    let FreezeState { in_force, due, .. } = FreezeState::at(&rules, at(now));
    let shown = |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    match in_force {
        Some(freeze) => {
            let is_evaluated_in_time =
                freeze.until.is_none() || due.is_some_and(|due| Some(due) <= freeze.until);
            assert!(is_evaluated_in_time && due.is_none_or(|due| due > at(now)), "{due:?}");
            format!("frozen until {} {}", shown(freeze.until), freeze.reason.unwrap_or_default())
        }
        None => format!("free until {}", shown(due)),
    }
}

#[test]
fn a_period_has_its_start_and_not_its_end() {
    let rules = ["Fri 16:00/Mon 08:00[Europe/Berlin] weekend"];
    for (now, wanted) in [
        ("2026-11-27T14:59:59Z", "free until 2026-11-27T15:00:00.000Z"),
        ("2026-11-27T15:00:00Z", "frozen until 2026-11-30T07:00:00.000Z weekend"),
        ("2026-11-30T06:59:59Z", "frozen until 2026-11-30T07:00:00.000Z weekend"),
        ("2026-11-30T07:00:00Z", "free until 2026-12-04T15:00:00.000Z"),
    ] {
        assert_eq!(state(&rules, now), wanted, "{now}");
    }
}

#[test]
fn daily_periods_may_pass_midnight_and_last_ones_have_no_next() {
    assert_eq!(
        state(&["22:00/06:00[UTC]"], "2026-11-27T00:00:00Z"),
        "frozen until 2026-11-27T06:00:00.000Z "
    );
    assert_eq!(
        state(&["09:00/17:00[Asia/Tokyo]"], "2026-11-27T08:00:00Z"),
        "free until 2026-11-28T00:00:00.000Z"
    );
    let once = ["2026-12-21T00:00/2027-01-04T08:00[UTC] holidays"];
    assert_eq!(state(&once, "2026-11-27T00:00:00Z"), "free until 2026-12-21T00:00:00.000Z");
    assert_eq!(
        state(&once, "2027-01-01T00:00:00Z"),
        "frozen until 2027-01-04T08:00:00.000Z holidays"
    );
    assert_eq!(state(&once, "2027-01-04T08:00:00Z"), "free until -");
    let open = ["2026-12-21T00:00/..[UTC] audit"];
    assert_eq!(state(&open, "2031-01-01T00:00:00Z"), "frozen until - audit");
    assert_eq!(state(&[], "2026-11-27T00:00:00Z"), "free until -");
}

#[test]
fn when_clocks_change_the_longest_freeze_counts() {
    let berlin = ["02:30/05:00[Europe/Berlin]"];
    // On 28 March 2027 clocks go from 02:00 to 03:00: 02:30 does not come.
    assert_eq!(state(&berlin, "2027-03-28T00:00:00Z"), "free until 2027-03-28T00:30:00.000Z");
    assert_eq!(state(&berlin, "2027-03-28T00:30:00Z"), "frozen until 2027-03-28T03:00:00.000Z ");
    // On 31 October 2027 they go from 03:00 to 02:00: 02:30 comes twice.
    assert_eq!(state(&berlin, "2027-10-31T00:00:00Z"), "free until 2027-10-31T00:30:00.000Z");
    let ends = ["01:00/02:30[Europe/Berlin]"];
    assert_eq!(state(&ends, "2027-10-31T00:45:00Z"), "frozen until 2027-10-31T01:30:00.000Z ");
    // A week that has a change of clocks is not 168 hours long.
    let weekly = ["Mon 08:00/Mon 07:00[America/New_York]"];
    assert_eq!(state(&weekly, "2027-03-09T00:00:00Z"), "frozen until 2027-03-15T11:00:00.000Z ");
    assert_eq!(state(&weekly, "2027-03-15T11:00:00Z"), "free until 2027-03-15T12:00:00.000Z");
}

#[test]
fn periods_without_a_gap_are_one_freeze() {
    let joined =
        ["Fri 16:00/Sat 00:00[UTC] Friday", "Sat 00:00/Mon 08:00[UTC]", "Sun 12:00/Mon 09:00[UTC]"];
    assert_eq!(
        state(&joined, "2026-11-27T20:00:00Z"),
        "frozen until 2026-11-30T09:00:00.000Z Friday"
    );
    assert_eq!(
        state(&joined, "2026-11-28T00:00:00Z"),
        "frozen until 2026-11-30T09:00:00.000Z ",
        "another rule covers this time"
    );
    let always = ["00:00/12:00[UTC] a", "12:00/00:00[UTC] b"];
    assert_eq!(state(&always, "2026-11-27T03:00:00Z"), "frozen until - a");
    assert_eq!(state(&always, "2026-11-27T12:00:00Z"), "frozen until - b", "evaluated again");
}

#[test]
fn a_wait_is_prolonged_by_the_freezes_in_it() {
    let minutes = |rules: &[&str], now: &str, wait: u32| {
        let rules: Vec<String> = rules.iter().map(|&rule| rule.to_owned()).collect();
        let wait = prolonged(&rules, at(now), Span::minutes(wait));
        wait.map(|wait| wait.micros() / Span::minutes(1).micros())
    };
    let nights = ["22:00/06:00[UTC]"];
    for (now, wait, wanted) in [
        ("2026-11-27T12:00:00Z", 60, 60),
        ("2026-11-27T21:30:00Z", 29, 29),
        // The time at which a freeze begins belongs to it.
        ("2026-11-27T21:30:00Z", 30, 8 * 60 + 30),
        ("2026-11-27T21:30:00Z", 45, 8 * 60 + 45),
        ("2026-11-27T22:00:00Z", 0, 8 * 60),
        ("2026-11-27T05:00:00Z", 16 * 60, 9 * 60 + 16 * 60),
        ("2026-11-27T12:00:00Z", 30 * 60, 46 * 60),
    ] {
        assert_eq!(minutes(&nights, now, wait), Some(wanted), "{wait} minutes from {now}");
    }
    assert_eq!(minutes(&[], "2026-11-27T12:00:00Z", 5), Some(5));
    let open = ["2026-11-27T13:00/..[UTC]"];
    assert_eq!(minutes(&open, "2026-11-27T12:00:00Z", 59), Some(59));
    assert_eq!(minutes(&open, "2026-11-27T12:00:00Z", 61), None);
    assert_eq!(minutes(&["00:00/23:59[UTC]"], "2026-11-27T12:00:00Z", 600), None, "too many");
}

#[test]
fn what_is_no_rule_is_refused_with_the_reason() {
    for text in [
        "",
        "Fri 16:00",
        "Fri 16:00/Mon 08:00",
        "Fri 16:00/08:00[UTC]",
        "Fry 16:00/Mon 08:00[UTC]",
        "16/18[UTC]",
        "25:00/26:00[UTC]",
        "2026-02-30T00:00/2026-03-01T00:00[UTC]",
        "2026-12-21/2027-01-04[UTC]",
        "2026-12-21T00:00/08:00[UTC]",
        "2026-12-21T08+01/2026-12-21T10+01[UTC]",
        "2026-12-21T0\u{660}:00/2026-12-22T00:00[UTC]",
        "1\u{e9}:0/18:00[UTC]",
        "../2026-12-21T00:00[UTC]",
    ] {
        assert_eq!(check(text), Err(InvalidFreeze::Form(text.to_owned())));
    }
    for zone in ["Europe/Berln", "Etc/Unknown", "+01:00", ""] {
        let found = check(&format!("22:00/06:00[{zone}]"));
        assert_eq!(found, Err(InvalidFreeze::UnknownZone(zone.to_owned())));
    }
    for text in ["22:00/06:00[UTC] a, b", "22:00/06:00[UTC] a\n22:00/06:00[UTC] b"] {
        assert_eq!(check(text), Err(InvalidFreeze::Separator(text.to_owned())));
    }
    for text in [
        "22:00/22:00[UTC]",
        "Mon 08:00/Mon 08:00[UTC]",
        "2026-12-21T00:00/2026-12-21T00:00[UTC]",
        "2026-12-21T00:00/2026-12-20T00:00[UTC]",
        "2026-12-21T00:00/9999-12-31T23:59[UTC]",
    ] {
        assert_eq!(check(text), Err(InvalidFreeze::End(text.to_owned())));
    }
    let message = check("never").expect_err("refused").to_string();
    assert!(message.starts_with("\"never\" is not of the form START/END[TIME ZONE]"), "{message}");
}

#[test]
fn freezes_with_a_scope_are_apart_from_those_of_all() {
    let rules = [
        "22:00/06:00[UTC]{target:ios-*; ! label: Do not  freeze ;label:mobile} night".to_owned(),
        "Fri 00:00/Sat 00:00[UTC]".to_owned(),
    ];
    let FreezeState { in_force, partial, due } =
        FreezeState::at(&rules, at("2026-11-27T23:00:00Z"));
    assert_eq!(in_force.expect("it is Friday").until, Some(at("2026-11-28T00:00:00Z")));
    assert_eq!(due, Some(at("2026-11-28T00:00:00Z")));
    let shown: Vec<(String, Option<Timestamp>, Option<&str>)> =
        partial.iter().map(|it| (it.scope.to_string(), it.until, it.reason.as_deref())).collect();
    let scope = "target:ios-*; !label:Do not  freeze; label:mobile".to_owned();
    assert_eq!(shown, [(scope, Some(at("2026-11-28T06:00:00Z")), Some("night"))]);
    let after = FreezeState::at(&rules, at("2026-11-28T06:00:00Z"));
    assert_eq!((after.in_force, after.partial), (None, Vec::new()));
}

#[test]
fn a_scope_names_labels_or_targets() {
    for scope in ["", "mobile", "label:", "team:x", "label:a;", "label:a label", "!", "label:a}"] {
        let rule = format!("22:00/06:00[UTC]{{{scope}}} night");
        let is_valid = scope == "label:a label";
        assert_eq!(check(&rule).is_ok(), is_valid, "{rule}");
    }
    let refused = check("22:00/06:00[UTC]{label:mobile night").expect_err("no end");
    assert_eq!(
        refused.to_string(),
        "\"22:00/06:00[UTC]{label:mobile night\": the scope must be a list of labels and targets, \
         such as \"{target:ios-*; label:mobile; !label:docs}\""
    );
    // Spaces before it do not turn it into a reason.
    assert!(check("22:00/06:00[UTC]  {label:mobile} night").is_ok());
    assert!(is_partial_freeze("22:00/06:00[UTC]  {label:mobile} night"));
    assert!(check("22:00/06:00[UTC] {night}").is_err());
}

#[test]
fn freezes_with_one_scope_that_follow_each_other_are_one_freeze() {
    let rules = [
        "Fri 16:00/Mon 08:00[UTC]{target:ios} weekend".to_owned(),
        "Mon 08:00/Mon 20:00[UTC]{target:ios} train".to_owned(),
        "Mon 20:00/Tue 06:00[UTC] night".to_owned(),
        "Sat 00:00/Sun 00:00[UTC]{target:web}".to_owned(),
    ];
    let partial = FreezeState::at(&rules, at("2026-11-28T12:00:00Z")).partial;
    let ends: Vec<(String, Option<Timestamp>)> =
        partial.iter().map(|it| (it.scope.to_string(), it.until)).collect();
    let end = |text| Some(at(text));
    assert_eq!(
        ends,
        [
            ("target:ios".to_owned(), end("2026-12-01T06:00:00Z")),
            ("target:web".to_owned(), end("2026-11-29T00:00:00Z")),
        ]
    );
}
