// Package docs serves the documents that the program carries at /docs/: the guides, the READMEs of the rooms as their
// reference, and a reference of the HTTP API made from openapi.yaml.
//
// What it promises. The pages say what the Markdown files and openapi.yaml of the same build say; no text stands here.
// A link between two documents leads to the other one's page and section, with the anchors that GitHub makes. A search
// looks through all texts; a row of a table that explains an error code, a flag, a header, a metric or an alert is found
// first. Pages need no script (one adds buttons that copy examples), no cookie and nothing from elsewhere, and their
// Content-Security-Policy allows nothing else. Starting costs nothing: all pages are made at the first request, with about
// 0.1 s of CPU, and 1 MiB is kept.
//
// What it needs. The Markdown files, by the folders of the repository in which they stand; openapi.yaml; the console's
// stylesheet and icon.
//
// What it does not do. It does not know the server that it is mounted in: it is a plain http.Handler, without a key,
// since no document holds a secret. Pictures are left out, and a link to a file that is not served is plain text.
package docs
