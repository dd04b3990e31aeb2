package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// badLists: every bad parameter of a list is named, all at once.
func badLists(r *rig) {
	acme := r.projectID("acme")
	for _, list := range []string{"/api/platform/projects", "/api/platform/projects/" + acme + "/domains"} {
		bad := func(field string, queries ...string) {
			r.t.Helper()
			for _, q := range queries {
				refused(r.t, list+"?"+q, r.get(list+"?"+q), 400, "VALIDATION_ERROR", field)
			}
		}
		bad("page", "page=0", "page=-1", "page=x", "page=1.5", "page=", "page", "page=1e3", "page=%201", "page=1%20", "page=0x1", "page=99999999999999999999", "page=1&page=2", "page=1&page=1", "page=%00", "page=%EF%BC%91", "page=1,2", "page=NaN")
		bad("limit", "limit=0", "limit=101", "limit=-5", "limit=x", "limit=", "limit=1.0", "limit=9223372036854775808", "limit=10&limit=20", "limit=%zz", "limit=all", "limit=1e1", "page=1&limit=1000")
		bad("sort", "sort=x", "sort=", "sort=ID", "sort=created_at", "sort=id,uuid", "sort=-id", "sort=id%20", "sort=authSettings", "sort=id&sort=id", "sort=id;drop", "sort=%00", "sort=jwtSecret", "sort=said")
		bad("order", "order=up", "order=ASC", "order=", "order=ascending", "order=asc&order=desc", "order=1", "order=asc%00")
		refused(r.t, "all at once", r.get(list+"?order=up&limit=101&sort=x&page=0"), 400, "VALIDATION_ERROR", "page", "limit", "sort", "order")
		for q, meta := range map[string]string{"page=1000": `"page":1000,"limit":10`, "page=2147483647&limit=100": `"page":2147483647,"limit":100`, "page=3&limit=3&sort=id&order=desc": `"page":3,"limit":3`} {
			data := granted(r.t, q, r.get(list+"?"+q))
			if !regexp.MustCompile(`^\[\],"meta":\{"total":[1-9]\d*,` + meta + `,"totalPages":[1-9]\d*\}$`).MatchString(data) {
				r.t.Errorf("%s?%s: a page past the end: %s", list, q, data)
			}
		}
		if data := granted(r.t, list, r.get(list)); strings.Contains(data, `"meta"`) {
			r.t.Errorf("%s has meta: %s", list, data)
		}
		paged(r, list)
	}
	refused(r.t, "id and list", r.get("/api/platform/projects/x/domains?page=0"), 400, "VALIDATION_ERROR", "id", "page")
}

// paged: for every scalar field, in both orders, pages of one row each make up the whole list.
func paged(r *rig, list string) {
	r.t.Helper()
	var rows []map[string]any
	if err := json.Unmarshal([]byte(granted(r.t, list, r.get(list))), &rows); err != nil || len(rows) == 0 {
		r.t.Fatalf("%s: %d rows, %v", list, len(rows), err)
	}
	for field := range rows[0] {
		for _, order := range []string{"asc", "desc"} {
			seen := map[any]bool{}
			for page := range rows {
				var got struct {
					Data []map[string]any
					Meta struct{ Total, TotalPages int }
				}
				target := fmt.Sprintf("%s?page=%d&limit=1&sort=%s&order=%s", list, page+1, field, order)
				if err := json.Unmarshal([]byte(r.get(target).body), &got); err != nil || len(got.Data) != 1 || got.Meta.Total != len(rows) || got.Meta.TotalPages != len(rows) {
					r.t.Fatalf("%s: %v %+v", target, err, got)
				}
				seen[got.Data[0]["id"]] = true
			}
			if len(seen) != len(rows) {
				r.t.Errorf("%s by %s %s: pages show %d of %d rows", list, field, order, len(seen), len(rows))
			}
		}
	}
}

// badIDs: an id that is no positive decimal integer is 400, with the parameter's name; one that does not exist is 404.
func badIDs(r *rig) {
	const projects = "/api/platform/projects/"
	acme := r.projectID("acme")
	for _, id := range []string{"0", "-1", "-0", "+1", "1.0", "1e3", "0x10", "abc", "%201", "1%20", "1%00", "%00", "%EF%BC%91", "1,2", "null", "NaN", "1_000", "%zz", "%2e", "1%2f2", "'1'", "٣", "%D9%A3", strings.Repeat("x", 3000)} {
		for _, rest := range []string{"", "/domains", "/service-settings", "/auth-settings"} {
			refused(r.t, "id "+cutMiddle(id, 40)+rest, r.get(projects+id+rest), 400, "VALIDATION_ERROR", "id")
		}
		refused(r.t, "domain id "+cutMiddle(id, 40), r.get(projects+acme+"/domains/"+id), 400, "VALIDATION_ERROR", "domainId")
		refused(r.t, "project id "+cutMiddle(id, 40), r.get(projects+id+"/domains/1"), 400, "VALIDATION_ERROR", "projectId")
		refused(r.t, "both ids "+cutMiddle(id, 40), r.get(projects+id+"/domains/"+id), 400, "VALIDATION_ERROR", "projectId", "domainId")
	}
	for _, id := range []string{"1", "2147483647", "4294967296", "9007199254740991"} {
		for _, rest := range []string{"", "/domains", "/service-settings", "/auth-settings", "/domains/1"} {
			refused(r.t, "id "+id+rest, r.get(projects+id+rest), 404, "NOT_FOUND")
		}
		refused(r.t, "domain id "+id, r.get(projects+acme+"/domains/"+id), 404, "NOT_FOUND")
	}
	// From 2^53 on there are no such ids, so either status will do; a number that wraps around to another's id fails.
	for _, id := range []string{"9007199254740992", "9223372036854775808", "18446744073709551617", strings.Repeat("9", 2000)} {
		if got := r.get(projects + id); got.status != 400 && got.status != 404 || !platformError.MatchString(got.body) {
			r.t.Errorf("id %s: %d %s", cutMiddle(id, 40), got.status, got.body)
		}
	}
	var domains []struct{ ID json.Number }
	if err := json.Unmarshal([]byte(granted(r.t, "domains", r.get(projects+acme+"/domains"))), &domains); err != nil || len(domains) == 0 {
		r.t.Fatal("acme has no domains: ", err)
	}
	granted(r.t, "own domain", r.get(projects+acme+"/domains/"+domains[0].ID.String()))
	refused(r.t, "another project's domain", r.get(projects+r.projectID("other")+"/domains/"+domains[0].ID.String()), 404, "NOT_FOUND")
}

// etags: a strong ETag on resolve and on single resources, 304 without a body if it matches.
func etags(r *rig) {
	acme := "/api/platform/projects/" + r.projectID("acme")
	var domains []struct{ ID json.Number }
	if err := json.Unmarshal([]byte(granted(r.t, "domains", r.get(acme+"/domains"))), &domains); err != nil || len(domains) == 0 {
		r.t.Fatal("acme has no domains: ", err)
	}
	seen := map[string]string{}
	for _, target := range []string{resolvePath + "shop.acme.example", resolvePath + "shop.acme.example&form=flat", resolvePath + "a.acme.example", acme, acme + "/domains/" + domains[0].ID.String(), acme + "/service-settings", acme + "/auth-settings"} {
		got := r.get(target)
		granted(r.t, target, got)
		etag := got.header.Get("ETag")
		if !regexp.MustCompile(`^"[!#-~]+"$`).MatchString(etag) {
			r.t.Errorf("%s: ETag %q is not a strong one", target, etag)
		}
		if was, twice := seen[etag]; twice {
			r.t.Errorf("%s and %s have one ETag", target, was)
		}
		seen[etag] = target
		bare := strings.Trim(etag, `"`)
		for _, match := range []string{etag, "*", "W/" + etag, `"x", ` + etag, etag + `,"y"`, `"x","y" , W/` + etag, "  " + etag + "  ", `"x"` + "\r\nIf-None-Match: " + etag} {
			got := r.get(target, "If-None-Match: "+match)
			sound(r.t, target, got)
			if got.status != 304 || got.body != "" || got.header.Get("ETag") != etag {
				r.t.Errorf("%s, If-None-Match %s: %d %q ETag %q", target, match, got.status, got.body, got.header.Get("ETag"))
			}
		}
		for _, miss := range []string{`"x"`, bare, `"` + bare, bare + `"`, `"` + strings.ToUpper(bare) + `x"`, "", `""`, "w/" + bare, `"` + bare[1:] + `"`, "\xff"} {
			granted(r.t, target+", If-None-Match "+miss, r.get(target, "If-None-Match: "+miss))
		}
		if got := r.ask("HEAD", target, r.keys["all"], "", "If-None-Match: "+etag); got.status != 304 {
			r.t.Errorf("HEAD %s: %d, want 304", target, got.status)
		}
		if strings.HasPrefix(target, resolvePath) && (got.header.Get("Cache-Control") != "private, max-age=5" || got.header.Get("X-Config-Generation") == "") {
			r.t.Errorf("%s: %v", target, got.header)
		}
		r.from = "127.0.1.3"
		refused(r.t, "a condition without a key", r.ask("GET", target, "", "", "If-None-Match: "+etag), 401, "UNAUTHORIZED")
		r.from = "127.0.0.1"
	}
	if byID, bySlug := r.get(acme).header.Get("ETag"), r.get("/api/platform/projects/by-slug/acme").header.Get("ETag"); byID != bySlug {
		r.t.Errorf("one project, two ETags: %s and %s", byID, bySlug)
	}
	refused(r.t, "no condition on nothing", r.get(resolvePath+"nowhere.example", "If-None-Match: *"), 404, "NOT_FOUND")
	refused(r.t, "no condition on bad input", r.get(resolvePath+"..", "If-None-Match: *"), 400, "VALIDATION_ERROR")
	refused(r.t, "no condition on a refusal", r.get(resolvePath+"gone.example", "If-None-Match: *"), 403, "PROJECT_SUSPENDED")
}
