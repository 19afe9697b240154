//! Why a request was not carried out, as Redfish tells it (DSP0266, "Error responses").
//!
//! A [`Refusal`] is a status of HTTP and one message or more. The daemon's own answers
//! ([`Error`]) are messages of `Palisade.1.0` ([`messages`]): the text is `Message`, the hint
//! `Resolution`. All that concerns HTTP, URIs and properties is told by messages of DMTF's `Base`
//! registry, in words of our own. [`read`] turns a body back into an [`Error`].

use crate::messages::{self, Error, ErrorCode, PREFIX, filled};
use crate::told::Planned;
use serde_json::{Value, json};
use std::borrow::Cow;

/// What identifiers of DMTF's messages begin with.
const BASE: &str = "Base.1.19.";

/// The property that holds the messages.
const INFO: &str = "@Message.ExtendedInfo";

/// A message of the `Base` registry: `%1` and so on in the text stand for its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Base {
    name: &'static str,
    status: u16,
    text: &'static str,
    resolution: &'static str,
}

const fn base(
    name: &'static str,
    status: u16,
    text: &'static str,
    resolution: &'static str,
) -> Base {
    Base { name, status, text, resolution }
}

#[allow(missing_docs, reason = "each is named after its message")]
impl Base {
    pub const RESOURCE_MISSING: Self = base(
        "ResourceMissingAtURI",
        404,
        "There is nothing at %1.",
        "Follow the links from /redfish/v1.",
    );
    pub const OPERATION_NOT_ALLOWED: Self = base(
        "OperationNotAllowed",
        405,
        "The resource does not know this method.",
        "Use one of the methods that the header Allow names.",
    );
    pub const MALFORMED_JSON: Self = base(
        "MalformedJSON",
        400,
        "The body is not JSON that can be read.",
        "Correct the body's syntax and send it again.",
    );
    pub const EMPTY_JSON: Self = base(
        "EmptyJSON",
        400,
        "The body has no property.",
        "Send a body with at least one property that can be changed.",
    );
    pub const NO_OPERATION: Self = base(
        "NoOperation",
        400,
        "The body has annotations alone: nothing would be changed.",
        "Send a body with at least one property that can be changed.",
    );
    pub const UNRECOGNIZED_BODY: Self = base(
        "UnrecognizedRequestBody",
        400,
        "The body is not what this request takes.",
        "Send a JSON object with the properties that the schema names.",
    );
    pub const PAYLOAD_TOO_LARGE: Self =
        base("PayloadTooLarge", 413, "The body is too large.", "Send a smaller body.");
    pub const PROPERTY_UNKNOWN: Self = base(
        "PropertyUnknown",
        400,
        "The request does not know the property %1.",
        "Leave the property out.",
    );
    pub const PROPERTY_DUPLICATE: Self = base(
        "PropertyDuplicate",
        400,
        "The property %1 is there more than once.",
        "Give the property once.",
    );
    pub const PROPERTY_MISSING: Self =
        base("PropertyMissing", 400, "The property %1 is missing.", "Give the property.");
    pub const PROPERTY_NOT_WRITABLE: Self = base(
        "PropertyNotWritable",
        400,
        "The property %1 can only be read.",
        "Leave the property out.",
    );
    pub const PROPERTY_TYPE: Self = base(
        "PropertyValueTypeError",
        400,
        "The value %1 of the property %2 has the wrong type.",
        "Give a value of the type that the schema names.",
    );
    pub const PROPERTY_FORMAT: Self = base(
        "PropertyValueFormatError",
        400,
        "The value %1 of the property %2 has the wrong format.",
        "Give a value of the format that the schema names.",
    );
    pub const PROPERTY_VALUE: Self = base(
        "PropertyValueError",
        400,
        "The value of the property %1 can't be taken.",
        "Correct the property's value.",
    );
    pub const PROPERTY_NOT_IN_LIST: Self = base(
        "PropertyValueNotInList",
        400,
        "The value %1 of the property %2 is none of those that can be.",
        "Give one of the values that the schema names.",
    );
    pub const PROPERTY_RANGE: Self = base(
        "PropertyValueOutOfRange",
        400,
        "The value %1 of the property %2 is out of range.",
        "Give a value within the range.",
    );
    pub const PROPERTY_CONFLICT: Self = base(
        "PropertyValueConflict",
        400,
        "The property %1 does not agree with the property %2.",
        "Leave one of the two out, or make them agree.",
    );
    pub const PROPERTY_RESOURCE: Self = base(
        "PropertyValueResourceConflict",
        400,
        "The value %2 of the property %1 does not fit what is at %3.",
        "Name a resource of the kind that the property takes.",
    );
    pub const ARRAY_TOO_LONG: Self = base(
        "ArraySizeTooLong",
        400,
        "The property %1 has more than %2 members.",
        "Give fewer members.",
    );
    pub const ARRAY_TOO_SHORT: Self = base(
        "ArraySizeTooShort",
        400,
        "The property %1 has fewer than %2 members.",
        "Give more members.",
    );
    pub const PARAMETER_UNKNOWN: Self = base(
        "ActionParameterUnknown",
        400,
        "The action %1 does not know the parameter %2.",
        "Leave the parameter out.",
    );
    pub const PARAMETER_DUPLICATE: Self = base(
        "ActionParameterDuplicate",
        400,
        "The action %1 has the parameter %2 more than once.",
        "Give the parameter once.",
    );
    pub const PARAMETER_MISSING: Self = base(
        "ActionParameterMissing",
        400,
        "The action %1 lacks the parameter %2.",
        "Give the parameter.",
    );
    pub const PARAMETER_TYPE: Self = base(
        "ActionParameterValueTypeError",
        400,
        "The value %1 of the parameter %2 of the action %3 has the wrong type.",
        "Give a value of the type that the schema names.",
    );
    pub const PARAMETER_NOT_IN_LIST: Self = base(
        "ActionParameterValueNotInList",
        400,
        "The value %1 of the parameter %2 of the action %3 is none of those that can be.",
        "Give one of the values that the schema names.",
    );
    pub const PARAMETER_VALUE: Self = base(
        "ActionParameterValueError",
        400,
        "The value of the parameter %1 of the action %2 can't be taken.",
        "Correct the parameter's value.",
    );
    pub const PARAMETER_RANGE: Self = base(
        "ActionParameterValueOutOfRange",
        400,
        "The value %1 of the parameter %2 of the action %3 is out of range.",
        "Give a value within the range.",
    );
    pub const QUERY_UNSUPPORTED: Self = base(
        "QueryParameterUnsupported",
        501,
        "The query parameter %1 is not supported.",
        "Use what ProtocolFeaturesSupported of the service root names.",
    );
    pub const QUERY_NOT_HERE: Self = base(
        "QueryNotSupportedOnResource",
        400,
        "The resource does not take this query parameter.",
        "Leave the query parameter out.",
    );
    pub const QUERY_NOT_ON_OPERATION: Self = base(
        "QueryNotSupportedOnOperation",
        400,
        "The method does not take query parameters.",
        "Leave the query parameters out.",
    );
    pub const QUERY_COMBINATION: Self = base(
        "QueryCombinationInvalid",
        400,
        "These query parameters do not go together.",
        "Use one at a time.",
    );
    pub const QUERY_TYPE: Self = base(
        "QueryParameterValueTypeError",
        400,
        "The value %1 of the query parameter %2 has the wrong type.",
        "Give a value of the type that the parameter takes.",
    );
    pub const QUERY_FORMAT: Self = base(
        "QueryParameterValueFormatError",
        400,
        "The value %1 of the query parameter %2 can't be read.",
        "Correct the value's syntax.",
    );
    pub const QUERY_RANGE: Self = base(
        "QueryParameterOutOfRange",
        400,
        "The value %1 of the query parameter %2 is out of the range %3.",
        "Give a value within the range.",
    );
    pub const TOO_MUCH: Self = base(
        "InsufficientStorage",
        507,
        "The answer would be too large.",
        "Ask for less: fewer levels, or fewer members at a time.",
    );
    pub const HEADER_INVALID: Self = base(
        "HeaderInvalid",
        400,
        "The header %1 has a value that can't be used.",
        "Correct the header.",
    );
    pub const HEADER_MISSING: Self = base(
        "HeaderMissing",
        400,
        "The header %1 is missing, or is there more than once.",
        "Send the header once.",
    );
    pub const MALFORMED: Self = base(
        "GeneralError",
        400,
        "The bytes are no request of HTTP/1.1.",
        "Send a request line and headers as RFC 9112 has them.",
    );
    pub const HEADERS_TOO_LARGE: Self = base(
        "GeneralError",
        431,
        "The request line and the headers are too large.",
        "Send at most 16 KiB, and at most 100 headers.",
    );
    pub const OPERATION_TIMEOUT: Self = base(
        "OperationTimeout",
        408,
        "The request did not come whole within its time.",
        "Send the headers within 10 seconds, and the body within 30.",
    );
    pub const SERVICE_UNAVAILABLE: Self = base(
        "ServiceTemporarilyUnavailable",
        503,
        "The daemon has no room for another client or answer now.",
        "Try again in %1 seconds, or close other connections.",
    );
    pub const INSUFFICIENT_PRIVILEGE: Self = base(
        "InsufficientPrivilege",
        403,
        "The account may not do this.",
        "Use an account with the role that this needs.",
    );
    pub const NO_VALID_SESSION: Self = base(
        "NoValidSession",
        401,
        "The session does not exist, or has ended.",
        "Log in: create a session, and send its token.",
    );
    pub const UNAUTHORIZED: Self = base(
        "ResourceAtUriUnauthorized",
        401,
        "%1 can't be had: %2.",
        "Log in with the name and the password of an account that is enabled.",
    );
    pub const PASSWORD_CHANGE_REQUIRED: Self = base(
        "PasswordChangeRequired",
        403,
        "The account has to change its password first: a PATCH of Password at %1.",
        "Send a PATCH with a new Password to the account.",
    );
    pub const SESSION_LIMIT: Self = base(
        "SessionLimitExceeded",
        503,
        "There are as many sessions as there can be.",
        "End a session, or wait until one has ended.",
    );
    pub const SUBSCRIPTION_LIMIT: Self = base(
        "EventSubscriptionLimitExceeded",
        503,
        "There are as many subscriptions to events as there can be.",
        "Delete a subscription that nobody needs.",
    );
    pub const PRECONDITION_FAILED: Self = base(
        "PreconditionFailed",
        412,
        "The resource is no longer as the request supposes.",
        "Read the resource again.",
    );
    pub const INTERNAL: Self =
        base("InternalError", 500, "The daemon could not answer.", "Look into the daemon's log.");
    pub const GENERAL: Self = base(
        "GeneralError",
        400,
        "The request has several mistakes.",
        "See the messages of @Message.ExtendedInfo.",
    );

    /// All of them, each name once.
    pub const ALL: &[Self] = &[
        Self::RESOURCE_MISSING,
        Self::NO_VALID_SESSION,
        Self::UNAUTHORIZED,
        Self::PASSWORD_CHANGE_REQUIRED,
        Self::SESSION_LIMIT,
        Self::SUBSCRIPTION_LIMIT,
        Self::PROPERTY_VALUE,
        Self::OPERATION_NOT_ALLOWED,
        Self::MALFORMED_JSON,
        Self::EMPTY_JSON,
        Self::NO_OPERATION,
        Self::UNRECOGNIZED_BODY,
        Self::PAYLOAD_TOO_LARGE,
        Self::PROPERTY_UNKNOWN,
        Self::PROPERTY_DUPLICATE,
        Self::PROPERTY_MISSING,
        Self::PROPERTY_NOT_WRITABLE,
        Self::PROPERTY_TYPE,
        Self::PROPERTY_FORMAT,
        Self::PROPERTY_NOT_IN_LIST,
        Self::PROPERTY_RANGE,
        Self::PROPERTY_CONFLICT,
        Self::PROPERTY_RESOURCE,
        Self::ARRAY_TOO_LONG,
        Self::ARRAY_TOO_SHORT,
        Self::PARAMETER_UNKNOWN,
        Self::PARAMETER_DUPLICATE,
        Self::PARAMETER_MISSING,
        Self::PARAMETER_TYPE,
        Self::PARAMETER_NOT_IN_LIST,
        Self::PARAMETER_VALUE,
        Self::PARAMETER_RANGE,
        Self::QUERY_UNSUPPORTED,
        Self::QUERY_NOT_HERE,
        Self::QUERY_NOT_ON_OPERATION,
        Self::QUERY_COMBINATION,
        Self::QUERY_TYPE,
        Self::QUERY_FORMAT,
        Self::QUERY_RANGE,
        Self::TOO_MUCH,
        Self::HEADER_INVALID,
        Self::INSUFFICIENT_PRIVILEGE,
        Self::PRECONDITION_FAILED,
        Self::INTERNAL,
        Self::GENERAL,
        Self::HEADER_MISSING,
        Self::OPERATION_TIMEOUT,
        Self::SERVICE_UNAVAILABLE,
    ];
}

impl Base {
    /// The message of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|base| base.name == name)
    }

    /// Its name, with the registry's.
    pub fn id(&self) -> String {
        format!("{BASE}{}", self.name)
    }

    /// The status of HTTP that goes with it.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// What kind of failure it is for a command.
    pub const fn kind(&self) -> ErrorCode {
        kind(self.status)
    }

    /// Its name, without the registry's.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What happened; `%1` and so on stand for arguments.
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// What to do.
    pub const fn resolution(&self) -> &'static str {
        self.resolution
    }
}

/// One reason of a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Names it, with registry and version.
    pub id: String,
    /// What happened.
    pub text: String,
    /// What stands for `%1` and so on in the registry's text.
    pub args: Vec<String>,
    /// What to do.
    pub resolution: String,
    /// Paths of the properties that it is about: JSON pointers in a fragment (RFC 6901).
    pub related: Vec<String>,
}

impl Message {
    /// A message of the `Base` registry.
    pub fn base(base: &Base, args: &[&str]) -> Self {
        Self {
            id: format!("{BASE}{}", base.name),
            text: filled(base.text, args),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            resolution: filled(base.resolution, args),
            related: Vec::new(),
        }
    }

    fn to_json(&self) -> Value {
        let mut json = json!({
            "@odata.type": "#Message.v1_3_0.Message",
            "MessageId": self.id,
            "Message": self.text,
            "MessageArgs": self.args,
            "MessageSeverity": "Critical",
            "Resolution": self.resolution,
        });
        if !self.related.is_empty()
            && let Some(object) = json.as_object_mut()
        {
            object.insert("RelatedProperties".to_owned(), json!(self.related));
        }
        json
    }
}

/// Why a change that destroys data is not done yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unconfirmed {
    /// It came without a token.
    NotAsked,
    /// There is no such token.
    Unknown,
    /// Its token was used.
    Used,
    /// Its token is too old.
    Expired,
    /// Its token was given to somebody else.
    OtherCaller,
    /// Its token was given for another request.
    OtherRequest,
    /// What it is about is no longer as it was planned.
    Outdated,
}

/// Why a request is answered with an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// Why: one reason at least.
    pub messages: Vec<Message>,
    /// After how many seconds the client may try again, where that is told.
    pub retry_after: Option<u64>,
    /// What the body says beside: an object, if anything.
    pub beside: Option<Value>,
}

impl Refusal {
    /// For a reason that the `Base` registry has.
    pub fn base(base: &Base, args: &[&str]) -> Self {
        Self {
            status: base.status,
            messages: vec![Message::base(base, args)],
            beside: None,
            retry_after: None,
        }
    }

    /// With the path of the property that it is about, such as `#/Links/Drives/0`.
    #[must_use]
    pub fn at(mut self, pointer: &str) -> Self {
        for message in &mut self.messages {
            message.related.push(pointer.to_owned());
        }
        self
    }

    /// With other advice.
    #[must_use]
    pub fn advise(mut self, resolution: &str) -> Self {
        for message in &mut self.messages {
            resolution.clone_into(&mut message.resolution);
        }
        self
    }

    /// With another status of HTTP.
    #[must_use]
    pub const fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// With how many seconds the client should wait.
    #[must_use]
    pub const fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// A change that destroys data is not done, but planned: its plan is told beside the reason.
    pub fn planned(why: Unconfirmed, planned: &Planned) -> Self {
        let not_valid = |why: &str| Error::new(&messages::CONFIRMATION_NOT_VALID, &[&why]);
        let error = match why {
            Unconfirmed::NotAsked => Error::new(&messages::CONFIRMATION_REQUIRED, &[]),
            Unconfirmed::Unknown => not_valid("it was not given for a change"),
            Unconfirmed::Used => not_valid("it was used before"),
            Unconfirmed::Expired => not_valid("it is too old"),
            Unconfirmed::OtherCaller => not_valid("it was given to somebody else"),
            Unconfirmed::OtherRequest => not_valid("it was given for another request"),
            Unconfirmed::Outdated => Error::new(&messages::PLAN_CHANGED, &[]),
        };
        let beside = serde_json::to_value(planned).ok();
        Self { beside, ..Self::from(error) }
    }

    /// The reasons of several refusals in one; none if there are none.
    pub fn all(refusals: Vec<Self>) -> Option<Self> {
        let status = refusals.first()?.status;
        let messages = refusals.into_iter().flat_map(|one| one.messages).collect();
        Some(Self { status, messages, beside: None, retry_after: None })
    }

    /// There is nothing at this URI.
    pub fn not_found(uri: &str) -> Self {
        Self::base(&Base::RESOURCE_MISSING, &[uri])
    }

    /// The resource does not know the method. The answer has the header `Allow`.
    pub fn not_allowed() -> Self {
        Self::base(&Base::OPERATION_NOT_ALLOWED, &[])
    }

    /// The body is larger than the daemon takes.
    pub fn too_large() -> Self {
        Self::base(&Base::PAYLOAD_TOO_LARGE, &[])
    }

    /// What came is no request of HTTP.
    pub fn malformed() -> Self {
        Self::base(&Base::MALFORMED, &[])
    }

    /// The headers are larger than the daemon takes.
    pub fn headers_too_large() -> Self {
        Self::base(&Base::HEADERS_TOO_LARGE, &[])
    }

    /// The request did not come whole within its time.
    pub fn too_slow() -> Self {
        Self::base(&Base::OPERATION_TIMEOUT, &[])
    }

    /// There is no room now; there may be in so many seconds.
    pub fn no_room(seconds: u64) -> Self {
        let text = seconds.to_string();
        let refusal = Self::base(&Base::SERVICE_UNAVAILABLE, &[&text]);
        Self { retry_after: Some(seconds), ..refusal }
    }

    /// The daemon made a mistake.
    pub fn internal() -> Self {
        Self::base(&Base::INTERNAL, &[])
    }

    /// Adds its messages to a resource: something was done, and this is to be said of it.
    pub fn annotate(&self, resource: &mut Value) {
        let messages: Vec<Value> = self.messages.iter().map(Message::to_json).collect();
        if let Some(object) = resource.as_object_mut() {
            object.insert(INFO.to_owned(), json!(messages));
        }
    }

    /// The body of the answer.
    pub fn body(&self) -> Value {
        let (code, text) = match self.messages.as_slice() {
            [one] => (one.id.clone(), one.text.clone()),
            _ => (format!("{BASE}{}", Base::GENERAL.name), Base::GENERAL.text.to_owned()),
        };
        let messages: Vec<Value> = self.messages.iter().map(Message::to_json).collect();
        let mut body = json!({ "error": { "code": code, "message": text, INFO: messages } });
        if let (Some(body), Some(Value::Object(beside))) = (body.as_object_mut(), &self.beside) {
            body.extend(beside.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        body
    }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let message = Message {
            id: format!("{PREFIX}{}", error.name),
            text: error.error.clone(),
            args: error.args.clone(),
            resolution: error.hint.clone(),
            related: Vec::new(),
        };
        Self { status: error.status(), messages: vec![message], beside: None, retry_after: None }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// The body of an answer that says why.
pub fn body(error: &Error) -> Value {
    Refusal::from(error).body()
}

/// The name of a message whose identifier is this, without the registry's if it is one that this
/// release knows.
fn name(id: &str) -> Cow<'static, str> {
    let own = id.strip_prefix(PREFIX).and_then(messages::find).map(|entry| entry.name);
    let base = || Some(id.strip_prefix("Base.")?.rsplit('.').next().and_then(Base::find)?.name);
    own.or_else(base).map_or_else(|| Cow::Owned(id.to_owned()), Cow::Borrowed)
}

/// The kind of failure that a message stands for: by its name, else by the status of HTTP.
fn code(id: &str, status: u16) -> ErrorCode {
    match id.strip_prefix(PREFIX).and_then(messages::find) {
        Some(entry) => entry.kind,
        None => kind(status),
    }
}

/// The kind of failure that a status of HTTP stands for.
const fn kind(status: u16) -> ErrorCode {
    match status {
        400 => ErrorCode::Usage,
        401 | 403 => ErrorCode::Refused,
        _ => ErrorCode::Failed,
    }
}

/// What a body says, for clients: its first message. None if it is not a body of an error.
pub fn read(status: u16, body: &Value) -> Option<Error> {
    let error = body.get("error")?;
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    let first = error.get(INFO).and_then(Value::as_array).and_then(|all| all.first());
    let message = first.unwrap_or(&Value::Null);
    let id = text(message, "MessageId").or_else(|| text(error, "code")).unwrap_or_default();
    let args = message.get("MessageArgs").and_then(Value::as_array);
    let arg = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(Error {
        error: text(message, "Message").or_else(|| text(error, "message"))?,
        hint: text(message, "Resolution").unwrap_or_default(),
        code: code(&id, status),
        name: name(&id),
        args: args.into_iter().flatten().map(arg).collect(),
    })
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
