//! One operation a file. To add one: write its file, and name it in `all`.

mod candidate;
mod day;
mod flaky_disk;
mod flaky_growth;
mod flaky_ingest;
mod flaky_large;
mod flaky_lists;
mod get_queue;
mod idle;
mod overload;
mod pages;
mod parse_reports;
mod planner;
mod scrape;
mod several_servers;
mod startup;
mod submit;
mod targets;
mod token_check;

use async_trait::async_trait;

use crate::failure::Failure;
use crate::report::Report;
use crate::setup::Setup;

/// Something that is measured.
#[async_trait(?Send)]
pub(crate) trait Operation {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Prepares its data, measures, and adds the figures to the report.
    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure>;
}

/// Every operation, in the order of the report.
fn all() -> Vec<Box<dyn Operation>> {
    vec![
        Box::new(planner::Planner),
        Box::new(targets::TargetSets),
        Box::new(submit::Submit),
        Box::new(several_servers::SeveralServers),
        Box::new(get_queue::GetQueue),
        Box::new(overload::Overload),
        Box::new(token_check::TokenCheck),
        Box::new(scrape::Scrape),
        Box::new(candidate::Candidates),
        Box::new(day::Day),
        Box::new(startup::Startup),
        Box::new(idle::Idle),
        Box::new(pages::Pages),
        Box::new(parse_reports::ParseReports),
        Box::new(flaky_ingest::FlakyIngest),
        Box::new(flaky_growth::FlakyGrowth),
        Box::new(flaky_large::FlakyLarge),
        Box::new(flaky_disk::FlakyDisk),
        Box::new(flaky_lists::FlakyLists),
        Box::new(flaky_lists::FlakyPaging),
    ]
}

/// The operations of these names; all of them if none is given.
pub(crate) fn wanted(names: &[String]) -> Result<Vec<Box<dyn Operation>>, Failure> {
    let known: Vec<&str> = all().iter().map(|it| it.name()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let words = format!("is none of the operations {}", known.join(", "));
        return Err(Failure::new(unknown, words));
    }
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|it| it == name);
    Ok(all().into_iter().filter(|it| is_wanted(it.name())).collect())
}
