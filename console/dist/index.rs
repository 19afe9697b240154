//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "89a501809e9d8dfc",
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
        path: "/assets/index-fa496058.js",
        kind: "text/javascript;charset=utf-8",
        hash: "068f5f110e8290fe",
        plain: include_bytes!("assets/index-fa496058.js"),
        gzip: include_bytes!("assets/index-fa496058.js.gz"),
    },
    crate::File {
        path: "/assets/style-1fdfb409.css",
        kind: "text/css;charset=utf-8",
        hash: "e351c095106dc4f8",
        plain: include_bytes!("assets/style-1fdfb409.css"),
        gzip: include_bytes!("assets/style-1fdfb409.css.gz"),
    },
];
