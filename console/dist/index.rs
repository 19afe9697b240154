//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "24f9ea6fff850b68",
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
        path: "/assets/index-682451c7.js",
        kind: "text/javascript;charset=utf-8",
        hash: "225fc392208138e2",
        plain: include_bytes!("assets/index-682451c7.js"),
        gzip: include_bytes!("assets/index-682451c7.js.gz"),
    },
    crate::File {
        path: "/assets/style-a95ce66d.css",
        kind: "text/css;charset=utf-8",
        hash: "2d34a886cb653036",
        plain: include_bytes!("assets/style-a95ce66d.css"),
        gzip: include_bytes!("assets/style-a95ce66d.css.gz"),
    },
];
