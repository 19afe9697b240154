//! Targets that serve, and such as do something wrong, asked over a real connection.

use super::*;
use crate::account::Secret;
use std::net::TcpListener;
use std::thread;

const LIMIT: Duration = Duration::from_secs(60);
const BLOCK_BYTES: u32 = 512;
const NUMBER: u8 = 7;
const CHALLENGE: [u8; 4] = [1, 2, 3, 4];

/// What a target of these tests does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// It lets nobody in, with this status.
    Refuses(u8, u8),
    /// It never answers a login.
    Silent,
    /// It never leads on.
    Endless,
    /// It answers a read with an error of the medium.
    Medium,
    /// It answers a read with this status.
    Status(u8),
    /// It gives data without an end, and nothing in it.
    Empty,
    /// It gives more than was asked for.
    Much,
    /// It gives less.
    Little,
    /// It announces more data than a PDU may have.
    Long,
    /// It tells of what happened without an end.
    Attentive,
    /// It speaks another protocol.
    Stranger,
}

/// A target that lets in who has this secret, or everybody.
struct Target {
    wrong: Wrong,
    account: Option<Account>,
    asks: bool,
}

impl Target {
    /// One connection is served; how many commands came.
    fn serve(self, listener: &TcpListener) -> usize {
        let (mut stream, _) = listener.accept().expect("a connection");
        let (mut commands, mut told) = (0, false);
        while let Ok(pdu) = Pdu::read(&mut stream) {
            let answers = match pdu.code() {
                0x03 => self.login(&pdu),
                0x01 => {
                    commands += 1;
                    let first = !core::mem::replace(&mut told, self.wrong != Wrong::Attentive);
                    self.command(&pdu, first)
                }
                0x06 => vec![Pdu::new(to_initiator::LOGOUT, 0x80, pdu.tag())],
                // An answer to what it asked.
                _ => Vec::new(),
            };
            if self.wrong == Wrong::Stranger {
                let _ = stream.write_all(&[b'?'; 400]);
                return commands;
            }
            for answer in answers {
                let mut bytes = answer.bytes();
                if self.wrong == Wrong::Long {
                    bytes[5] = 0xff;
                }
                let _ = stream.write_all(&bytes);
            }
        }
        commands
    }

    fn login(&self, pdu: &Pdu) -> Vec<Pdu> {
        let mut answer = Pdu::new(to_initiator::LOGIN, pdu.flags(), pdu.tag());
        answer.put(24, 5);
        answer.put(28, 9);
        match self.wrong {
            Wrong::Silent => return Vec::new(),
            Wrong::Endless => answer.header[1] = pdu.flags() & 0x0c,
            Wrong::Refuses(class, detail) => {
                (answer.header[36], answer.header[37]) = (class, detail);
            }
            _ => {}
        }
        let value = |key| keys::value(&pdu.data, key);
        if let (Some("CHAP"), Some(_)) = (value("AuthMethod"), &self.account) {
            answer.data = keys::written(&[("AuthMethod", "CHAP")]);
        }
        if value("AuthMethod") == Some("None") && self.account.is_some() {
            answer.header[36..38].copy_from_slice(&[2, 1]);
        }
        if value("ImmediateData") == Some("Yes") {
            answer.data = keys::written(&[("ImmediateData", "No")]);
        }
        if value("CHAP_A").is_some() {
            let (number, challenge) = (NUMBER.to_string(), keys::digits(&CHALLENGE));
            let pairs = [("CHAP_A", "5"), ("CHAP_I", &number), ("CHAP_C", &challenge)];
            answer.data = keys::written(&pairs);
        }
        if let (Some(said), Some(account)) = (value("CHAP_R"), &self.account) {
            let right = keys::digits(&response(NUMBER, account.secret(), &CHALLENGE));
            if said != right || value("CHAP_N") != Some(account.user()) {
                answer.header[36..38].copy_from_slice(&[2, 1]);
            }
        }
        vec![answer]
    }

    fn command(&self, pdu: &Pdu, first: bool) -> Vec<Pdu> {
        let mut answer = Pdu::new(to_initiator::RESPONSE, 0x80, pdu.tag());
        let check = |answer: &mut Pdu, key: u8| {
            answer.header[3] = CHECK;
            answer.data = [&[0, 18, 0x70, 0, key][..], &[0; 9], &[0x29, 1]].concat();
        };
        if first {
            check(&mut answer, UNIT_ATTENTION);
            return vec![answer];
        }
        let is_read = pdu.header[32] == 0x88;
        let mut data = Pdu::new(to_initiator::DATA, 0x80, pdu.tag());
        // What is taken, of commands.
        answer.put(32, 40);
        data.put(24, 70);
        data.put(32, 40);
        if is_read {
            let bytes = match self.wrong {
                Wrong::Much => 1024,
                Wrong::Little => 100,
                _ => 512,
            };
            data.data = vec![pdu.header[9]; bytes];
        } else {
            data.data = vec![0; 32];
            // The last block's number.
            data.data[..8].copy_from_slice(&99u64.to_be_bytes());
            data.data[8..12].copy_from_slice(&BLOCK_BYTES.to_be_bytes());
        }
        if is_read && self.wrong == Wrong::Medium {
            check(&mut answer, 3);
            return vec![answer];
        }
        if let (true, Wrong::Status(status)) = (is_read, self.wrong) {
            answer.header[3] = status;
            return vec![answer];
        }
        let mut all = Vec::new();
        if is_read && self.wrong == Wrong::Empty {
            return vec![Pdu { data: Vec::new(), ..data }; PARTS as usize + 1];
        }
        if self.asks {
            let mut nop = Pdu::new(to_initiator::NOP, 0x80, NO_TAG);
            nop.put(20, 77);
            all.push(nop);
        }
        if is_read {
            // With the status, in two parts.
            let mut last = data.clone();
            last.data = data.data.split_off(data.data.len() / 2);
            last.header[1] = 0x81;
            all.extend([data, last]);
        } else {
            all.extend([data, answer]);
        }
        all
    }
}

fn account(secret: &str) -> Account {
    Account::new("host", Secret::new(secret).expect("possible")).expect("possible")
}

/// What is said to who asks such a target, within so long, and how many commands it got.
fn asked(target: Target, own: Option<&Account>, limit: Duration) -> (Result<Told>, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let portal = listener.local_addr().expect("an address");
    let [target_name, initiator] = ["iqn.2026-11.example:t", "iqn.2026-11.example:i"]
        .map(|name| Name::new(name).expect("a name"));
    let serving = thread::spawn(move || target.serve(&listener));
    let (target, initiator) = (&target_name, &initiator);
    let told = ask(&Asked { portal, target, unit: 1, initiator, account: own }, limit);
    (told, serving.join().expect("it ends"))
}

fn wrong(wrong: Wrong) -> String {
    let target = Target { wrong, account: None, asks: false };
    asked(target, None, LIMIT).0.expect_err("nothing is read").to_string()
}

#[test]
fn a_block_is_read_from_a_target_that_serves() {
    for asks in [false, true] {
        let target = Target { wrong: Wrong::Nothing, account: None, asks };
        let (told, commands) = asked(target, None, LIMIT);
        assert_eq!(told.expect("read"), Told { block: vec![1; 512], bytes: 100 * 512 });
        // The first was told of what had happened.
        assert_eq!(commands, 3);
    }
}

#[test]
fn a_session_goes_on_where_its_login_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let portal = listener.local_addr().expect("an address");
    let target = Target { wrong: Wrong::Nothing, account: None, asks: true };
    let serving = thread::spawn(move || target.serve(&listener));
    let name = Name::new("iqn.2026-11.example:t").expect("a name");
    let asked = Asked { portal, target: &name, unit: 1, initiator: &name, account: None };
    let mut own = open(&asked, &[("ImmediateData", "Yes")], LIMIT).expect("let in");
    assert_eq!(own.told, Told { block: vec![1; 512], bytes: 100 * 512 });
    // The target's word counts, and what it says nothing of has none.
    assert_eq!((own.value("ImmediateData"), own.value("InitialR2T")), (Some("No"), None));
    // Its login had 9; the first command was told of what had happened.
    assert_eq!((own.command, own.most, own.status), (12, 40, 71));
    assert_eq!(own.stream.read_timeout().expect("told"), None);
    own.stream.write_all(&Pdu::new(to_target::LOGOUT, 0x80, 99).bytes()).expect("sent");
    assert_eq!(Pdu::read(&mut own.stream).expect("answered").tag(), 99);
    drop(own);
    assert_eq!(serving.join().expect("it ends"), 3);
}

#[test]
fn who_has_the_secret_is_let_in() {
    let target = |secret| {
        let account = Some(account(secret));
        Target { wrong: Wrong::Nothing, account, asks: false }
    };
    let own = account("abcdefghijkl");
    let (told, _) = asked(target("abcdefghijkl"), Some(&own), LIMIT);
    assert_eq!(told.expect("read").block.len(), 512);
    for own in [Some(&own), None] {
        let (told, commands) = asked(target("abcdefghijkm"), own, LIMIT);
        let said = told.expect_err("not let in").to_string();
        assert_eq!(said, "login refused: wrong user or secret (0x0201)");
        assert_eq!(commands, 0);
    }
}

#[test]
fn what_is_wrong_is_told() {
    for (what, said) in [
        (Wrong::Refuses(2, 3), "login refused: there is no such target (0x0203)"),
        (Wrong::Refuses(3, 1), "login refused: the service is not there now (0x0301)"),
        (Wrong::Endless, "not what an iSCSI target says: a login without an end"),
        (Wrong::Medium, "a read ended with SCSI status 0x02, sense 3/29/01"),
        (Wrong::Status(0x18), "a host has it reserved"),
        (Wrong::Status(0x40), "a read ended with SCSI status 0x40, sense 0/00/00"),
        (Wrong::Status(0x08), "not what an iSCSI target says: it has no end of things to tell"),
        (Wrong::Empty, "not what an iSCSI target says: a block in too many parts"),
        (Wrong::Much, "not what an iSCSI target says: more than was asked for"),
        (Wrong::Little, "not what an iSCSI target says: less than a block"),
        (Wrong::Long, "not what an iSCSI target says: a PDU that is too long"),
        (Wrong::Attentive, "not what an iSCSI target says: it has no end of things to tell"),
    ] {
        assert_eq!(wrong(what), said);
    }
    assert!(wrong(Wrong::Stranger).starts_with("not what an iSCSI target says"));
}

#[test]
fn a_target_that_is_silent_holds_nobody_up() {
    let target = Target { wrong: Wrong::Silent, account: None, asks: false };
    let (told, _) = asked(target, None, Duration::from_millis(50));
    assert!(matches!(told, Err(Refusal::Late)), "{told:?}");
}

#[test]
fn a_target_that_is_not_there_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let portal = listener.local_addr().expect("an address");
    drop(listener);
    let name = Name::new("iqn.2026-11.example:t").expect("a name");
    let asked = Asked { portal, target: &name, unit: 1, initiator: &name, account: None };
    let told = ask(&asked, LIMIT);
    assert!(matches!(told, Err(Refusal::Connection(_))), "{told:?}");
}
