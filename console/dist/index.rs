//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "eff6477d66338eee",
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
        path: "/assets/index-3200a14b.js",
        kind: "text/javascript;charset=utf-8",
        hash: "c98fcbd495eff48b",
        plain: include_bytes!("assets/index-3200a14b.js"),
        gzip: include_bytes!("assets/index-3200a14b.js.gz"),
    },
    crate::File {
        path: "/assets/style-e5dedb40.css",
        kind: "text/css;charset=utf-8",
        hash: "ee60fbe2a0690638",
        plain: include_bytes!("assets/style-e5dedb40.css"),
        gzip: include_bytes!("assets/style-e5dedb40.css.gz"),
    },
];
