//! Kinds of addresses that are not on the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(parts: [u16; 3], last: u16, length: u8) -> Ipv6Net {
    let [a, b, c] = parts;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, last), length)
}

/// The more special kinds come first.
const V4: [(Ipv4Net, &str); 18] = [
    (v4(169, 254, 169, 254, 32), "a cloud metadata address"),
    (v4(100, 100, 100, 200, 32), "a cloud metadata address"),
    (v4(192, 0, 0, 192, 32), "a cloud metadata address"),
    (v4(168, 63, 129, 16, 32), "a cloud metadata address"),
    (v4(0, 0, 0, 0, 8), "an unspecified address"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    (v4(100, 64, 0, 0, 10), "a shared provider address"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 0, 0, 0, 24), "a reserved address"),
    (v4(192, 0, 2, 0, 24), "a documentation address"),
    (v4(192, 88, 99, 0, 24), "a reserved address"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(198, 18, 0, 0, 15), "a benchmark address"),
    (v4(198, 51, 100, 0, 24), "a documentation address"),
    (v4(203, 0, 113, 0, 24), "a documentation address"),
    (v4(224, 0, 0, 0, 3), "a multicast or reserved address"),
];

/// The part of IPv6 that is public, as far as it was given out.
const GLOBAL: Ipv6Net = v6([0x2000, 0, 0], 0, 3);

const V6: [(Ipv6Net, &str); 15] = [
    (v6([0xfd00, 0x0ec2, 0], 0x254, 128), "a cloud metadata address"),
    (v6([0, 0, 0], 0, 128), "an unspecified address"),
    (v6([0, 0, 0], 1, 128), "a loopback address"),
    (v6([0x64, 0xff9b, 0], 0, 96), "an address with an embedded IPv4 address"),
    (v6([0x64, 0xff9b, 1], 0, 48), "an address with an embedded IPv4 address"),
    (v6([0, 0, 0], 0, 8), "an address with an embedded IPv4 address, or reserved"),
    (v6([0xfc00, 0, 0], 0, 7), "a private address"),
    (v6([0xfe80, 0, 0], 0, 10), "a link-local address"),
    (v6([0xfec0, 0, 0], 0, 10), "a private address"),
    (v6([0xff00, 0, 0], 0, 8), "a multicast address"),
    (v6([0x2001, 0, 0], 0, 32), "an address with an embedded IPv4 address"),
    (v6([0x2001, 0, 0], 0, 23), "a reserved address"),
    (v6([0x2001, 0x0db8, 0], 0, 32), "a documentation address"),
    (v6([0x2002, 0, 0], 0, 16), "an address with an embedded IPv4 address"),
    (v6([0x3fff, 0, 0], 0, 20), "a documentation address"),
];

/// Why an address is not one on the public internet; `None`: it is.
pub(super) fn kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => {
            V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, kind)| *kind)
        }
        IpAddr::V6(address) => {
            let named = V6.iter().find(|(network, _)| network.contains(&address));
            let named = named.map(|(_, kind)| *kind);
            named.or_else(|| (!GLOBAL.contains(&address)).then_some("a reserved address"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn public_addresses_have_no_kind() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.167.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:4860:4860::8888",
        ] {
            assert_eq!(kind(text.parse().expect("an address")), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn special_addresses_of_the_standard_library_are_refused(bits: u32, high: u128) {
            let address = Ipv4Addr::from_bits(bits);
            let special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_documentation()
                || address.is_unspecified();
            prop_assert!(!special || kind(IpAddr::V4(address)).is_some(), "{}", address);
            // An IPv4 address inside of an IPv6 one is refused, whatever it is.
            prop_assert!(kind(IpAddr::V6(address.to_ipv6_mapped())).is_some());
            prop_assert!(kind(IpAddr::V6(address.to_ipv6_compatible())).is_some());
            let embedded = |prefix: u128| Ipv6Addr::from_bits(prefix | u128::from(bits));
            prop_assert!(kind(IpAddr::V6(embedded(0x0064_ff9b << 96))).is_some());
            let six_to_four = 0x2002_u128 << 112 | u128::from(bits) << 80 | high >> 48;
            prop_assert!(kind(IpAddr::V6(Ipv6Addr::from_bits(six_to_four))).is_some());
            let address = Ipv6Addr::from_bits(high);
            let special = address.is_loopback() || address.is_multicast()
                || address.is_unique_local() || address.is_unicast_link_local();
            prop_assert!(!special || kind(IpAddr::V6(address)).is_some(), "{}", address);
        }
    }
}
