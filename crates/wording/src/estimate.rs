//! An estimate as a sentence, with its basis.

use signalbox_domain::queue::{Basis, Estimate, Overdue};
use signalbox_domain::time::Span;

use super::wait;

/// The estimate with its basis, or why there is none. Without a full stop.
pub fn estimate_sentence(estimate: &Estimate) -> String {
    let why = match &estimate.basis {
        Basis::Runs { usual, overdue } => return about(estimate, *usual, overdue.as_ref()),
        Basis::NotInQueue => "it is not in the queue".into(),
        Basis::Waits(reason) => {
            reason.as_ref().map(|reason| wait(reason).sentence).unwrap_or_default()
        }
        Basis::Paused => "the queue is paused".into(),
        Basis::NoRuns => "no test run has passed in this queue yet".into(),
    };
    format!("no estimate: {why}")
}

fn about(estimate: &Estimate, usual: Span, overdue: Option<&Overdue>) -> String {
    let ahead = match estimate.ahead.len() {
        0 => "nothing is ahead".to_owned(),
        1 => "1 pull request is ahead".to_owned(),
        more => format!("{more} pull requests are ahead"),
    };
    let overdue = overdue.map_or_else(String::new, |overdue| {
        let whose = overdue.pr.map_or("its".to_owned(), |pr| format!("#{pr}'s"));
        format!(", {whose} test run is overdue (running {})", words(overdue.running))
    });
    let runs = match estimate.runs {
        1 => "the only earlier test run".to_owned(),
        runs => format!("{runs} earlier test runs"),
    };
    let time = estimate.time.map(words).unwrap_or_default();
    format!("about {time}: {ahead}{overdue}, and {runs} took {} (median)", words(usual))
}

fn words(span: Span) -> String {
    let seconds = span.millis() / 1_000;
    let (number, unit) = match seconds {
        ..90 => (seconds, "second"),
        90..5_400 => ((seconds + 30) / 60, "minute"),
        5_400.. => ((seconds + 1_800) / 3_600, "hour"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::PrNumber;

    use super::*;

    #[test]
    fn an_estimate_has_its_basis() {
        let of = |time: u32, runs, ahead: &[u32], usual: u32, overdue| {
            estimate_sentence(&Estimate {
                time: Some(Span::seconds(time)),
                runs,
                ahead: ahead.iter().copied().map(PrNumber).collect(),
                basis: Basis::Runs { usual: Span::seconds(usual), overdue },
            })
        };
        assert_eq!(
            of(1_080, 3, &[1, 2, 3, 4], 360, None),
            "about 18 minutes: 4 pull requests are ahead, and 3 earlier test runs took 6 minutes (median)"
        );
        assert_eq!(
            of(61, 1, &[], 61, None),
            "about 61 seconds: nothing is ahead, and the only earlier test run took 61 seconds (median)"
        );
        let late = |pr| Some(Overdue { pr, running: Span::minutes(31) });
        let own = of(9, 2, &[], 9, late(None));
        assert!(own.contains(", its test run is overdue (running 31 minutes)"), "{own}");
        let other = of(9, 2, &[1], 9, late(Some(PrNumber(1))));
        assert!(other.contains(", #1's test run is overdue (running 31 minutes)"), "{other}");
        let none = Estimate { time: None, runs: 0, ahead: Vec::new(), basis: Basis::NoRuns };
        let said = "no estimate: no test run has passed in this queue yet";
        assert_eq!(estimate_sentence(&none), said);
    }
}
