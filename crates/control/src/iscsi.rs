//! Exports over iSCSI: what a request has to say, what `palisade services` is told, and what is
//! shown. Who speaks the protocol is no part of the daemon ([`crate::services`]).

use crate::address::{check_advertise, of_server, told_instead};
use crate::chance;
use ::iscsi::{Account, Identity, Name, Secret, UNIT};
use format::limits::SECRETS_END;
use format::{ExportAddress, IscsiExport, IscsiServer, Listener};
use redfish::access;
use redfish::messages as say;
use redfish::view::{self, Error};
use services::wire::{Iscsi, Known, Server};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use units::Uuid;

/// Whether a request says what it has to, in a possible form.
///
/// # Errors
/// It does not, or not in such a form.
pub fn check(request: &view::CreateIscsi) -> Result<(), Error> {
    let view::CreateIscsi { portals, initiators, advertise, user, secret, .. } = request;
    if !advertise.is_empty() && advertise.len() != portals.len() {
        return Err(Error::new(&say::PORTAL_COUNT, &[&advertise.len(), &portals.len()]));
    }
    if initiators.is_empty() {
        return Err(Error::new(&say::NO_INITIATORS, &[]));
    }
    let several: BTreeSet<SocketAddr> =
        portals.iter().map(|text| portal(text)).collect::<Result<_, _>>()?;
    advertise.iter().try_for_each(|text| check_advertise(text))?;
    let names: BTreeSet<Name> =
        initiators.iter().map(|text| name(text)).collect::<Result<_, _>>()?;
    if several.len() < portals.len() || names.len() < initiators.len() {
        return Err(Error::new(&say::PORTAL_TWICE, &[]));
    }
    match (user, secret) {
        (Some(user), Some(secret)) => check_account(user, secret),
        (None, None) => Ok(()),
        _ => Err(Error::new(&say::CHAP_HALF, &[])),
    }
}

fn portal(text: &str) -> Result<SocketAddr, Error> {
    of_server(text, &say::BAD_PORTAL)
}

fn name(text: &str) -> Result<Name, Error> {
    Name::new(text).map_err(|why| Error::new(&say::BAD_IQN, &[&text, &why]))
}

fn check_account(user: &str, secret: &access::Secret) -> Result<(), Error> {
    let secret = Secret::new(secret.reveal());
    let secret = secret.map_err(|why| Error::new(&say::CHAP_SECRET, &[&why]))?;
    Account::new(user, secret).map(drop).map_err(|why| Error::new(&say::CHAP_USER, &[&user, &why]))
}

/// What a request that was checked asks for. Names and addresses are recorded in one form each.
///
/// # Errors
/// It was not checked.
pub fn wanted(request: &view::CreateIscsi) -> Result<ExportAddress, Error> {
    let listener = |(at, text): (usize, &String)| {
        let advertise = request.advertise.get(at).cloned();
        Ok(Listener { address: portal(text)?.to_string(), advertise })
    };
    let initiators = request.initiators.iter().map(|text| Ok(name(text)?.to_string()));
    Ok(ExportAddress::Iscsi(IscsiExport {
        portals: request.portals.iter().enumerate().map(listener).collect::<Result<_, Error>>()?,
        initiators: initiators.collect::<Result<_, Error>>()?,
        user: request.user.clone(),
        secret: request.user.as_ref().map_or(Ok(0), |_| secret_number())?,
        server: match request.server {
            None => IscsiServer::Any,
            Some(view::IscsiServer::Lio) => IscsiServer::Lio,
            Some(view::IscsiServer::Tgt) => IscsiServer::Tgt,
        },
    }))
}

/// Tells a secret from those that others had before it.
fn secret_number() -> Result<u32, Error> {
    let [one, two, three] =
        chance::bytes().map_err(|error| Error::new(&say::CHAP_NOT_KEPT, &[&error]))?;
    Ok(u32::from_le_bytes([one, two, three, 0]) % SECRETS_END)
}

/// What `palisade services` is to serve. Without the secret it lets nobody in who has to give it.
pub fn told(export: &IscsiExport, volume: Uuid, secret: Option<&access::Secret>) -> Iscsi {
    let Identity { target, serial, naa } = Identity::of(volume);
    let known = |user: &String| Known {
        user: user.clone(),
        secret: secret.map(|secret| secret.reveal().to_owned().into()),
    };
    Iscsi {
        target: target.to_string(),
        serial,
        naa,
        portals: export.portals.iter().filter_map(|own| own.address.parse().ok()).collect(),
        initiators: export.initiators.clone(),
        account: export.user.as_ref().map(known),
        server: match export.server {
            IscsiServer::Any => None,
            IscsiServer::Lio => Some(Server::Lio),
            IscsiServer::Tgt => Some(Server::Tgt),
        },
    }
}

/// How an export is shown that is served by this server, to these initiators.
pub fn shown(
    export: &IscsiExport,
    volume: Uuid,
    (server, sessions): (Option<Server>, Vec<String>),
) -> view::IscsiExport {
    let server = server.map(|server| match server {
        Server::Lio => view::IscsiServer::Lio,
        Server::Tgt => view::IscsiServer::Tgt,
    });
    view::IscsiExport {
        target: Identity::of(volume).target.to_string(),
        unit: UNIT,
        portals: export.portals.iter().map(|portal| portal.address.clone()).collect(),
        advertise: told_instead(&export.portals),
        initiators: export.initiators.clone(),
        user: export.user.clone(),
        server,
        sessions,
    }
}
