//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "2d3a4df82c715862",
        plain: include_bytes!("index.html"),
        gzip: include_bytes!("index.html.gz"),
    },
    crate::File {
        path: "/assets/icon-ecde2e99.svg",
        kind: "image/svg+xml",
        hash: "39109e44cf927691",
        plain: include_bytes!("assets/icon-ecde2e99.svg"),
        gzip: include_bytes!("assets/icon-ecde2e99.svg.gz"),
    },
    crate::File {
        path: "/assets/index-a4faf659.js",
        kind: "text/javascript;charset=utf-8",
        hash: "037f07aeb83b372d",
        plain: include_bytes!("assets/index-a4faf659.js"),
        gzip: include_bytes!("assets/index-a4faf659.js.gz"),
    },
    crate::File {
        path: "/assets/style-d37ef499.css",
        kind: "text/css;charset=utf-8",
        hash: "a58340a975279699",
        plain: include_bytes!("assets/style-d37ef499.css"),
        gzip: include_bytes!("assets/style-d37ef499.css.gz"),
    },
];
