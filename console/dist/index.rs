//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "afd6641ec7af1389",
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
        path: "/assets/index-97573e73.js",
        kind: "text/javascript;charset=utf-8",
        hash: "353b56104c8f12a7",
        plain: include_bytes!("assets/index-97573e73.js"),
        gzip: include_bytes!("assets/index-97573e73.js.gz"),
    },
    crate::File {
        path: "/assets/style-3c98663c.css",
        kind: "text/css;charset=utf-8",
        hash: "57223392578149bc",
        plain: include_bytes!("assets/style-3c98663c.css"),
        gzip: include_bytes!("assets/style-3c98663c.css.gz"),
    },
];
