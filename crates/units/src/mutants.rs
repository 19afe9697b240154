//! Known bugs that can be switched on, one at a time, to prove that trials would catch them.

/// Declares a crate's known bugs: `Mutant`, `ALL` of them, whether one `is` on, and `switch`.
///
/// Without the feature `mutants` of the crate that declares them, `is` is a constant `false` and
/// nothing of them is left in the product.
#[macro_export]
macro_rules! mutants {
    ($($name:ident = $text:literal: $about:literal;)*) => {
        /// A known bug.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Mutant {
            $(#[doc = $about] $name,)*
        }

        /// All of them: the mutant, its name, what is wrong with it and which row of the test
        /// plan it stands for.
        pub const ALL: &[(Mutant, &str, &str)] = &[$((Mutant::$name, $text, $about),)*];

        /// Whether this bug is switched on.
        #[cfg(not(feature = "mutants"))]
        #[inline(always)]
        pub const fn is(_: Mutant) -> bool {
            false
        }

        #[cfg(feature = "mutants")]
        static ON: core::sync::atomic::AtomicU8 = core::sync::atomic::AtomicU8::new(u8::MAX);

        /// Whether this bug is switched on.
        #[cfg(feature = "mutants")]
        pub fn is(mutant: Mutant) -> bool {
            ON.load(core::sync::atomic::Ordering::Relaxed) == mutant as u8
        }

        /// Switches a bug of the whole process on, and any other off.
        #[cfg(feature = "mutants")]
        pub fn switch(to: Option<Mutant>) {
            let to = to.map_or(u8::MAX, |mutant| mutant as u8);
            ON.store(to, core::sync::atomic::Ordering::Relaxed);
        }
    };
}
