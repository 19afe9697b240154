//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
        hash: "1cdf38be437e6442",
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
        path: "/assets/index-75090ded.js",
        kind: "text/javascript;charset=utf-8",
        hash: "5b0afcbf4ca175dc",
        plain: include_bytes!("assets/index-75090ded.js"),
        gzip: include_bytes!("assets/index-75090ded.js.gz"),
    },
    crate::File {
        path: "/assets/style-a95ce66d.css",
        kind: "text/css;charset=utf-8",
        hash: "2d34a886cb653036",
        plain: include_bytes!("assets/style-a95ce66d.css"),
        gzip: include_bytes!("assets/style-a95ce66d.css.gz"),
    },
];
