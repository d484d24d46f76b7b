//! The tool that a change of a queue came from, by the headers of the request.

use std::convert::Infallible;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::{HeaderMap, USER_AGENT};
use actix_web::{FromRequest, HttpRequest};
use signalbox_domain::queue::ChangeSource;
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

/// The header in which a tool names itself.
const SOURCE: &str = "x-source";
/// The names of tools that manage queues by a configuration, in lower case.
const TERRAFORM: [&str; 2] = ["terraform", "opentofu"];

/// The tool that a request came from.
pub(crate) struct Source(pub(crate) ChangeSource);

fn source(headers: &HeaderMap) -> ChangeSource {
    let names = [SOURCE, USER_AGENT.as_str()].into_iter().flat_map(|name| headers.get_all(name));
    let mut names = names.map(|name| String::from_utf8_lossy(name.as_bytes()).to_lowercase());
    let is_terraform = |name: String| TERRAFORM.iter().any(|tool| name.contains(tool));
    if names.any(is_terraform) { ChangeSource::Terraform } else { ChangeSource::Direct }
}

impl FromRequest for Source {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self(source(request.headers()))))
    }
}

/// The description of the header.
impl IntoParams for Source {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "The tool that sends the request. If it contains `terraform` or `opentofu`, in any case, \
             the queue is marked as managed by Terraform; a later change without it is drift. \
             `User-Agent` is read in the same way.";
        let parameter = ParameterBuilder::new()
            .name(SOURCE)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .example(Some("terraform".into()))
            .build();
        vec![parameter]
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn terraform_and_opentofu_are_recognized_in_either_header_and_any_case() {
        let sent = |name: &'static str, value: &'static str| {
            source(TestRequest::post().insert_header((name, value)).to_http_request().headers())
        };
        for (name, value) in [
            ("x-source", "terraform"),
            ("X-Source", "Terraform"),
            ("x-source", "my-opentofu-wrapper"),
            ("user-agent", "HashiCorp Terraform/1.9.0"),
            ("user-agent", "OpenTofu/1.8"),
        ] {
            assert_eq!(sent(name, value), ChangeSource::Terraform, "{name}: {value}");
        }
        for (name, value) in [
            ("x-source", "curl-sample"),
            ("x-source", ""),
            ("user-agent", "curl/8.5.0"),
            ("x-client", "terraform"),
        ] {
            assert_eq!(sent(name, value), ChangeSource::Direct, "{name}: {value}");
        }
        let both = TestRequest::post()
            .insert_header(("user-agent", "curl/8.5.0"))
            .insert_header(("x-source", "terraform"));
        assert_eq!(source(both.to_http_request().headers()), ChangeSource::Terraform);
    }
}
