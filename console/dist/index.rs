//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
<<<<<<< HEAD
        hash: "5940ec5b303504d2",
=======
        hash: "c2f38aa50f43afd7",
>>>>>>> w-bench
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
<<<<<<< HEAD
        path: "/assets/index-1525ec49.js",
        kind: "text/javascript;charset=utf-8",
        hash: "9955be610e0b99b0",
        plain: include_bytes!("assets/index-1525ec49.js"),
        gzip: include_bytes!("assets/index-1525ec49.js.gz"),
    },
    crate::File {
        path: "/assets/style-d9b0b269.css",
        kind: "text/css;charset=utf-8",
        hash: "b10e25add0cfc02a",
        plain: include_bytes!("assets/style-d9b0b269.css"),
        gzip: include_bytes!("assets/style-d9b0b269.css.gz"),
=======
        path: "/assets/index-45103a62.js",
        kind: "text/javascript;charset=utf-8",
        hash: "0a54cb61b9ffbc3e",
        plain: include_bytes!("assets/index-45103a62.js"),
        gzip: include_bytes!("assets/index-45103a62.js.gz"),
    },
    crate::File {
        path: "/assets/style-d01d3e24.css",
        kind: "text/css;charset=utf-8",
        hash: "331ffbe43b00e061",
        plain: include_bytes!("assets/style-d01d3e24.css"),
        gzip: include_bytes!("assets/style-d01d3e24.css.gz"),
>>>>>>> w-bench
    },
];
