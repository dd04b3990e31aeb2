package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fingerpost/api/client/tenant"
)

// fingerpost stands for the address of a server, which knows shop.acme.example.
var fingerpost = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/api/platform/events":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 2000\n\nid: 4be0643f1d98573b.42\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.URL.Query().Get("domain") != "shop.acme.example":
		refuse(w, 404, "NOT_FOUND")
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"success":true,"data":{"project":{"id":57762359579023,"slug":"acme","name":"Acme Shop","labels":{"plan":"gold"}},
			"matchedDomain":{"domain":"shop.acme.example"}}}`)
	}
}))

func ExampleOpen() {
	tenants, err := tenant.Open(tenant.Options{
		URL:      fingerpost.URL,
		Key:      "fpk_…", // better left out and in FINGERPOST_KEY
		MaxStale: 24 * time.Hour,
	})
	fmt.Println(tenants == nil, err) // not because the server is away
	// Output: true tenant options: Key holds a blank or another character that no key has
}

// exampleTenants opens what the examples below ask.
func exampleTenants() *tenant.Cache {
	tenants, err := tenant.Open(tenant.Options{URL: fingerpost.URL, Key: "fpk_example", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	return tenants
}

func ExampleCache_Lookup() {
	tenants := exampleTenants()
	defer tenants.Close()
	t, err := tenants.Lookup(context.Background(), "Shop.Acme.Example:8443")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Slug, t.Labels["plan"], t.Domain)

	switch _, err = tenants.Lookup(context.Background(), "nobody.example"); {
	case errors.Is(err, tenant.ErrUnknown):
		fmt.Println("not ours:", err)
	case errors.Is(err, tenant.ErrUnavailable):
		fmt.Println("try again:", err)
	}
	// Output:
	// acme gold shop.acme.example
	// not ours: nobody.example: no project has this host name
}

func ExampleCache_Middleware() {
	tenants := exampleTenants()
	defer tenants.Close()
	site := tenants.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Welcome to %s", tenant.FromContext(r.Context()).Name)
	}))
	for _, host := range []string{"shop.acme.example", "nobody.example"} {
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequest("GET", "http://"+host+"/", nil))
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 Welcome to Acme Shop
	// 404 unknown host
}

func ExampleFromContext() {
	tenants := exampleTenants()
	defer tenants.Close()
	plan := func(r *http.Request) string { return tenant.FromContext(r.Context()).Labels["plan"] }
	site := tenants.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, plan(r)) }))
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest("GET", "http://shop.acme.example/", nil))
	fmt.Println(w.Body)
	// Output: gold
}

func ExampleCache_Ready() {
	tenants := exampleTenants()
	defer tenants.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := tenants.Ready(ctx); err != nil {
		fmt.Println("fingerpost is away, and there is no file: beginning without")
	}
	fmt.Println("serving")
	// Output: serving
}

func ExampleCache_Status() {
	tenants := exampleTenants()
	defer tenants.Close()
	if err := tenants.Ready(context.Background()); err != nil {
		log.Fatal(err)
	}
	// For a health page. A service is well also without the feed, as long as it has answers.
	s := tenants.Status()
	fmt.Println(s.Connected, s.Position, s.Entries, s.LastError)
	// Output: true 4be0643f1d98573b.42 0 <nil>
}

func ExampleCache_Close() {
	tenants := exampleTenants()
	tenants.Lookup(context.Background(), "shop.acme.example")
	if err := tenants.Close(); err != nil { // after the HTTP server has ended
		log.Print("the answers are not in the file: ", err)
	}
	t, err := tenants.Lookup(context.Background(), "shop.acme.example")
	fmt.Println(t.Slug, err)
	// Output: acme <nil>
}

// Observe takes the end of each lookup to metrics, here to Prometheus. With OpenTelemetry:
//
//	seconds, err := otel.Meter("tenant").Float64Histogram("tenant.lookup.duration", metric.WithUnit("s"),
//		metric.WithExplicitBucketBoundaries(1e-6, 1e-4, 1e-2, 1))
//	if err != nil {
//		log.Fatal(err)
//	}
//	observe := func(e tenant.Event) {
//		kind := metric.WithAttributes(attribute.String("kind", string(e.Kind)))
//		seconds.Record(context.Background(), e.Duration.Seconds(), kind)
//	}
func ExampleOptions_observe() {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tenant_lookup_seconds",
		Help:    "Time of a lookup.",
		Buckets: []float64{1e-6, 1e-4, 1e-2, 1},
	}, []string{"kind"})
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(seconds)
	var told sync.WaitGroup // Observe is called a little after the lookup, by a goroutine for which no lookup waits
	observe := func(e tenant.Event) {
		seconds.WithLabelValues(string(e.Kind)).Observe(e.Duration.Seconds())
		told.Done()
	}

	tenants, err := tenant.Open(tenant.Options{URL: fingerpost.URL, Key: "fpk_example", Observe: observe,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer tenants.Close()
	if err := tenants.Ready(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, host := range []string{"shop.acme.example", "shop.acme.example", "nobody.example"} {
		told.Add(1)
		tenants.Lookup(context.Background(), host)
	}
	told.Wait()
	families, err := metrics.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range families[0].Metric {
		fmt.Println(m.Label[0].GetValue(), m.Histogram.GetSampleCount())
	}
	// Output:
	// hit 1
	// miss 1
	// negative 1
}
