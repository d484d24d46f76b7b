//! A small checker of replies against shapes that are written by hand, apart from what the server
//! says about itself.

use serde_json::Value;
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::EnumCase;

/// What a value must be.
pub(crate) enum Shape {
    /// Whatever it is.
    Anything,
    /// A string.
    Text,
    /// A boolean.
    Flag,
    /// A whole number, not negative and written without a fraction.
    Count,
    /// A UUID.
    Uuid,
    /// A time in UTC with milliseconds.
    Time,
    /// One of these, written here in lower case, in the case of the token.
    Word(&'static [&'static str]),
    /// Any word in the case of the token.
    AnyWord,
    /// One of these, in upper case for everyone.
    Shouted(&'static [&'static str]),
    /// One of these, as they are.
    Fixed(&'static [&'static str]),
    /// May be null.
    OrNull(Box<Self>),
    /// May be absent from its object; never null.
    Optional(Box<Self>),
    /// A list.
    List(Box<Self>),
    /// An object with exactly these keys.
    Object(Vec<(&'static str, Self)>),
}

impl Shape {
    pub(crate) fn or_null(shape: Self) -> Self {
        Self::OrNull(Box::new(shape))
    }

    pub(crate) fn optional(shape: Self) -> Self {
        Self::Optional(Box::new(shape))
    }

    pub(crate) fn list(shape: Self) -> Self {
        Self::List(Box::new(shape))
    }
}

/// Adds an error for each deviation from the shape.
pub(crate) fn check(
    value: &Value,
    shape: &Shape,
    case: EnumCase,
    at: &str,
    complaints: &mut Vec<String>,
) {
    let text = value.as_str();
    let in_case = |word: &str| match case {
        EnumCase::Upper => word.to_uppercase(),
        EnumCase::Lower => word.to_lowercase(),
    };
    let is_time = |text: &str| {
        Timestamp::parse(text).is_some_and(|time| time.to_string() == text) && text.len() == 24
    };
    let is_uuid =
        |text: &str| text.len() == 36 && text.bytes().filter(|it| *it == b'-').count() == 4;
    let good = match shape {
        Shape::Anything => true,
        Shape::Text => value.is_string(),
        Shape::Flag => value.is_boolean(),
        Shape::Count => value.is_u64(),
        Shape::Uuid => text.is_some_and(is_uuid),
        Shape::Time => text.is_some_and(is_time),
        Shape::Word(words) => text.is_some_and(|text| words.iter().any(|it| in_case(it) == text)),
        Shape::AnyWord => text.is_some_and(|text| in_case(text) == text && !text.contains(' ')),
        Shape::Shouted(words) | Shape::Fixed(words) => {
            text.is_some_and(|text| words.contains(&text))
        }
        Shape::OrNull(inner) => {
            if !value.is_null() {
                check(value, inner, case, at, complaints);
            }
            true
        }
        Shape::Optional(inner) => {
            check(value, inner, case, at, complaints);
            true
        }
        Shape::List(inner) => {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                check(item, inner, case, &format!("{at}/{index}"), complaints);
            }
            value.is_array()
        }
        Shape::Object(keys) => {
            object(value, keys, case, at, complaints);
            value.is_object()
        }
    };
    if !good {
        complaints.push(format!("{at} is {value}"));
    }
}

fn object(
    value: &Value,
    keys: &[(&'static str, Shape)],
    case: EnumCase,
    at: &str,
    complaints: &mut Vec<String>,
) {
    for (key, shape) in keys {
        match (value.get(key), shape) {
            (Some(value), shape) => check(value, shape, case, &format!("{at}/{key}"), complaints),
            (None, Shape::Optional(_)) => {}
            (None, _) => complaints.push(format!("{at}/{key} is missing")),
        }
    }
    let known = |key: &String| keys.iter().any(|(known, _)| known == key);
    let found = value.as_object().into_iter().flat_map(|it| it.keys());
    complaints.extend(found.filter(|key| !known(key)).map(|key| format!("{at}/{key} is unknown")));
}

/// Words in upper case anywhere in a reply, but where the shape or the key says that they are so
/// for everyone: conclusions of checks.
pub(crate) fn shouted(value: &Value, shape: &Shape, at: &str) -> Vec<String> {
    if let Shape::Shouted(_) = shape {
        return Vec::new();
    }
    match value {
        Value::Object(object) => object
            .iter()
            .filter(|(key, _)| *key != "conclusion")
            .flat_map(|(key, value)| {
                let known = if let Shape::Object(keys) = unwrapped(shape) {
                    keys.iter().find(|(known, _)| known == key)
                } else {
                    None
                };
                let inner = known.map_or(&Shape::Anything, |(_, shape)| unwrapped(shape));
                shouted(value, inner, &format!("{at}/{key}"))
            })
            .collect(),
        Value::Array(items) => {
            let inner =
                if let Shape::List(inner) = unwrapped(shape) { inner } else { &Shape::Anything };
            let numbered = items.iter().enumerate();
            numbered.flat_map(|(index, it)| shouted(it, inner, &format!("{at}/{index}"))).collect()
        }
        Value::String(text) => {
            let loud = |c: char| c.is_ascii_uppercase() || c == '_';
            let is_word = text.len() > 2 && text.chars().all(loud);
            is_word.then(|| format!("{at} is {text} in upper case")).into_iter().collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn unwrapped(shape: &Shape) -> &Shape {
    match shape {
        Shape::OrNull(inner) | Shape::Optional(inner) => unwrapped(inner),
        shape => shape,
    }
}
