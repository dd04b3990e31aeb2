//go:build ignore

// A sample application behind the Caddyfile next to it: it answers each customer as that customer.
package main

import (
	"cmp"
	"fmt"
	"log"
	"net/http"
	"os"
)

func main() {
	// Without a gateway, a handler is told its project by the middleware of fingerpost's package api/client/tenant.
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// The gateway sets these headers, and removes those of the client.
		project, plan := r.Header.Get("X-Project-Id"), r.Header.Get("X-Label-Plan")
		if project == "" {
			http.Error(w, "this request has not come through the gateway", http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, "%s is project %s", r.Host, project)
		if plan != "" {
			fmt.Fprintf(w, " with the plan %s", plan)
		}
		fmt.Fprintln(w)
	})
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("LISTEN"), ":3000"), nil))
}
