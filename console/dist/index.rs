//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "663644ef16e95be6",
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
        path: "/assets/index-55371347.js",
        kind: "text/javascript;charset=utf-8",
        hash: "ca254e49cde75de7",
        plain: include_bytes!("assets/index-55371347.js"),
        gzip: include_bytes!("assets/index-55371347.js.gz"),
    },
    crate::File {
        path: "/assets/style-2ce21065.css",
        kind: "text/css;charset=utf-8",
        hash: "7d0239be923dafb0",
        plain: include_bytes!("assets/style-2ce21065.css"),
        gzip: include_bytes!("assets/style-2ce21065.css.gz"),
    },
];
