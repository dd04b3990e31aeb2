package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/configsrc/verify"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A claimDNS is a Verifier whose Claim is that of a real service, with DNS that a test writes.
type claimDNS struct {
	script
	service *verify.Service

	mu      sync.Mutex
	records map[string]string // name → value
	silent  bool
	asked   int
}

func (c *claimDNS) Claim(ctx context.Context, of dcv.Subject, ask bool) ([]catalog.RecordView, bool) {
	return c.service.Claim(ctx, of, ask)
}

// A claimChecker is the DNS of a claimDNS.
type claimChecker struct{ *claimDNS }

func (c claimChecker) Check(_ context.Context, _ dcv.Subject, _ dcv.Policy, ways []dcv.Way) (f dcv.Facts, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	for _, w := range ways {
		a := dcv.Answer{Server: "ns1.example"}
		if value := c.records[w.Name]; c.silent {
			a.Error = dcv.TimedOut
		} else if value != "" && w.Type == "TXT" {
			a.Values = []string{value}
		}
		f.Proofs = append(f.Proofs, dcv.Finding{Type: w.Type, Name: w.Name, Answers: []dcv.Answer{a}})
	}
	return f, nil
}

func (c *claimDNS) set(records map[string]string, silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records, c.silent = records, silent
}

// newClaims opens a desk with the projects own and other, in one file or two, and real claims.
func newClaims(t *testing.T, require string, together bool) (c *claimDNS, d *desk, keys map[string]string) {
	t.Helper()
	c = &claimDNS{}
	d, keys = newProofDeskIn(t, require, together, c)
	live := d.house.resolver
	c.service = verify.New(verify.Options{Domains: verify.Live{Resolver: live}, Changes: verify.NewFeed(live), Ledger: live,
		Trail: live, Checker: claimChecker{c}, Logger: slog.New(slog.DiscardHandler)})
	return c, d, keys
}

// proofOf is the record by which a project proves a name.
func proofOf(slug, name string) map[string]string {
	way := dcv.Ways(dcv.Subject{Project: catalog.DeriveProjectUUID(slug), Name: name}, dcv.Policy{})[0]
	return map[string]string{way.Name: "token=" + way.Token + " expiry=never"}
}

// TestTakeOver: a pending record that a project's key made is another project's as soon as DNS has that project's proof:
// both orders of two projects, names and wildcards, all answers of DNS.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprintf("in one file %v", together), func(t *testing.T) {
			t.Parallel()
			testTakeOver(t, together)
		})
	}
}

func testTakeOver(t *testing.T, together bool) {
	c, d, keys := newClaims(t, "project-keys", together)
	post := func(key, slug, name, query string) *answer {
		return d.askBody("POST", d.path(t, "/api/platform/projects/@"+slug+"/domains")+query, keys[key],
			fmt.Sprintf(`{"domain":%q}`, name), "Content-Type: application/json")
	}
	for i, name := range []string{"a.claimed.example", "*.b.claimed.example"} {
		for _, order := range [][2]string{{"own", "other"}, {"other", "own"}} {
			first, second := order[0], order[1]
			name := strings.Replace(name, "claimed", fmt.Sprint("from-", first, i), 1)
			post(first, first, name, "").check(t, 201, "")
			refused := func(why string, records map[string]string, silent bool) {
				t.Helper()
				c.set(records, silent)
				a := post(second, second, name, "")
				if a.StatusCode != http.StatusConflict {
					t.Fatalf("%s, %s: %d %s", name, why, a.StatusCode, a.body)
				}
				for record, value := range proofOf(second, name) {
					if text := string(a.body); !strings.Contains(text, `"name":"`+record+`"`) || !strings.Contains(text, value) ||
						strings.Contains(text, catalog.DeriveProjectUUID(first).String()) || strings.Contains(text, `"`+first+`"`) {
						t.Errorf("%s, %s: %s", name, why, text)
					}
				}
				d.has(t, first, name, "pending")
			}
			refused("nothing in DNS", nil, false)
			refused("the proof of the other", proofOf(first, name), false)
			refused("DNS is silent", proofOf(second, name), true)

			c.set(proofOf(second, name), false)
			dry := post(second, second, name, "?dryRun=1")
			if dry.StatusCode != http.StatusOK || strings.Contains(string(dry.body), first+".hcl") ||
				strings.Contains(string(dry.body), `"`+first+`"`) || strings.Contains(string(dry.body), `\"`+first+`\"`) {
				t.Errorf("dry run: %d %s", dry.StatusCode, dry.body)
			}
			d.has(t, first, name, "pending")

			// A rename and a key for every project take nothing over.
			post(second, second, "r"+fmt.Sprint(i)+second+".example", "").check(t, 201, "")
			a := d.askBody("PUT", d.path(t, "/api/platform/projects/@"+second+"/domains/@r"+fmt.Sprint(i)+second+".example"), keys[second],
				fmt.Sprintf(`{"domain":%q}`, name), "Content-Type: application/json")
			a.check(t, http.StatusConflict, "CONFLICT")
			a = post("full", second, name, "")
			if a.check(t, http.StatusConflict, "CONFLICT"); strings.Contains(string(a.body), "records") {
				t.Errorf("a key for every project: %s", a.body)
			}

			// Two claims at once: one takes it, and the other finds it taken.
			var both sync.WaitGroup
			var codes [2]int
			for i := range codes {
				both.Go(func() { codes[i] = post(second, second, name, "").StatusCode })
			}
			both.Wait()
			if codes[0]+codes[1] != http.StatusCreated+http.StatusConflict {
				t.Errorf("two claims at once: %v", codes)
			}
			d.has(t, second, name, time.Now().UTC().Format(time.DateOnly))
			if strings.Contains(d.names(t, first), name) {
				t.Errorf("%s still has %s", first, name)
			}
			page, err := d.house.resolver.Audit(catalog.AuditQuery{Page: 1, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			lost := 0
			for _, e := range page.Entries {
				if e.Action == "domain.delete" && strings.Contains(e.Object, name) {
					if lost++; e.Door != catalog.DoorDNS || e.Actor != "" || e.Key != "" || strings.Contains(fmt.Sprint(e), second+" ") {
						t.Errorf("the entry of the one that loses it: %+v", e)
					}
				}
			}
			if lost != 1 {
				t.Errorf("%d entries of %s", lost, first)
			}
			c.set(proofOf(first, name), false) // proven, it is not taken back
			post(first, first, name, "").check(t, http.StatusConflict, "CONFLICT")
		}
	}
}

// TestTakeOverNothingElse: a trusted, proven or lost record is never taken over, nor a pending one that a person wrote, and
// nothing is where keys need no proof.
func TestTakeOverNothingElse(t *testing.T) {
	t.Parallel()
	for _, require := range []string{"project-keys", "all", "none"} {
		c, d, keys := newClaims(t, require, require == "all")
		for i, verified := range []string{`null`, `"2026-01-24"`, `"lost"`, `"pending"`} {
			name := fmt.Sprintf("n%d.example", i)
			d.askBody("POST", d.path(t, "/api/platform/projects/@other/domains"), keys["full"],
				fmt.Sprintf(`{"domain":%q,"verified":%s}`, name, verified), "Content-Type: application/json").check(t, 201, "")
			c.set(proofOf("own", name), false)
			a := d.askBody("POST", d.path(t, "/api/platform/projects/@own/domains"), keys["own"], fmt.Sprintf(`{"domain":%q}`, name),
				"Content-Type: application/json")
			if a.check(t, http.StatusConflict, "CONFLICT"); strings.Contains(string(a.body), `"records"`) != (require != "none") {
				t.Errorf("require %s: %s", require, a.body)
			}
			if !strings.Contains(d.names(t, "other"), name) {
				t.Errorf("require %s: other has lost %s", require, name)
			}
		}
		if c.asked > 0 {
			t.Errorf("require %s: DNS was asked %d times", require, c.asked)
		}
	}
}
