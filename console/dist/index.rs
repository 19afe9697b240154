//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "941cc5782367dac9",
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
        path: "/assets/index-cd931173.js",
        kind: "text/javascript;charset=utf-8",
        hash: "dba99f663821d5a6",
        plain: include_bytes!("assets/index-cd931173.js"),
        gzip: include_bytes!("assets/index-cd931173.js.gz"),
    },
    crate::File {
        path: "/assets/style-89275b06.css",
        kind: "text/css;charset=utf-8",
        hash: "f140d2c071367b39",
        plain: include_bytes!("assets/style-89275b06.css"),
        gzip: include_bytes!("assets/style-89275b06.css.gz"),
    },
];
