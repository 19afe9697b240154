//! Connections that are held.

use io::{Closed, Env, Priority, Transport};
use palisade_sim::net::{self, Weather};
use palisade_sim::{World, WorldConfig};
use std::cell::RefCell;
use std::io::IoSlice;
use std::rc::Rc;
use units::{CoreId, Nanos};

/// What was held comes late, whole and in order; also what an end had sent that has closed since.
#[test]
fn what_is_held_arrives_once_it_is_let_go() {
    for closes in [false, true] {
        let world: World<()> = World::new(WorldConfig::new(3));
        let env = world.env(CoreId(0));
        let weather = Weather { delay_most: Nanos(50_000), piece_most: 3, ..Weather::default() };
        let (one, other) = net::connect(&env, &env, weather);
        let got = Rc::<RefCell<Vec<Result<u8, Closed>>>>::default();
        let (reader, told) = (other.clone(), got.clone());
        env.spawn(Priority::First, async move {
            loop {
                let mut byte = [0];
                let read = reader.read_exact(&mut byte).await.map(|()| byte[0]);
                told.borrow_mut().push(read);
                if read.is_err() {
                    return;
                }
            }
        });
        let writer = one.clone();
        world.run_until(async move {
            writer.write_all(&mut [IoSlice::new(&[1, 2, 3, 4])]).await.expect("open");
            writer.hold();
            writer.write_all(&mut [IoSlice::new(&[5, 6])]).await.expect("open");
        });
        if closes {
            // Something is on its way to it: without being held the rest would be lost.
            let back = other.clone();
            world.run_until(async move {
                back.write_all(&mut [IoSlice::new(&[9])]).await.expect("open");
            });
            one.close();
        }
        world.run_for(Nanos::from_millis(1_000));
        let before = got.borrow().len();
        assert!(before < 6 && got.borrow().iter().all(Result::is_ok), "it is held");
        one.let_go();
        world.run_for(Nanos::from_millis(1));
        let mut expected: Vec<_> = (1..=6).map(Ok).collect();
        if closes {
            expected.push(Err(Closed));
        }
        assert_eq!(*got.borrow(), expected);
        if !closes {
            one.close();
            world.settle();
        }
    }
}
