//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "3913043869555c01",
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
        path: "/assets/index-88ea75f0.js",
        kind: "text/javascript;charset=utf-8",
        hash: "5936413b432112e6",
        plain: include_bytes!("assets/index-88ea75f0.js"),
        gzip: include_bytes!("assets/index-88ea75f0.js.gz"),
    },
    crate::File {
        path: "/assets/style-79127a41.css",
        kind: "text/css;charset=utf-8",
        hash: "bc9d1448444542b6",
        plain: include_bytes!("assets/style-79127a41.css"),
        gzip: include_bytes!("assets/style-79127a41.css.gz"),
    },
];
