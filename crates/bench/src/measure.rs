//! Rounds, medians, and floor and product in turn.

use std::time::Duration;

use crate::failure::Failure;

/// Costs of one operation in microseconds, one for each round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) floor: Vec<f64>,
    pub(crate) product: Vec<f64>,
}

/// Lets floor and product take turns. Each returns what one operation cost, in microseconds. One
/// turn of each comes first and is not counted.
pub(crate) async fn in_turn(
    rounds: u32,
    mut floor: impl AsyncFnMut() -> Result<f64, Failure>,
    mut product: impl AsyncFnMut() -> Result<f64, Failure>,
) -> Result<Turns, Failure> {
    let mut turns = Turns::default();
    for round in 0..=rounds {
        let (one, other) = (floor().await?, product().await?);
        if round > 0 {
            turns.floor.push(one);
            turns.product.push(other);
        }
    }
    Ok(turns)
}

/// Microseconds that one of `count` operations took.
pub(crate) fn micros_each(took: Duration, count: usize) -> f64 {
    took.as_secs_f64() * 1e6 / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX))
}

/// The value that so many of a hundred do not exceed. 0 of no values.
pub(crate) fn percentile(values: &mut [f64], of_hundred: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * of_hundred / 100).copied().unwrap_or_default()
}

/// The middle value; the mean of the two in the middle of an even number. 0 of no values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    if sorted.len() % 2 == 1 {
        at(middle)
    } else {
        f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        for (values, middle) in
            [(&[3.0, 1.0, 2.0][..], 2.0), (&[4.0, 1.0, 2.0, 3.0], 2.5), (&[7.0], 7.0), (&[], 0.0)]
        {
            assert!((median(values) - middle).abs() < 1e-9, "{values:?}");
        }
    }

    #[test]
    fn a_cost_is_shared_by_the_operations() {
        assert!((micros_each(Duration::from_millis(1), 4) - 250.0).abs() < 1e-9);
    }
}
