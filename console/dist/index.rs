//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "1bf15909e869eb33",
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
        path: "/assets/index-2e058256.js",
        kind: "text/javascript;charset=utf-8",
        hash: "645915e98cfc264f",
        plain: include_bytes!("assets/index-2e058256.js"),
        gzip: include_bytes!("assets/index-2e058256.js.gz"),
    },
    crate::File {
        path: "/assets/style-7e0f86ee.css",
        kind: "text/css;charset=utf-8",
        hash: "21cd894480d8e944",
        plain: include_bytes!("assets/style-7e0f86ee.css"),
        gzip: include_bytes!("assets/style-7e0f86ee.css.gz"),
    },
];
