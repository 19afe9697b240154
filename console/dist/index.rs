//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "af32a7649ff9cf18",
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
        path: "/assets/index-b04b69d7.js",
        kind: "text/javascript;charset=utf-8",
        hash: "cddc57c41b244ff4",
        plain: include_bytes!("assets/index-b04b69d7.js"),
        gzip: include_bytes!("assets/index-b04b69d7.js.gz"),
    },
    crate::File {
        path: "/assets/style-682df98b.css",
        kind: "text/css;charset=utf-8",
        hash: "c41df085322c039d",
        plain: include_bytes!("assets/style-682df98b.css"),
        gzip: include_bytes!("assets/style-682df98b.css.gz"),
    },
];
