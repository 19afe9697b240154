//! Why a request was not carried out, as Redfish tells it (DSP0266, "Error responses").

use crate::view::{Error, ErrorCode};
use serde_json::Value;

/// The status of HTTP that stands for a failure.
pub const fn status(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::Failed => 409,
        ErrorCode::Usage => 400,
        ErrorCode::Refused => 403,
    }
}

/// The body of an answer that says why.
pub fn body(error: &Error) -> Value {
    let _ = error;
    Value::Null
}

/// What a body says, for clients.
pub fn read(status: u16, body: &Value) -> Option<Error> {
    let _ = (status, body);
    None
}
