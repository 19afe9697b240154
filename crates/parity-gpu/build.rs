//! Compiles the C form of the kernels for the fake device; does nothing without feature `fake`.

fn main() {
    #[cfg(feature = "fake")]
    fake();
    println!("cargo::rerun-if-changed=kernels");
}

#[cfg(feature = "fake")]
fn fake() {
    let mut build = cc::Build::new();
    // Buffers are bytes here and words there.
    build.opt_level(2).flag("-fno-strict-aliasing").flag("-Wno-unknown-pragmas");
    build.file("kernels/parity.c").compile("parity_kernels");
}
