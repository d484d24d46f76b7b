//! Bodies and queries of requests, on mutations of real ones.

use std::io::Write as _;
use std::path::PathBuf;

use actix_web::test::TestRequest;
use actix_web::web::Payload;
use actix_web::{FromRequest, ResponseError};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::FutureExt;
use signalbox_testkit::fuzz::{committed, fuzz};

use crate::body;
use crate::dto::tests::{
    CiRunRequest, CreateMonitorRequest, DecideIncidentRequest, FailingRequest, FlagRequest,
    MuteRequest, OverrideRequest, RunFailuresRequest, TicketRequest, UpdateMonitorRequest,
    UpdateSettingsRequest, WithParameters,
};
use crate::dto::webhooks::{
    CreateWebhookRequest, DeliveriesRequest, ReplayWebhookRequest, RotateWebhookRequest,
    TestWebhookRequest, UpdateWebhookRequest,
};
use crate::dto::{
    AnnounceRequest, AuditQuery, CheckResultRequest, CreateRequest, EntriesRequest, EntryRequest,
    EventsRequest, Form, ListRequest, ListUploadsRequest, Request, ResultsRequest, RunRequest,
    SimulationQuery, SubmitRequest, TargetsRequest, UpdateRequest, position,
};
use crate::encoding::{Encoding, whole};
use crate::holding::Bodies;
use crate::problem::{Code, Problem};

fn check<T: Request + Form>(input: &[u8]) -> Result<(), Problem> {
    body::parse::<T>(input).map(drop)
}

/// Reads a request of one type.
type Reads = fn(&[u8]) -> Result<(), Problem>;

const REQUESTS: [Reads; 29] = [
    check::<AnnounceRequest>,
    check::<CheckResultRequest>,
    check::<CiRunRequest>,
    check::<WithParameters<CreateMonitorRequest>>,
    check::<CreateRequest>,
    check::<CreateWebhookRequest>,
    check::<DecideIncidentRequest>,
    check::<DeliveriesRequest>,
    check::<EntriesRequest>,
    check::<EntryRequest>,
    check::<FailingRequest>,
    check::<FlagRequest>,
    check::<ListRequest>,
    check::<ListUploadsRequest>,
    check::<MuteRequest>,
    check::<OverrideRequest>,
    check::<ReplayWebhookRequest>,
    check::<ResultsRequest>,
    check::<RotateWebhookRequest>,
    check::<RunFailuresRequest>,
    check::<RunRequest>,
    check::<SubmitRequest>,
    check::<TargetsRequest>,
    check::<TestWebhookRequest>,
    check::<TicketRequest>,
    check::<WithParameters<UpdateMonitorRequest>>,
    check::<UpdateRequest>,
    check::<UpdateSettingsRequest>,
    check::<UpdateWebhookRequest>,
];

/// Every request is accepted, or refused with words that are not much longer than it is.
#[test]
fn bodies_of_requests() {
    let corpus = committed("http-body");
    for body in &corpus {
        let is_accepted = REQUESTS.iter().any(|read| read(body).is_ok());
        assert!(is_accepted, "{}", String::from_utf8_lossy(body));
    }
    let words = [
        "null",
        "-1",
        "1.0",
        "1e400",
        "\"\\ud800\"",
        "\"\\u0000\"",
        "[",
        "{",
        "{}",
        "true",
        "\"impactedTargets\":",
        "\"targetBranch\":",
        "18446744073709551616",
    ];
    fuzz("http-body", &corpus, &words, |input| {
        // Two of them for each input, which the input determines.
        let sum: usize = input.iter().map(|byte| usize::from(*byte)).sum();
        for at in [sum % REQUESTS.len(), (sum / 7) % REQUESTS.len()] {
            let Err(problem) = REQUESTS[at](input) else { continue };
            let length = problem.to_string().len();
            assert!(length <= 5_000 + 10 * input.len(), "{at}: {length} of {}", input.len());
        }
    });
}

/// What the queries of lists ask for is bounded.
#[test]
fn queries_of_lists() {
    let words =
        ["after=", "limit=", "cursor=", "type=", "&", "=", "%00", "+", "-1", "9223372036854775808"];
    let corpus = [committed("http-query"), committed("list-place")].concat();
    fuzz("http-query", &corpus, &words, |input| {
        let text = String::from_utf8_lossy(input);
        if let Some(position) = position(&text) {
            assert!(position >= 0 && crate::dto::position(&position.to_string()) == Some(position));
        }
        let given: Vec<(String, String)> = text
            .split('&')
            .filter_map(|it| it.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
            .collect();
        if let Ok(asked) = EventsRequest::of(&given) {
            assert!((1..=1_000).contains(&asked.limit));
            assert!(asked.after.is_none_or(|after| after >= 0));
        }
        if let Ok(asked) = AuditQuery::read(&given) {
            assert!((1..=100).contains(&asked.limit));
        }
        if let Ok(asked) = SimulationQuery::read(&given) {
            assert!((1..=366).contains(&asked.days));
        }
    });
}

fn payload(body: &[u8]) -> Payload {
    let request = TestRequest::default().set_payload(body.to_vec());
    let (request, mut payload) = request.to_http_parts();
    let payload = Payload::from_request(&request, &mut payload).now_or_never();
    payload.expect("ready").expect("a payload")
}

fn decoded(encoding: Encoding, body: &[u8], most: u64) -> Result<Vec<u8>, Problem> {
    let bodies = Bodies::new(PathBuf::new());
    let mut held = bodies.in_memory(Vec::new());
    whole(payload(body), encoding, most, &mut held).now_or_never().expect("it never waits")
}

/// No encoding makes more of a body than is allowed, and what is whole is decoded as it was.
#[test]
fn bodies_in_any_encoding() {
    const MOST: u64 = 16 * 1_024;
    let plain = [committed("http-body").concat(), vec![b'x'; 16 * 1_024], vec![0; 1 << 20]];
    let encode = |encoding, body: &[u8]| match encoding {
        Encoding::Identity => body.to_vec(),
        Encoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(body).expect("encoded");
            encoder.finish().expect("encoded")
        }
        Encoding::Zstd => zstd::encode_all(body, 1).expect("encoded"),
    };
    for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
        let corpus: Vec<Vec<u8>> = plain.iter().map(|it| encode(encoding, it)).collect();
        for (body, encoded) in plain.iter().zip(&corpus) {
            match decoded(encoding, encoded, MOST) {
                Ok(read) => assert_eq!(read, *body),
                Err(problem) => {
                    assert!(body.len() as u64 > MOST, "{problem}");
                    assert_eq!(
                        problem.status_code(),
                        Problem::new(Code::TooLarge, "").status_code()
                    );
                }
            }
        }
        fuzz("encoded-body", &corpus, &["\u{1f}\u{8b}\u{8}", "(\u{b5}/\u{fd}"], |input| {
            if let Ok(read) = decoded(encoding, input, MOST) {
                assert!(read.len() as u64 <= MOST);
            }
        });
    }
}
