//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "7dbf393a5e6e9b8d",
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
        path: "/assets/index-d252c05d.js",
        kind: "text/javascript;charset=utf-8",
        hash: "17865ea82c9d45db",
        plain: include_bytes!("assets/index-d252c05d.js"),
        gzip: include_bytes!("assets/index-d252c05d.js.gz"),
    },
    crate::File {
        path: "/assets/style-d37ef499.css",
        kind: "text/css;charset=utf-8",
        hash: "a58340a975279699",
        plain: include_bytes!("assets/style-d37ef499.css"),
        gzip: include_bytes!("assets/style-d37ef499.css.gz"),
    },
];
