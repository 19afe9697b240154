//! Compiles the C++ form of the kernels for the fake device, and a stand-in for NVIDIA's library
//! with their C form;
//! does nothing without feature `fake`.

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
    let mut forms = build.clone();
    // The file is named for its first form; nothing of C++'s library is needed.
    forms.cpp(true).cpp_link_stdlib(None).flag("-xc++");
    forms.file("kernels/parity.c").compile("parity_kernels");

    let library = std::path::Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it"))
        .join("libstandin.so");
    let mut linked = build.pic(true).get_compiler().to_command();
    linked.args(["-shared", "kernels/standin.c", "kernels/parity.c", "-o"]).arg(&library);
    let status = linked.status().expect("a C compiler");
    assert!(status.success(), "the C compiler failed: {status}");
    println!("cargo::rustc-env=PALISADE_STANDIN={}", library.display());
}
