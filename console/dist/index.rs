//! The console's files, as `script/console build` made them. The first is the page.

/// All of them.
pub const FILES: &[crate::File] = &[
    crate::File {
        path: "/",
        kind: "text/html;charset=utf-8",
<<<<<<< HEAD
        hash: "6469e53b65445244",
=======
        hash: "f03f3e2623c3a5e3",
>>>>>>> w-pages
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
        path: "/assets/index-bfde45db.js",
        kind: "text/javascript;charset=utf-8",
        hash: "23a5a8737e407957",
        plain: include_bytes!("assets/index-bfde45db.js"),
        gzip: include_bytes!("assets/index-bfde45db.js.gz"),
    },
    crate::File {
        path: "/assets/style-93f4166e.css",
        kind: "text/css;charset=utf-8",
        hash: "4c2a330b6f87d99c",
        plain: include_bytes!("assets/style-93f4166e.css"),
        gzip: include_bytes!("assets/style-93f4166e.css.gz"),
=======
        path: "/assets/index-e9da8bb3.js",
        kind: "text/javascript;charset=utf-8",
        hash: "99dd08774517e914",
        plain: include_bytes!("assets/index-e9da8bb3.js"),
        gzip: include_bytes!("assets/index-e9da8bb3.js.gz"),
    },
    crate::File {
        path: "/assets/style-9ff7b07a.css",
        kind: "text/css;charset=utf-8",
        hash: "23abdcd57ded9d73",
        plain: include_bytes!("assets/style-9ff7b07a.css"),
        gzip: include_bytes!("assets/style-9ff7b07a.css.gz"),
>>>>>>> w-pages
    },
];
