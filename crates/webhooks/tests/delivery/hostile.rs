//! No way in through a webhook: hostile URLs, names that lead inside, names that change.

use std::net::IpAddr;
use std::sync::Arc;

use signalbox_domain::webhook::{Outcome, Sent};
use signalbox_webhooks::{Guard, Refused};

use crate::support::{Names, Receiver, poster, send};

/// URLs that are refused before anything is looked up.
const REFUSED: &[&str] = &[
    // No TLS, other schemes, no host at all.
    "http://hooks.test/",
    "ftp://hooks.test/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "javascript:alert(1)",
    "data:text/plain,x",
    "//hooks.test/",
    "hooks.test",
    "https://",
    "https:///",
    "https://?x",
    "",
    // Users, ports and fragments.
    "https://user@hooks.test/",
    "https://user:password@hooks.test/",
    "https://:@hooks.test/",
    "https://@hooks.test/",
    "https://hooks.test@127.0.0.1/",
    "https://hooks.test:0/",
    "https://hooks.test:65536/",
    "https://hooks.test/#fragment",
    // Loopback in every form.
    "https://127.0.0.1/",
    "https://127.0.0.1:8443/",
    "https://127.1/",
    "https://127.0.1/",
    "https://127.255.255.254/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.1./",
    "https://%31%32%37.0.0.1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    // Unspecified.
    "https://0/",
    "https://0.0.0.0/",
    "https://0.1.2.3/",
    "https://[::]/",
    // Private, shared, link-local.
    "https://10.0.0.1/",
    "https://10.255.255.255/",
    "https://167772161/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.0.1/",
    "https://0xc0a80001/",
    "https://100.64.0.1/",
    "https://100.127.255.255/",
    "https://169.254.1.1/",
    "https://[fc00::1]/",
    "https://[fd12:3456:789a::1]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fec0::1]/",
    // Metadata services.
    "https://169.254.169.254/latest/meta-data/",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://0251.0376.0251.0376/",
    "https://[fd00:ec2::254]/",
    "https://[::ffff:169.254.169.254]/",
    "https://100.100.100.200/",
    "https://168.63.129.16/",
    "https://192.0.0.192/",
    // IPv4 inside of IPv6, also a public one.
    "https://[::ffff:8.8.8.8]/",
    "https://[64:ff9b::8.8.8.8]/",
    "https://[64:ff9b::10.0.0.1]/",
    "https://[64:ff9b:1::10.0.0.1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:a00:1::]/",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    // Multicast, broadcast, documentation, benchmarks, reserved.
    "https://224.0.0.1/",
    "https://239.255.255.250/",
    "https://255.255.255.255/",
    "https://240.0.0.1/",
    "https://192.0.2.1/",
    "https://198.51.100.1/",
    "https://203.0.113.1/",
    "https://198.18.0.1/",
    "https://192.0.0.1/",
    "https://192.88.99.1/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[100::1]/",
    "https://[5f00::1]/",
    // A public address in an unusual form, and tricks of writing.
    "https://134744072/",
    "https://8.8.2056/",
    "https://hooks.test\\@127.0.0.1/",
    "https:\\\\127.0.0.1/",
    "https:127.0.0.1",
    "https:/127.0.0.1/",
    "https://hooks.test\t/",
    "https://hooks.test\r\nHost: inside/",
    " https://hooks.test/",
    "https://hooks.test/ ",
    "https://ho oks.test/",
    "https://hööks.test/",
    "https://h%6fooks.test/",
    "https://256.256.256.256/",
    "https://1.2.3.4.5/",
    "https://hooks.test:x/",
    "https://[::1/",
    "https://<script>/",
    "https://hooks.test*/",
    "https://hooks.test;a.test/",
    "https://hooks..test/",
    "https://.test/",
    "HTTPS://hooks.test/",
    "https:hooks.test/x://hooks.test",
];

#[test]
fn hostile_urls_are_refused() {
    let guard = Guard::default();
    for url in REFUSED {
        assert!(guard.check_url(url).is_err(), "{url:?}");
    }
    assert!(REFUSED.len() >= 60);
}

#[test]
fn plain_urls_are_taken() {
    let guard = Guard::default();
    for url in [
        "https://hooks.test/",
        "https://hooks.test",
        "https://HOOKS.test/Path?key=value&other=%20",
        "https://hooks.test:8443/x",
        "https://xn--hks-snaa.test/a@b",
        "https://8.8.8.8/",
        "https://[2606:4700:4700::1111]/",
        "https://a-b.c_d.test/",
        "https://hooks.test./",
        "https://relay/",
    ] {
        assert!(guard.check_url(url).is_ok(), "{url} {:?}", guard.check_url(url));
    }
}

#[test]
fn only_the_configured_networks_are_allowed() {
    let allowed = ["10.1.0.0/16", "fd12::/16"].map(|it| it.parse().expect("a network")).to_vec();
    let guard = Guard::new(allowed, true);
    for url in
        ["https://10.1.2.3/", "http://10.1.2.3:8080/", "https://[fd12::1]/", "http://a.test/"]
    {
        assert!(guard.check_url(url).is_ok(), "{url}");
    }
    for url in
        ["https://10.2.0.1/", "https://[::ffff:10.1.2.3]/", "http://[fd13::1]/", "ftp://a.test/"]
    {
        assert!(guard.check_url(url).is_err(), "{url}");
    }
}

/// A guard that allows only the loopback address of the receiver.
fn only_receiver() -> Guard {
    Guard::new(vec!["127.0.0.1/32".parse().expect("a network")], true)
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_sent_to() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    for inside in
        ["10.0.0.1", "127.0.0.2", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:127.0.0.1"]
    {
        let names = Arc::new(Names::new(vec![vec![ip(inside)]]));
        let sent = send(&poster(only_receiver(), names), &receiver.url("inside.test")).await;
        assert_eq!(sent.outcome(), Outcome::Forbidden, "{inside} {sent:?}");
        let Sent::Forbidden(words) = sent else { panic!("{sent:?}") };
        assert!(words.contains("webhooks.allow"), "{words}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn one_inside_address_spoils_the_others() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    for mixed in [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "::1"]] {
        let names = Arc::new(Names::new(vec![mixed.map(ip).to_vec()]));
        let sent = send(&poster(only_receiver(), names), &receiver.url("mixed.test")).await;
        assert_eq!(sent.outcome(), Outcome::Forbidden, "{mixed:?} {sent:?}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_is_looked_up_once_for_a_connection_and_never_trusted_again() {
    let receiver =
        Receiver::answering("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            .await;
    let good = vec![ip("127.0.0.1")];
    let names = Arc::new(Names::new(vec![good.clone(), vec![ip("169.254.169.254")], good]));
    let poster = poster(only_receiver(), names.clone());
    let url = receiver.url("rebinding.test");
    let outcomes = [
        (send(&poster, &url).await.outcome(), names.asked(), receiver.connections()),
        (send(&poster, &url).await.outcome(), names.asked(), receiver.connections()),
        (send(&poster, &url).await.outcome(), names.asked(), receiver.connections()),
    ];
    let wanted =
        [(Outcome::Delivered, 1, 1), (Outcome::Forbidden, 2, 1), (Outcome::Delivered, 3, 2)];
    assert_eq!(outcomes, wanted);
}

#[tokio::test]
async fn an_address_in_a_url_is_checked_on_each_try() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let names = Arc::new(Names::new(Vec::new()));
    let sent =
        send(&poster(Guard::new(Vec::new(), true), names.clone()), &receiver.url("127.0.0.1"))
            .await;
    assert_eq!(sent.outcome(), Outcome::Forbidden);
    let sent = send(&poster(only_receiver(), names.clone()), &receiver.url("127.0.0.1")).await;
    assert_eq!((sent.outcome(), names.asked()), (Outcome::Delivered, 0));
}

#[tokio::test]
async fn a_name_that_leads_nowhere_is_no_way() {
    let names = Arc::new(Names::new(vec![Vec::new()]));
    let sent = send(&poster(Guard::default(), names), "https://nowhere.test/").await;
    assert_eq!(sent, Sent::Forbidden(Refused::NoAddress.to_string()));
}
