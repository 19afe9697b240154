//! What is told of what is around the drives: in Redfish's units and words.

use super::*;
use crate::routes;
use crate::sample;
use crate::service::render;
use crate::view::{NetworkPort, Surroundings};

fn get(view: &View, uri: &str) -> Value {
    render(view, &routes::find(uri).expect(uri)).expect(uri)
}

fn around(surroundings: Surroundings) -> View {
    View { surroundings: surroundings.into(), ..View::default() }
}

fn sensor_of(measures: Measures, reading: Option<i64>) -> Sensor {
    Sensor {
        id: "s".to_owned(),
        name: "CPU".to_owned(),
        measures,
        reading,
        high: Some(2_000_000),
        critical: None,
        health: Health::Warning,
    }
}

#[test]
fn readings_are_in_the_units_of_redfish() {
    for (measures, reading, kind, units, told, high) in [
        (Measures::Temperature, 41_500, "Temperature", "Cel", 41.5, 2000.0),
        (Measures::Voltage, 12_034, "Voltage", "V", 12.034, 2000.0),
        (Measures::Current, -250, "Current", "A", -0.25, 2000.0),
        (Measures::Power, 1_500_000, "Power", "W", 1.5, 2.0),
    ] {
        let sensors = vec![sensor_of(measures, Some(reading))];
        let view = around(Surroundings { sensors, ..Surroundings::default() });
        let own = get(&view, &uri::sensor("s"));
        assert_eq!(own["ReadingType"], kind);
        assert_eq!(own["ReadingUnits"], units);
        assert_eq!(own["Reading"], told, "{kind}");
        assert_eq!(own["Thresholds"], json!({"UpperCaution": {"Reading": high}}), "{kind}");
        assert_eq!(own["Status"], json!({"State": "Enabled", "Health": "Warning"}));
        let temperatures = get(&view, uri::THERMAL_METRICS);
        let count = usize::from(measures == Measures::Temperature);
        assert_eq!(temperatures["TemperatureReadingsCelsius@odata.count"], count, "{kind}");
        // What is not well is told by what it is part of.
        let (thermal, power) = if count == 1 { ("Warning", "OK") } else { ("OK", "Warning") };
        assert_eq!(get(&view, uri::THERMAL)["Status"]["HealthRollup"], thermal, "{kind}");
        assert_eq!(get(&view, uri::POWER)["Status"]["HealthRollup"], power, "{kind}");
        for at in [uri::CHASSIS, uri::SYSTEM, uri::STORAGE] {
            assert_eq!(get(&view, at)["Status"]["HealthRollup"], "Warning", "{at}");
        }
    }
    let sensors = vec![sensor_of(Measures::Power, None)];
    let view = around(Surroundings { sensors, ..Surroundings::default() });
    let own = get(&view, &uri::sensor("s"));
    assert_eq!(
        (&own["Reading"], &own["Status"]["State"]),
        (&Value::Null, &json!("UnavailableOffline"))
    );
}

#[test]
fn a_drive_is_in_one_housing_and_empty_slots_are_told() {
    let view = sample::hardware::shelf();
    let shelf = get(&view, &uri::chassis("shelf.0"));
    assert_eq!(shelf["ChassisType"], "StorageEnclosure");
    assert_eq!(shelf["Links"]["Drives@odata.count"], 24);
    assert_eq!(shelf["Status"]["HealthRollup"], "Critical");
    let slots = shelf["Oem"]["Palisade"]["Slots"].as_array().expect("slots");
    let id = uri::drive(&view.drives[6].id);
    let expected =
        json!({"Slot": "6", "Drive": {"@odata.id": id}, "LocationIndicatorActive": false});
    assert_eq!(slots[6], expected);
    assert_eq!(slots[7], json!({"Slot": "7", "LocationIndicatorActive": false}));
    assert_eq!(slots.len(), 24);
    let drive = get(&view, &id);
    assert_eq!(drive["Links"]["Chassis"]["@odata.id"], uri::chassis("shelf.0"));
    // A port that the machine lacks has a name and no link.
    let ports = &shelf["Oem"]["Palisade"]["Modules"][1]["Ports"];
    let eth2 = json!({"@odata.id": uri::port("eth2")});
    assert_eq!(*ports, json!([{"Name": "eth2", "EthernetInterface": eth2}, {"Name": "gone"}]));
    let local = get(&view, uri::CHASSIS);
    assert_eq!(local["Links"]["Drives@odata.count"], 0);
    assert_eq!(local.pointer("/Oem"), None);
    // Where the enclosure is not known, the machine's housing has the drive.
    let alone = View { surroundings: Default::default(), ..view };
    assert_eq!(get(&alone, uri::CHASSIS)["Links"]["Drives@odata.count"], 24);
    assert_eq!(get(&alone, &id)["Links"]["Chassis"]["@odata.id"], uri::CHASSIS);
}

#[test]
fn a_port_tells_its_link() {
    for (has_link, is_enabled, link, state) in [
        (true, true, "LinkUp", "Enabled"),
        (false, true, "NoLink", "Enabled"),
        (false, false, "LinkDown", "Disabled"),
    ] {
        let port = NetworkPort {
            id: "eth0".to_owned(),
            mac: Some("not six bytes".to_owned()),
            has_link,
            is_enabled,
            megabits: Some(25_000),
            mtu: 9000,
            addresses: vec!["192.0.2.1/25".to_owned(), "2001:db8::1/64".to_owned()],
            ..NetworkPort::default()
        };
        let view = around(Surroundings { ports: vec![port], ..Surroundings::default() });
        let own = get(&view, &uri::port("eth0"));
        assert_eq!((&own["LinkStatus"], &own["Status"]["State"]), (&json!(link), &json!(state)));
        assert_eq!((&own["SpeedMbps"], &own["MTUSize"]), (&json!(25_000), &json!(9000)));
        assert_eq!(own.get("MACAddress"), None);
        let old = json!([{"Address": "192.0.2.1", "SubnetMask": "255.255.255.128"}]);
        assert_eq!(own["IPv4Addresses"], old);
        let new = json!([{"Address": "2001:db8::1", "PrefixLength": 64}]);
        assert_eq!(own["IPv6Addresses"], new);
    }
}

#[test]
fn a_supply_that_gives_no_power_is_told() {
    for (is_on, input, state) in [
        (Some(true), json!("Normal"), "Enabled"),
        (Some(false), json!("LossOfInput"), "UnavailableOffline"),
        (None, Value::Null, "Enabled"),
    ] {
        let supply = Supply {
            id: "psu".to_owned(),
            name: "Left".to_owned(),
            is_on,
            input_microwatts: is_on.map(|_| 2_500_000),
            health: Health::Ok,
        };
        let view = around(Surroundings { supplies: vec![supply], ..Surroundings::default() });
        let own = get(&view, &uri::supply("psu"));
        assert_eq!((&own["LineInputStatus"], &own["Status"]["State"]), (&input, &json!(state)));
        let metrics = routes::find(&uri::supply_metrics("psu")).expect("a route");
        let watts = render(&view, &metrics).map(|own| own["InputPowerWatts"]["Reading"].clone());
        assert_eq!(watts, is_on.map(|_| json!(2.5)));
        assert_eq!(own.get("Metrics").is_some(), is_on.is_some());
    }
}

#[test]
fn what_is_wrong_stands_with_the_part_that_it_is_wrong_with() {
    use crate::view::{Alert, Alerts};
    let sensors = vec![sensor_of(Measures::Temperature, Some(90_000))];
    let named = |id: &str| (id.to_owned(), format!("part {id}"));
    let ((fan, fan_name), (supply, supply_name)) = (named("f"), named("p"));
    let fans =
        vec![Fan { id: fan, name: fan_name, rpm: Some(0), least_rpm: None, health: Health::Ok }];
    let supplies = vec![Supply {
        id: supply,
        name: supply_name,
        is_on: Some(false),
        input_microwatts: None,
        health: Health::Ok,
    }];
    let ports = vec![NetworkPort { id: "eth0".to_owned(), ..NetworkPort::default() }];
    let view = around(Surroundings { sensors, fans, supplies, ports, ..Surroundings::default() });
    for of in [uri::sensor("s"), uri::fan("f"), uri::supply("p"), uri::port("eth0")] {
        assert_eq!(get(&view, &of)["Status"].get("Conditions"), None, "{of}");
        let alert = Alert {
            id: "7".to_owned(),
            message: "FanNotWell".to_owned(),
            args: Vec::new(),
            severity: Health::Critical,
            what: "it does not turn".to_owned(),
            action: "see to it".to_owned(),
            of: of.clone(),
            name: "part".to_owned(),
            raised: 60,
            acknowledged: None,
        };
        let alerts = Alerts { alerts: vec![alert] };
        let view = View { alerts: alerts.into(), ..view.clone() };
        let conditions = &get(&view, &of)["Status"]["Conditions"];
        assert_eq!(conditions[0]["Message"], "it does not turn", "{of}");
        assert_eq!(conditions.as_array().map(Vec::len), Some(1), "{of}");
        // It is told of all that this belongs to, and can be found from the list.
        let housing = if of == uri::port("eth0") { uri::SYSTEM } else { uri::CHASSIS };
        assert_eq!(get(&view, housing)["Status"]["HealthRollup"], "Critical", "{of}");
        let listed = get(&view, uri::SERVICE_CONDITIONS);
        assert_eq!(listed["Conditions"][0]["OriginOfCondition"]["@odata.id"], of);
    }
    let alerts = get(&view, &uri::port("eth0"));
    assert_eq!(alerts["Status"]["Health"], "OK");
}
