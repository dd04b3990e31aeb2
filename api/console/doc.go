// Package console is the web console at /console/: pages for people who look a domain up, change a project and see the
// exact diff of its file before they save, follow a mail, or watch the service.
//
// What it promises. Nothing is done or seen in it that the signed-in key could not do or see over the HTTP API: pages
// are made from answers of the API, which is called in this process with that key. Every change is shown as a diff
// first, and is made only if what it started from is still there. Pages work without JavaScript, except for what is
// live. A slow browser costs a goroutine, and slows nobody else.
//
// What it needs. A way to the API (Options.API), which it calls with package client; the check of keys (Keys); and for
// what the API does not tell, the state of the files, of the mail queue, of webhooks and of this node (Node). What concerns every
// project is shown to keys for every project only. What a field of a form is comes from package catalog.
//
// What it does not do. It has no store, no accounts and no rights of its own; sessions live in memory and end with the
// process. It does not know the HTTP library of the server that it is mounted in: it is a plain http.Handler.
//
// Documents: README.md here, with a picture of each page.
package console
