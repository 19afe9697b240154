//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "c9fd0bce20d8e40a",
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
        path: "/assets/index-6c20a664.js",
        kind: "text/javascript;charset=utf-8",
        hash: "ada6335d8b5b8275",
        plain: include_bytes!("assets/index-6c20a664.js"),
        gzip: include_bytes!("assets/index-6c20a664.js.gz"),
    },
    crate::File {
        path: "/assets/style-1fdfb409.css",
        kind: "text/css;charset=utf-8",
        hash: "e351c095106dc4f8",
        plain: include_bytes!("assets/style-1fdfb409.css"),
        gzip: include_bytes!("assets/style-1fdfb409.css.gz"),
    },
];
