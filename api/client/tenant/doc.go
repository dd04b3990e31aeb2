// Package tenant answers "whose request is this?" in the process of a service that serves many tenants by host name.
// Answers come from memory, the server's change feed keeps them true, and they go on while fingerpost is away. A whole
// program:
//
//	package main
//
//	import (
//		"fmt"
//		"log"
//		"net/http"
//
//		"fingerpost/api/client/tenant"
//	)
//
//	func main() {
//		tenants, err := tenant.Open(tenant.Options{
//			URL:  "http://127.0.0.1:8080", // the key is in FINGERPOST_KEY
//			File: "tenants.cache",         // a restart works without fingerpost
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		http.Handle("/", tenants.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
//			t := tenant.FromContext(r.Context())
//			fmt.Fprintf(w, "Welcome to %s, plan %s\n", t.Name, t.Labels["plan"])
//		})))
//		log.Fatal(http.ListenAndServe(":8000", nil))
//	}
//
// What it promises. A name in memory is answered without a request, in canonical spelling without allocation; a name is
// asked by one request at a time. While the change feed is open, an answer is as new as the last event: what an event
// names is dropped, and an answer that was on its way is given and not kept. Without the feed an answer is good for
// Options.Fresh; after that it is given with Tenant.Stale while the server is asked, until Options.MaxStale. Nothing
// switches a Cache off for good: it tries again after random waits of up to 30 s, or what Retry-After says.
//
// What it does not promise. An answer may be older than a change whose event is still on its way, and for up to 45 s
// where a connection dies without a sign; then the feed counts as lost. The same applies after a pause of the process
// until the feed was heard again. At most 64 questions are on the wire: over that a name that is not in memory is
// ErrUnavailable at once.
//
// What it keeps. Options.MaxEntries names with a tenant and Options.MaxNegative without one; in Options.File the first,
// bound to URL and a hash of the key, for one process at a time. The key is in no file, log or error.
package tenant
