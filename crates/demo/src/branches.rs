//! The branches of each scenario: their files, and how they should end.

use crate::scenario::{Branch, Comes, End};

const LANDS: End = End {
    what: "passes",
    state: "MERGED",
    reason: "MERGE_GRAPH_MERGE",
    culprit: None,
    because_of: None,
    names: None,
    step: None,
    joins: false,
    excused: None,
};
const RED: End = End {
    what: "fails its own test",
    state: "FAILED",
    reason: "TEST_RUN_REQUIRED_STATUS_FAILED",
    culprit: Some("itself"),
    names: Some("test"),
    ..LANDS
};
const GOOD: Branch = Branch {
    name: "",
    title: "",
    files: &[],
    targets: &[],
    comes: Comes::First,
    fails_alone: false,
    end: LANDS,
};

/// The conflict is among the first three, so that it is found before the checks of the other
/// branch pass the gate.
pub(crate) static MAIN: [Branch; 7] = [
    Branch {
        name: "subtract",
        title: "Teach it to subtract",
        files: &[
            ("lib/sub.sh", "sub() { echo $(($1 - $2)); }\n"),
            ("tests/sub.sh", "[ \"$(sub 5 3)\" = 2 ]\n"),
        ],
        ..GOOD
    },
    Branch {
        name: "rename",
        title: "Call add what it is: sum",
        files: &[
            ("calc.sh", "# A small calculator.\n\nsum() { echo $(($1 + $2)); }\n"),
            ("tests/add.sh", "[ \"$(sum 2 3)\" = 5 ]\n"),
        ],
        ..GOOD
    },
    Branch {
        name: "comment",
        title: "Document what add does",
        files: &[("calc.sh", "# A small calculator.\n\nadd() { echo $(($1 + $2)); } # of two\n")],
        end: End {
            what: "conflicts with \"rename\"",
            state: "FAILED",
            reason: "START_TEST_RUN_MERGE_CONFLICT",
            culprit: Some("pull_request"),
            because_of: Some("rename"),
            names: Some("calc.sh"),
            ..LANDS
        },
        ..GOOD
    },
    Branch {
        name: "multiply",
        title: "Teach it to multiply",
        files: &[
            ("lib/mul.sh", "mul() { echo $(($1 + $2)); }\n"),
            ("tests/mul.sh", "[ \"$(mul 3 4)\" = 12 ]\n"),
        ],
        fails_alone: true,
        end: RED,
        ..GOOD
    },
    Branch {
        name: "double",
        title: "Teach it to double, with add",
        files: &[
            ("lib/double.sh", "double() { add \"$1\" \"$1\"; }\n"),
            ("tests/double.sh", "[ \"$(double 4)\" = 8 ]\n"),
        ],
        end: End { what: "fails on top of \"rename\" only", ..RED },
        ..GOOD
    },
    Branch {
        name: "draft",
        title: "Something half done",
        files: &[("lib/half.sh", "half() { echo $(($1 / 2)); }\n")],
        comes: Comes::AndLeaves,
        end: End {
            what: "cancelled by its author",
            state: "CANCELLED",
            reason: "USER_REQUESTED",
            ..LANDS
        },
        ..GOOD
    },
    Branch {
        name: "readme",
        title: "Write a README",
        files: &[("README.md", "# calc\n\nA small calculator.\n")],
        ..GOOD
    },
];

pub(crate) static BATCHES: [Branch; 4] = [
    Branch {
        name: "negate",
        title: "Teach it to negate",
        files: &[
            ("lib/neg.sh", "neg() { echo $((0 - $1)); }\n"),
            ("tests/neg.sh", "[ \"$(neg 4)\" = -4 ]\n"),
        ],
        ..GOOD
    },
    Branch {
        name: "maximum",
        title: "Find the greater of two",
        files: &[
            ("lib/max.sh", "max() { echo $(($1 > $2 ? $1 : $2)); }\n"),
            ("tests/max.sh", "[ \"$(max 3 4)\" = 4 ]\n"),
        ],
        ..GOOD
    },
    Branch {
        name: "minimum",
        title: "Find the lesser of two",
        files: &[
            ("lib/min.sh", "min() { echo $(($1 > $2 ? $1 : $2)); }\n"),
            ("tests/min.sh", "[ \"$(min 3 4)\" = 3 ]\n"),
        ],
        fails_alone: true,
        end: RED,
        ..GOOD
    },
    Branch {
        name: "square",
        title: "Teach it to square",
        files: &[
            ("lib/square.sh", "square() { echo $(($1 * $1)); }\n"),
            ("tests/square.sh", "[ \"$(square 7)\" = 49 ]\n"),
        ],
        ..GOOD
    },
];

pub(crate) static RESCUE: [Branch; 2] = [
    Branch {
        name: "cube",
        title: "Teach it to cube",
        files: &[
            ("lib/cube.sh", "cube() { echo $(($1 * $1 * $1)); }\n"),
            (
                "tests/cube.sh",
                "[ \"$(cube 3)\" = 27 ]\n[ -e \"$gates/seen\" ] || { : > \"$gates/seen\"; exit 1; }\n",
            ),
        ],
        fails_alone: true,
        end: End {
            what: "its test fails the first time",
            step: Some("SUCCESSOR_TEST_RUN_PASSED"),
            ..LANDS
        },
        ..GOOD
    },
    Branch {
        name: "modulo",
        title: "Teach it to find the remainder",
        files: &[
            ("lib/mod.sh", "mod() { echo $(($1 % $2)); }\n"),
            ("tests/mod.sh", "[ \"$(mod 7 4)\" = 3 ]\n"),
        ],
        ..GOOD
    },
];

pub(crate) static LANES: [Branch; 3] = [
    Branch {
        name: "frontend",
        title: "Show results in a frame",
        files: &[
            ("lib/frame.sh", "frame() { echo \"[ $1 ]\"; }\n"),
            (
                "tests/frame.sh",
                "while [ ! -e \"$gates/slow\" ]; do sleep 0.1; done\n[ \"$(frame 5)\" = \"[ 5 ]\" ]\n",
            ),
        ],
        targets: &["frontend"],
        end: End { what: "slow, alone in its lane", joins: true, ..LANDS },
        ..GOOD
    },
    Branch {
        name: "backend",
        title: "Remember the last result",
        files: &[
            ("lib/last.sh", "last() { echo \"${result:-0}\"; }\n"),
            ("tests/last.sh", "[ \"$(last)\" = 0 ]\n"),
        ],
        targets: &["backend"],
        end: End { what: "fast, in another lane", ..LANDS },
        ..GOOD
    },
    Branch {
        name: "both",
        title: "Show the last result in a frame",
        files: &[("lib/show.sh", "show() { frame \"$(last)\"; }\n")],
        targets: &["frontend", "backend"],
        end: End { what: "touches both", ..LANDS },
        ..GOOD
    },
];

pub(crate) static URGENT: [Branch; 3] = [
    Branch {
        name: "halve",
        title: "Teach it to halve",
        files: &[
            ("lib/halve.sh", "halve() { echo $(($1 / 2)); }\n"),
            ("tests/halve.sh", "[ \"$(halve 8)\" = 4 ]\n"),
        ],
        end: End {
            what: "interrupted by \"hotfix\"",
            step: Some("SKIP_THE_LINE_INTERRUPTED"),
            ..LANDS
        },
        ..GOOD
    },
    Branch {
        name: "triple",
        title: "Teach it to triple",
        files: &[
            ("lib/triple.sh", "triple() { echo $(($1 * 3)); }\n"),
            ("tests/triple.sh", "[ \"$(triple 3)\" = 9 ]\n"),
        ],
        ..GOOD
    },
    Branch {
        name: "hotfix",
        title: "Take a missing number for 0",
        files: &[("calc.sh", "# A small calculator.\n\nadd() { echo $((${1:-0} + ${2:-0})); }\n")],
        comes: Comes::Urgent,
        end: End { what: "urgent", ..LANDS },
        ..GOOD
    },
];

/// A flaky test: a counter decides whether it fails, so that every demo shows the same. It
/// runs twice, as test runners do when they retry, and reports both attempts.
const CLOCK: &str = r#"try() {
  tries=$(($(cat "$gates/tries" 2>/dev/null || echo 0) + 1))
  echo "$tries" >"$gates/tries"
  [ "$tries" = 2 ]
}
if try; then outcome=''
elif try; then outcome='<flakyFailure message="12:60 is no time"/>'
else outcome='<failure message="12:60 is no time"/>'; failed=yes
fi
echo "clock ticks: tried up to $tries times $outcome"
if [ -n "${SIGNALBOX_TEST_RUN:-}" ]; then
  {
    echo '<testsuite name="clock"><testcase name="clock ticks" file="tests/clock.sh">'
    echo "$outcome</testcase></testsuite>"
  } >report.xml
fi
"#;

pub(crate) static FLAKY: [Branch; 2] = [
    Branch {
        name: "clock",
        title: "Show the time",
        files: &[("lib/clock.sh", "clock() { date +%H:%M; }\n"), ("tests/clock.sh", CLOCK)],
        end: End { what: "its test fails, then passes", ..LANDS },
        ..GOOD
    },
    Branch {
        name: "leap",
        title: "Know leap years",
        files: &[
            ("lib/leap.sh", "leap() { [ $(($1 % 4)) = 0 ]; }\n"),
            ("tests/leap.sh", "leap 2024\n"),
        ],
        comes: Comes::Later,
        end: End { what: "the clock's test fails", excused: Some("clock ticks"), ..LANDS },
        ..GOOD
    },
];

/// A report of many tests: on a broken machine all fail, and they pass when the check runs again.
const COUNT: &str = r#"tries=$(($(cat "$gates/counted" 2>/dev/null || echo 0) + 1))
echo "$tries" >"$gates/counted"
case $tries in
  1) outcome='<failure message="no space left on device"/>'; failed=yes ;;
  *)
    outcome=''
    while [ ! -e "$gates/again" ]; do sleep 0.1; done
    ;;
esac
echo "count: attempt $tries $outcome"
if [ -n "${SIGNALBOX_TEST_RUN:-}" ]; then
  {
    echo '<testsuite name="count">'
    for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
      echo "<testcase name=\"counts to $number\" file=\"tests/count.sh\">$outcome</testcase>"
    done
    echo '</testsuite>'
  } >report.xml
fi
"#;
/// The flaky test of the clock, which fails on the first attempt of the check.
const DATE: &str = r#"tries=$(($(cat "$gates/dated" 2>/dev/null || echo 0) + 1))
echo "$tries" >"$gates/dated"
case $tries in
  1) outcome='<failure message="12:60 is no time"/>'; failed=yes ;;
  *)
    outcome=''
    while [ ! -e "$gates/slow" ]; do sleep 0.1; done
    ;;
esac
echo "clock ticks: attempt $tries $outcome"
if [ -n "${SIGNALBOX_TEST_RUN:-}" ]; then
  {
    echo '<testsuite name="clock"><testcase name="clock ticks" file="tests/clock.sh">'
    echo "$outcome</testcase></testsuite>"
  } >report.xml
fi
"#;
const DIVIDE: &str = r#"echo 'divide: expected 2, got 3'
if [ -n "${SIGNALBOX_TEST_RUN:-}" ]; then
  {
    echo '<testsuite name="divide"><testcase name="divides" file="tests/divide.sh">'
    echo '<failure message="expected 2, got 3"/></testcase></testsuite>'
  } >report.xml
fi
failed=yes
"#;

pub(crate) static RETRIES: [Branch; 3] = [
    Branch {
        name: "count",
        title: "Count to twenty",
        files: &[("lib/count.sh", "count() { seq \"$1\"; }\n"), ("tests/count.sh", COUNT)],
        fails_alone: true,
        end: End { what: "its first machine is broken", ..LANDS },
        ..GOOD
    },
    Branch {
        name: "date",
        title: "Show the date",
        files: &[("lib/date.sh", "day() { date +%F; }\n"), ("tests/date.sh", DATE)],
        fails_alone: true,
        end: End { what: "the clock's test fails", ..LANDS },
        ..GOOD
    },
    Branch {
        name: "divide",
        title: "Teach it to divide",
        files: &[
            ("lib/divide.sh", "divide() { echo $(($1 / $2 + 1)); }\n"),
            ("tests/divide.sh", DIVIDE),
        ],
        fails_alone: true,
        end: RED,
        ..GOOD
    },
];
