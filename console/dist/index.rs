//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "84d6225a2041a8c6",
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
        path: "/assets/index-4777c533.js",
        kind: "text/javascript;charset=utf-8",
        hash: "77905e3d06229c6c",
        plain: include_bytes!("assets/index-4777c533.js"),
        gzip: include_bytes!("assets/index-4777c533.js.gz"),
    },
    crate::File {
        path: "/assets/style-16a19925.css",
        kind: "text/css;charset=utf-8",
        hash: "00be12da1f42405e",
        plain: include_bytes!("assets/style-16a19925.css"),
        gzip: include_bytes!("assets/style-16a19925.css.gz"),
    },
];
