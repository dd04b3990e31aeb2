package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// changed replaces the byte at i (from the end where negative) by another one of the alphabet.
func changed(key string, i int) string {
	b := []byte(key)
	if i < 0 {
		i += len(b)
	}
	if b[i]++; b[i] > 'y' || b[i] > 'Y' && b[i] < 'a' || b[i] > '8' && b[i] < 'A' {
		b[i] = '0'
	}
	return string(b)
}

// badKeys: every key that is not good gets the same 401, byte for byte but for time and request id.
func badKeys(r *rig) {
	good, mail := r.keys["all"], r.keys["mail"]
	line := func(key string) []string { return []string{"X-PLATFORM-KEY: " + key} }
	cases := map[string][]string{
		"none": nil, "empty": line(""), "nonsense": line("x"), "prefix": line("fpk_"), "id alone": line(good[:12]), "no secret": line(good[:13]),
		"cut": line(good[:len(good)-1]), "cut in front": line(good[1:]), "halved": line(good[:len(good)/2]), "extended": line(good + "0"), "doubled": line(good + good), "extended in front": line("0" + good),
		"checksum": line(changed(good, -1)), "secret": line(changed(good, 20)), "id": line(changed(good, 6)), "all zero": line(good[:13] + strings.Repeat("0", 38)),
		"ghost": line(r.keys["ghost"]), "ghost's secret": line(good[:13] + r.keys["ghost"][13:]), "another key's secret": line(good[:13] + mail[13:]),
		"upper case": line(strings.ToUpper(good)), "lower case": line(strings.ToLower(good)), "quoted": line(`"` + good + `"`), "bearer": line("Bearer " + good), "inner space": line(good[:20] + " " + good[20:]),
		"hash": line(catalog.HashKeyText(good)), "two in one": line(good + ", " + good), "two with a blank": line(good + " " + good), "10 kB": line(strings.Repeat("f", 10000)), "raw bytes": line("\xff\xfe" + good),
		"twice": append(line(good), line(good)...), "two keys": append(line(good), line(mail)...), "good, then empty": append(line(good), line("")...), "empty, then good": append(line(""), line(good)...),
		"two spellings": {"X-PLATFORM-KEY: " + good, "x-platform-key: " + good}, "expired": line(r.keys["expired"]),
		"service token": {"X-SERVICE-TOKEN: " + good}, "project id": {"X-PROJECT-ID: 1"}, "mail's header": {"X-Internal-Service-Token: " + good, "X-Internal-Service-Name: story"},
		"underscores": {"X_PLATFORM_KEY: " + good}, "cookie": {"Cookie: X-PLATFORM-KEY=" + good},
	}
	n, first := 0, ""
	for why, headers := range cases {
		n++
		r.from = fmt.Sprintf("127.0.2.%d", n)
		got := r.ask("GET", resolvePath+"shop.acme.example", "", "", headers...)
		refused(r.t, why, got, 401, "UNAUTHORIZED")
		got.header.Del("Date")
		got.header.Del("X-Request-Id")
		print := fmt.Sprint(got.header, stampOf.ReplaceAllString(got.body, ""))
		if first == "" {
			first = print
		}
		if print != first {
			r.t.Errorf("%s: a 401 of its own:\n%s\nanother is\n%s", why, print, first)
		}
	}
	r.from = "127.0.2.250"
	// A key in Authorization gets a hint at the right header, whether it is good or not.
	hint := func(key string) string {
		got := r.ask("GET", resolvePath+"shop.acme.example", "", "", "Authorization: Bearer "+key)
		refused(r.t, "authorization", got, 401, "UNAUTHORIZED")
		return stampOf.ReplaceAllString(got.body, "")
	}
	if a, b := hint(good), hint(r.keys["ghost"]); a != b || !strings.Contains(a, "X-PLATFORM-KEY") {
		r.t.Errorf("a good key in Authorization: %s\nanother: %s", a, b)
	}
	refused(r.t, "in the query", r.ask("GET", resolvePath+"shop.acme.example&X-PLATFORM-KEY="+good, "", ""), 401, "UNAUTHORIZED")
	for _, h := range []string{"X-PLATFORM-KEY: ", "x-platform-key: ", "X-Platform-Key:", "x-pLATFORM-kEY:  ", "X-PLATFORM-KEY:\t"} {
		granted(r.t, h, r.ask("GET", resolvePath+"shop.acme.example", "", "", h+good+" "))
	}
	// Headers that are planned have no effect next to a good key.
	plain := r.get(resolvePath + "shop.acme.example")
	withMore := r.get(resolvePath+"shop.acme.example", "X-SERVICE-TOKEN: nonsense", "X-PROJECT-ID: "+r.projectID("other"))
	if stampOf.ReplaceAllString(plain.body, "") != stampOf.ReplaceAllString(withMore.body, "") {
		r.t.Errorf("X-SERVICE-TOKEN and X-PROJECT-ID change the answer: %s", withMore.body)
	}
	// The server waits for no body without a good key: only its length is ever sent.
	for _, headers := range [][]string{{"Content-Length: 1000000"}, {"Content-Length: 10000000"}, {"Content-Length: 1000000", "Expect: 100-continue"}, {"Transfer-Encoding: chunked"}} {
		refused(r.t, "no key, no body", r.ask("POST", "/api/platform/projects/resolve", "", "", headers...), 401, "UNAUTHORIZED")
	}
	if strings.Contains(r.logged(), "fpk_") {
		r.t.Error("a key is in the log")
	}
}

// badRights: a good key for something else is 403.
func badRights(r *rig) {
	const projects = "/api/platform/projects"
	acme, other, gone := r.projectID("acme"), r.projectID("other"), r.projectID("gone")
	for key, want := range map[string]int{"all": 200, "resolve": 200, "read": 200, "acme": 200, "mail": 403, "write": 403} {
		for _, form := range []string{"", "&form=flat"} {
			if got := r.ask("GET", resolvePath+"shop.acme.example"+form, r.keys[key], ""); want == 403 {
				refused(r.t, key, got, 403, "FORBIDDEN")
			} else {
				granted(r.t, key, got)
			}
		}
	}
	for _, target := range []string{projects, projects + "/" + acme, projects + "/by-slug/acme", projects + "/" + acme + "/domains", projects + "/" + acme + "/service-settings", projects + "/" + acme + "/auth-settings"} {
		for _, key := range []string{"resolve", "mail", "write"} {
			refused(r.t, key+" reads "+target, r.ask("GET", target, r.keys[key], ""), 403, "FORBIDDEN")
		}
		granted(r.t, target, r.ask("GET", target, r.keys["acme"], ""))
	}
	for _, target := range []string{resolvePath + "other.example", resolvePath + "other.example&form=flat", resolvePath + "gone.example", projects + "/" + other, projects + "/" + gone, projects + "/by-slug/other",
		projects + "/" + other + "/domains", projects + "/" + other + "/service-settings", projects + "/" + gone + "/auth-settings"} {
		refused(r.t, "acme's key at "+target, r.ask("GET", target, r.keys["acme"], ""), 403, "FORBIDDEN")
	}
	refused(r.t, "nobody's domain", r.ask("GET", resolvePath+"nowhere.example", r.keys["acme"], ""), 404, "NOT_FOUND")
	refused(r.t, "own inactive domain", r.ask("GET", resolvePath+"old.acme.example", r.keys["acme"], ""), 403, "DOMAIN_NOT_VERIFIED")
	list := granted(r.t, "acme's list", r.ask("GET", projects+"?limit=100", r.keys["acme"], ""))
	if strings.Count(list, `"slug"`) != 1 || !strings.Contains(list, `"slug":"acme"`) || !strings.Contains(list, `"total":1,`) {
		r.t.Errorf("acme's key lists %s", list)
	}
	list = granted(r.t, "acme's list", r.ask("GET", projects, r.keys["acme"], ""))
	if strings.Count(list, `"slug"`) != 1 {
		r.t.Errorf("acme's key lists %s", list)
	}
	etag := r.get(resolvePath + "other.example").header.Get("ETag")
	refused(r.t, "a condition is no way around", r.ask("GET", resolvePath+"other.example", r.keys["acme"], "", "If-None-Match: "+etag), 403, "FORBIDDEN")
}

// throttling: an address that continues with bad keys gets 429 for these, and only for these.
func throttling(r *rig) {
	r.from = "127.0.3.1"
	target := resolvePath + "shop.acme.example"
	limited := func() bool { return r.ask("GET", target, r.keys["ghost"], "").status == 429 }
	for n := 0; !limited(); n++ {
		if n > 5000 {
			r.t.Fatal("5,000 bad keys from one address, and no 429")
		}
	}
	for _, key := range []string{r.keys["ghost"], "nonsense", r.keys["expired"]} {
		got := r.ask("GET", target, key, "")
		refused(r.t, "a further bad key", got, 429, "RATE_LIMITED")
		if s, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || s < 1 {
			r.t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
		}
		granted(r.t, "a good key in between", r.ask("GET", target, r.keys["all"], ""))
	}
	r.from = "127.0.3.2"
	refused(r.t, "another address", r.ask("GET", target, r.keys["ghost"], ""), 401, "UNAUTHORIZED")
}

// TestRevokedKeyLostStore: a key that was removed from the files stops working with that reload; and a deleted store
// loses nothing that is declared: the same ids, bodies except for the two times, and ETags.
func TestRevokedKeyLostStore(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t, nil)
	target := resolvePath + "shop.acme.example"
	granted(t, "before", r.ask("GET", target, r.keys["revoked"], ""))
	must(t, os.Remove(r.path("key-revoked.hcl")))
	must(t, poll(testrig.Patience, func() error {
		if got := r.ask("GET", target, r.keys["revoked"], ""); got.status != 401 {
			return fmt.Errorf("the revoked key gets %d", got.status)
		}
		return nil
	}))
	granted(t, "another key", r.get(target))
	r.from = "127.0.0.1"
	acme := r.projectID("acme")
	targets := []string{target, target + "&form=flat", "/api/platform/projects/" + acme, "/api/platform/projects/by-slug/acme", "/api/platform/projects/" + acme + "/service-settings", "/api/platform/projects/" + acme + "/auth-settings"}
	etags := map[string]string{}
	for _, target := range targets {
		if etags[target] = r.get(target).header.Get("ETag"); etags[target] == "" {
			t.Errorf("%s has no ETag", target)
		}
	}
	r.halt()
	must(t, os.RemoveAll(r.dir+"/.fingerpost"))
	r.start()
	for _, target := range targets {
		got := r.get(target)
		granted(t, target, got)
		if etag := got.header.Get("ETag"); etag != etags[target] {
			t.Errorf("%s: ETag %s, was %s before the store was lost", target, etag, etags[target])
		}
		if got := r.get(target, "If-None-Match: "+etags[target]); got.status != 304 || got.body != "" {
			t.Errorf("%s: %d %s, want 304", target, got.status, got.body)
		}
	}
	refused(t, "the revoked key", r.ask("GET", target, r.keys["revoked"], ""), 401, "UNAUTHORIZED")
}
