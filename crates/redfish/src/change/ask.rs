//! The request that asks for a change: the way back of [`super::parse`], for clients.

use super::{Change, JobAction, action_name, create};
use crate::routes::{Method, Resource};
use crate::service::uri;
use crate::view::{Array, CreateArray, CreateExport, CreateVolume};
use serde_json::{Map, Value, json};

/// What is sent for a change.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// How.
    pub method: Method,
    /// To where.
    pub uri: String,
    /// With what.
    pub body: Option<Value>,
}

/// What is known of what a change names.
pub struct Known<'a> {
    /// Arrays, with their volumes and exports.
    pub arrays: &'a [Array],
    /// The URI of the drive that has a path.
    pub drive: &'a dyn Fn(&str) -> Option<String>,
}

/// The request for a change; none if it names what is not known. Whether an array is only planned
/// is not in it.
pub fn request(change: &Change, known: &Known<'_>) -> Option<Request> {
    let pool = |array: &str| Some(known.array(array)?.uuid.as_str()).map(uri::pool);
    Some(match change {
        Change::CreateArray(request) => post(uri::POOLS, known.pool_body(request)?),
        Change::DeleteArray { array } => delete(pool(array)?),
        Change::Stop { array } => act(&pool(array)?, Resource::Stop, json!({}))?,
        Change::Assemble { array, request } => {
            let (degraded, loss) = (request.start_degraded, request.accept_loss);
            let body = json!({"StartDegraded": degraded, "AcceptLoss": loss});
            act(&pool(array)?, Resource::Assemble, body)?
        }
        Change::FailDrive { array, request } => {
            let slot =
                request.drive.strip_prefix("slot:").and_then(|slot| slot.parse::<u16>().ok());
            let body = match slot {
                Some(slot) => json!({"Slot": slot}),
                None => json!({"Drive": known.drive(&request.drive)?}),
            };
            act(&pool(array)?, Resource::FailDrive, body)?
        }
        Change::ReplaceDrive { array, request } => {
            let with = known.drive(&request.with)?;
            let overwrite = known.drives(&request.overwrite)?;
            let body = json!({"Slot": request.slot, "With": with, "Overwrite": overwrite});
            act(&pool(array)?, Resource::ReplaceDrive, body)?
        }
        Change::Scrub { array, request } => {
            let mode = if request.repair { "Repair" } else { "Check" };
            let body = json!({"Mode": mode, "TrustData": request.trust_data});
            act(&pool(array)?, Resource::Scrub, body)?
        }
        Change::CreateVolume(request) => post(uri::VOLUMES, known.volume_body(request)?),
        Change::CreateVolumeOnDrives { array, size_bytes } => {
            post(uri::VOLUMES, known.on_drives_body(array, *size_bytes)?)
        }
        Change::ResizeVolume { array, volume, request } => {
            let mut body = json!({"CapacityBytes": request.size_bytes});
            if request.shrink {
                set(&mut body, "Oem", json!({"Palisade": {"Shrink": true}}));
            }
            let uri = known.volume(array, volume)?;
            Request { method: Method::Patch, uri, body: Some(body) }
        }
        Change::DeleteVolume { array, volume } => delete(known.volume(array, volume)?),
        Change::CreateExport(request) => known.export_request(request)?,
        Change::DeleteExport { id } => delete(known.export(id)?),
        Change::Job { id, action, .. } => {
            let resource = match action {
                JobAction::Suspend => Resource::Suspend,
                JobAction::Resume => Resource::Resume,
                JobAction::Cancel => Resource::Cancel,
            };
            act(&uri::job(id), resource, json!({}))?
        }
        Change::Wipe(request) => {
            let drive = (known.drive)(&request.path)?;
            act(&drive, Resource::Wipe, json!({"Overwrite": request.overwrite}))?
        }
        Change::FindDrives { paths } => {
            act(uri::STORAGE, Resource::FindDrives, json!({"Paths": paths}))?
        }
    })
}

fn post(uri: impl Into<String>, body: Value) -> Request {
    Request { method: Method::Post, uri: uri.into(), body: Some(body) }
}

const fn delete(uri: String) -> Request {
    Request { method: Method::Delete, uri, body: None }
}

/// An action on what is at a URI.
fn act(of: &str, resource: Resource, body: Value) -> Option<Request> {
    let name = action_name(resource)?;
    let own = if name.starts_with("Palisade") { "Oem/" } else { "" };
    Some(post(format!("{of}/Actions/{own}{name}"), body))
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

impl Known<'_> {
    /// An array, by its UUID.
    fn array(&self, uuid: &str) -> Option<&Array> {
        self.arrays.iter().find(|array| array.uuid.eq_ignore_ascii_case(uuid))
    }

    /// The URI of a volume, by its array's UUID and its name.
    fn volume(&self, array: &str, name: &str) -> Option<String> {
        let volume = self.array(array)?.volumes.iter().find(|volume| volume.name == name)?;
        Some(uri::volume(&volume.uuid))
    }

    /// The URI of an export: `ARRAY-UUID:NUMBER`.
    fn export(&self, id: &str) -> Option<String> {
        let (array, number) = id.rsplit_once(':')?;
        let number = number.parse().ok()?;
        let array = self.array(array)?;
        let is_it = |id: &str| uri::export_number(id) == Some(number);
        let export = array.exports.iter().find(|export| is_it(&export.id))?;
        let fabric = if export.nvme.is_some() { "nvme" } else { "nbd" };
        Some(uri::connection(fabric, &uri::connection_id(&array.uuid, number)))
    }

    fn drive(&self, path: &str) -> Option<Value> {
        Some(json!({"@odata.id": (self.drive)(path)?}))
    }

    fn drives(&self, paths: &[String]) -> Option<Vec<Value>> {
        paths.iter().map(|path| self.drive(path)).collect()
    }

    fn pool_body(&self, request: &CreateArray) -> Option<Value> {
        let mut own = json!({
            "Level": request.level,
            "StripSizeBytes": request.strip_bytes,
            "Overwrite": self.drives(&request.overwrite)?,
        });
        if let Some(bytes) = request.block_bytes {
            set(&mut own, "BlockSizeBytes", json!(bytes));
        }
        let drives = self.drives(&request.drives)?;
        let mut body = json!({
            "Name": request.name,
            "CapacitySources": [{"ProvidingDrives": {"Members": drives}}],
            "Oem": {"Palisade": own},
        });
        if let Some(raid) = create::raid_type(&request.level) {
            set(&mut body, "SupportedRAIDTypes", json!([raid]));
        }
        Some(body)
    }

    fn volume_body(&self, request: &CreateVolume) -> Option<Value> {
        let pool = uri::pool(&self.array(&request.array)?.uuid);
        Some(json!({
            "Name": request.name,
            "CapacityBytes": request.size_bytes,
            "CapacitySources": [{"ProvidingPools": {"Members": [{"@odata.id": pool}]}}],
        }))
    }

    fn on_drives_body(&self, array: &CreateArray, size_bytes: Option<u64>) -> Option<Value> {
        let mut body = json!({
            "Name": array.name,
            "RAIDType": create::raid_type(&array.level)?,
            "Links": {"Drives": self.drives(&array.drives)?},
            "StripSizeBytes": array.strip_bytes,
            "Oem": {"Palisade": {"Overwrite": self.drives(&array.overwrite)?}},
        });
        if let Some(bytes) = size_bytes {
            set(&mut body, "CapacityBytes", json!(bytes));
        }
        Some(body)
    }

    fn export_request(&self, request: &CreateExport) -> Option<Request> {
        let volume = self.volume(&request.array, &request.volume)?;
        let mut own = Map::new();
        let mut put = |key: &str, value: Value| own.insert(key.to_owned(), value);
        let fabric = match &request.nbd {
            Some(listener) => {
                put("Listeners", json!([listener]));
                uri::NBD_CONNECTIONS
            }
            None => {
                put("Listeners", json!(request.nvme_tcp));
                put("Hosts", json!(request.hosts));
                put("AnyHost", json!(request.any_host));
                put("Advertise", json!(request.advertise));
                if let Some(subsystem) = &request.subsystem {
                    put("Subsystem", json!(subsystem));
                }
                uri::NVME_CONNECTIONS
            }
        };
        let info = json!([{"Volume": {"@odata.id": volume}}]);
        Some(post(fabric, json!({"VolumeInfo": info, "Oem": {"Palisade": own}})))
    }
}
