//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "e0388351c4d7d82f",
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
        path: "/assets/index-a07db15c.js",
        kind: "text/javascript;charset=utf-8",
        hash: "2f05d177f4abd912",
        plain: include_bytes!("assets/index-a07db15c.js"),
        gzip: include_bytes!("assets/index-a07db15c.js.gz"),
    },
    crate::File {
        path: "/assets/style-16a19925.css",
        kind: "text/css;charset=utf-8",
        hash: "00be12da1f42405e",
        plain: include_bytes!("assets/style-16a19925.css"),
        gzip: include_bytes!("assets/style-16a19925.css.gz"),
    },
];
