package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkWebhookCost asks a server with 100 webhooks and one without by turns: a durable write, and 100 resolves over one
// connection. The webhooks want other events. It reports the medians, and the median of the ratios with their quartiles.
func BenchmarkWebhookCost(b *testing.B) {
	var hooks strings.Builder
	for i := range 100 {
		fmt.Fprintf(&hooks, "webhook \"h%02d\" {\n  url    = \"https://hooks.acme.example/\"\n  secret = env(\"HOOK_SECRET\")\n  events = [\"key.create\"]\n}\n", i)
	}
	both := []*rig{idleRig(b, b.TempDir(), nil), idleRig(b, b.TempDir(), map[string]string{"hooks.hcl": hooks.String()})}
	for _, r := range both {
		r.env = []string{"HOOK_SECRET=" + hookSecret}
		r.start()
	}
	write := func(r *rig, n int) {
		if status, _ := r.send("PUT", fmt.Sprintf("/%d", r.idOf("other")), fmt.Sprintf(`{"name":"Other %d"}`, n)); status != http.StatusOK {
			b.Fatal(status)
		}
	}
	resolve := func(r *rig, _ int) {
		for range 100 {
			req, err := http.NewRequest(http.MethodGet, r.url+resolvePath+"other.example", nil)
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("X-PLATFORM-KEY", r.keys["resolve"])
			res, err := r.client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			if res.Body.Close(); res.StatusCode != http.StatusOK {
				b.Fatal(res.StatusCode)
			}
		}
	}
	for name, do := range map[string]func(r *rig, n int){"write": write, "100-resolves": resolve} {
		b.Run(name, func(b *testing.B) {
			var took [2][]float64
			var ratios []float64
			for n := 0; b.Loop(); n++ {
				var pair [2]float64
				for _, i := range rand.Perm(2) {
					began := time.Now()
					do(both[i], n)
					pair[i] = float64(time.Since(began).Microseconds())
					took[i] = append(took[i], pair[i])
				}
				ratios = append(ratios, pair[1]/pair[0])
			}
			at := func(list []float64, part int) float64 {
				slices.Sort(list)
				return list[len(list)*part/100]
			}
			b.ReportMetric(at(took[0], 50), "us/none")
			b.ReportMetric(at(took[1], 50), "us/webhooks")
			for _, part := range []int{25, 50, 75} {
				b.ReportMetric(at(ratios, part), fmt.Sprintf("ratio-q%d", part))
			}
		})
	}
}
