package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const batchPath = "/api/platform/projects/resolve"

func (r *rig) batch(body string, headers ...string) reply {
	r.t.Helper()
	return r.ask("POST", batchPath, r.keys["all"], body, headers...)
}

func domainList(n int) string {
	return `{"domains":["` + strings.Join(slices.Repeat([]string{"shop.acme.example"}, n), `","`) + `"]}`
}

// badBatches: every rule of api/README.md, Requests, that a body can break.
func badBatches(r *rig) {
	const ok = `"domains":["shop.acme.example"]`
	for _, body := range []string{
		"", " ", "{", "}", "[]", `"x"`, "null", "1", "true", "[" + `{` + ok + `}` + "]", "{" + ok, "{" + ok + "}x", "{" + ok + "}{}", "{" + ok + "} ]", "{" + ok + ",}", "{" + ok + `"x":1}`, "{" + ok + `,"x":}`, "{" + ok + `,"x"}`,
		`{'domains':["a"]}`, `{domains:["a"]}`, `{"domains":["a",]}`, `{"domains":["a" "b"]}`, `{"domains":["a"}`, `{"domains":[tru]}`, "{" + ok + `,"x":NaN}`, "{" + ok + `,"x":01}`, "{" + ok + `,"x":1.}`, "{" + ok + `,"x":+1}`, "{" + ok + `,"x":.5}`, "{" + ok + `,"x":0x1}`,
		"{" + ok + `,"x":"\x"}`, "{" + ok + `,"x":"\u12"}`, "{" + ok + ",\"x\":\"a\nb\"}", "{" + ok + ",\"x\":\"a\x00b\"}", "{" + ok + "}\x00", "{" + ok + "} // comment", "/**/{" + ok + "}", "{" + ok + `,"x":"unterminated`,
		"{" + ok + "," + ok + "}", "{" + ok + `,"\u0064omains":["b.example"]}`, "{" + ok + `,"x":1,"x":2}`, "{" + ok + `,"x":{"a":1,"a":1}}`, "{" + ok + `,"x":[{"b":{"a":1,"\u0061":1}}]}`,
		"{\"domains\":[\"\xff\"]}", "{" + ok + ",\"x\":\"\xc3\x28\"}", "{" + ok + ",\"\xff\":1}", "{" + ok + ",\"x\":\"\xed\xa0\x80\"}", "{" + ok + ",\"x\":\"\xc0\xaf\"}", "\xff\xfe{\x00}\x00",
		"{" + ok + `,"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + "}", "{" + ok + `,"x":` + strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32) + "}",
		strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), `{"domains":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + "}",
	} {
		headers := []string{}
		if body == "" {
			headers = append(headers, "Content-Length: 0")
		}
		refused(r.t, fmt.Sprintf("body %.80q", body), r.batch(body, headers...), 400, "VALIDATION_ERROR", "body")
	}
	for body, offset := range map[string]string{`{"domains":["a",x]}`: "1[67]", `{"domains":["a"]}  x`: "(19|20)", `{"domains" ["a"]}`: "1[12]"} {
		got := r.batch(body)
		if !regexp.MustCompile(`"details":\[\{"field":"body","message":"[^"]*\b` + offset + `\b`).MatchString(got.body) {
			r.t.Errorf("%s: no byte offset about %s: %s", body, offset, got.body)
		}
	}
	deep := "{" + ok + `,"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + "}"
	granted(r.t, "depth 32", r.batch(deep))
	for _, value := range []string{`[]`, `null`, `"shop.acme.example"`, `{}`, `5`, `true`, `""`, strings.TrimSuffix(strings.TrimPrefix(domainList(1001), `{"domains":`), "}")} {
		refused(r.t, "domains "+cutMiddle(value, 60), r.batch(`{"domains":`+value+`}`), 400, "VALIDATION_ERROR", "domains")
	}
	for _, body := range []string{`{}`, `{"Domains":["shop.acme.example"]}`, `{"DOMAINS":["a"],"domain":["a"]}`, `{"x":{"domains":["a"]}}`} {
		refused(r.t, body, r.batch(body), 400, "VALIDATION_ERROR", "domains")
	}
	for _, value := range []string{`[1]`, `[null]`, `["shop.acme.example",["a"]]`, `[{}]`, `[true,"a"]`} {
		got := r.batch(`{"domains":` + value + `}`)
		refused(r.t, value, got, 400, "VALIDATION_ERROR")
		if !strings.Contains(got.body, `{"field":"domains`) {
			r.t.Errorf("%s: the field is not named: %s", value, got.body)
		}
	}
	unknownFields(r)
	badTypes(r)
}

func unknownFields(r *rig) {
	const body = `{"id":1,"uuid":null,"domains":["shop.acme.example"],"x":{"y":[1.5e300,"\u0000"]},"Domains":1}`
	granted(r.t, "unknown fields", r.batch(body))
	granted(r.t, "lenient", r.batch(body, "Prefer: handling=lenient"))
	granted(r.t, "another preference", r.batch(body, "Prefer: respond-async"))
	granted(r.t, "strict, and nothing unknown", r.batch(`{"domains":["shop.acme.example"]}`, "Prefer: handling=strict"))
	for _, prefer := range []string{"handling=strict", "respond-async, handling=strict", "handling=strict; x=1"} {
		got := r.batch(`{"x":1,"domains":[],"y":null}`, "Prefer: "+prefer)
		refused(r.t, "Prefer: "+prefer, got, 400, "VALIDATION_ERROR")
		for _, field := range []string{"x", "y", "domains"} {
			if !strings.Contains(got.body, `{"field":"`+field+`",`) {
				r.t.Errorf("Prefer: %s: %s is not among the failing fields: %s", prefer, field, got.body)
			}
		}
	}
}

func badTypes(r *rig) {
	body := domainList(1)
	for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "application/jsonx", "application/xml", "application/json, text/plain", "json", "*/*", "application/octet-stream", "application"} {
		refused(r.t, ct, r.batch(body, "Content-Type: "+ct), 415, "UNSUPPORTED_MEDIA_TYPE")
		refused(r.t, ct+" before the body's form", r.batch("{", "Content-Type: "+ct), 415, "UNSUPPORTED_MEDIA_TYPE")
	}
	for _, ct := range []string{"application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/json;charset=\"UTF-8\""} {
		granted(r.t, ct, r.batch(body, "Content-Type: "+ct))
	}
	granted(r.t, "no Content-Type", r.batch(body))
	exact := `{"domains":["shop.acme.example"],"x":"` + strings.Repeat("a", 1<<20-len(`{"domains":["shop.acme.example"],"x":""}`)) + `"}`
	granted(r.t, "1 MiB", r.batch(exact))
	refused(r.t, "1 MiB and 1", r.batch(exact+" "), 413, "PAYLOAD_TOO_LARGE")
	refused(r.t, "10 MB", r.batch(strings.Repeat(" ", 10_000_000)), 413, "PAYLOAD_TOO_LARGE")
	refused(r.t, "10 MB announced", r.ask("POST", batchPath, r.keys["all"], "", "Content-Length: 10000000", "Expect: 100-continue"), 413, "PAYLOAD_TOO_LARGE")
	chunked := func(blanks int) []reply {
		head := "POST " + batchPath + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nX-PLATFORM-KEY: " + r.keys["all"] + "\r\n\r\n"
		return r.wire("POST", head+strings.Repeat("8000\r\n"+strings.Repeat(" ", 0x8000)+"\r\n", blanks)+fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body))
	}
	if all := chunked(31); len(all) != 1 || all[0].status != 200 {
		r.t.Errorf("just below 1 MiB in chunks: %v", all)
	}
	if all := chunked(300); len(all) != 1 {
		r.t.Errorf("10 MB in chunks: %d answers", len(all))
	} else {
		refused(r.t, "10 MB in chunks", all[0], 413, "PAYLOAD_TOO_LARGE")
	}
}

// batchAnswers: one answer per domain, in the requested order, each the same as for a single request.
func batchAnswers(r *rig) {
	ask := []string{"shop.acme.example", "..", "nowhere.example", "gone.example", "old.acme.example", "Shop.Acme.Example.:80", "", "*.acme.example", "x.acme.example", "shop.acme.example", "bücher.example", "127.0.0.1", "other.example", strings.Repeat("a", 300), "a\x00b", "shop.acme.example "}
	want := strings.Fields("200 400 404 403 403 200 400 400 200 200 200 400 200 400 400 400")
	codes := strings.Split("-,VALIDATION_ERROR,NOT_FOUND,PROJECT_SUSPENDED,DOMAIN_NOT_VERIFIED,-,VALIDATION_ERROR,VALIDATION_ERROR,-,-,-,VALIDATION_ERROR,-,VALIDATION_ERROR,VALIDATION_ERROR,VALIDATION_ERROR", ",")
	check := func(key string, want, codes []string) {
		r.t.Helper()
		b, err := json.Marshal(map[string]any{"domains": ask})
		if err != nil {
			r.t.Fatal(err)
		}
		data := granted(r.t, "batch", r.ask("POST", batchPath, r.keys[key], string(b)))
		var items []json.RawMessage
		if err := json.Unmarshal([]byte(data), &items); err != nil || len(items) != len(ask) {
			r.t.Fatalf("%d answers to %d questions: %v", len(items), len(ask), err)
		}
		for i, item := range items {
			var got struct {
				Domain string
				Status json.Number
				Code   *string
				Result json.RawMessage
			}
			if err := json.Unmarshal(item, &got); err != nil || !regexp.MustCompile(`(?s)^\{"domain":".*","status":\d+,"code":(null|"[A-Z_]+"),"result":.*,"etag":(null|"\\"[\w-]+\\"")\}$`).Match(item) {
				r.t.Errorf("answer %d: %v %s", i, err, item)
				continue
			}
			if got.Domain != ask[i] || got.Status.String() != want[i] || (got.Code == nil) != (codes[i] == "-") || got.Code != nil && *got.Code != codes[i] {
				r.t.Errorf("%q: %.300s\nwant %s %s", ask[i], item, want[i], codes[i])
			}
			single := "null"
			if want[i] == "200" {
				single = granted(r.t, ask[i], r.get(resolvePath+strings.ReplaceAll(strings.TrimSpace(ask[i]), "ü", "%C3%BC")))
			}
			if string(got.Result) != single {
				r.t.Errorf("%q: result %s\nwant %s", ask[i], got.Result, single)
			}
		}
	}
	check("all", want, codes)
	want[3], codes[3], want[12], codes[12] = "403", "FORBIDDEN", "403", "FORBIDDEN"
	check("acme", want, codes)
	for _, key := range []string{"mail", "write"} {
		refused(r.t, key, r.ask("POST", batchPath, r.keys[key], domainList(1)), 403, "FORBIDDEN")
	}
	if data := granted(r.t, "1,000 domains", r.batch(domainList(1000))); strings.Count(data, `"status":200`) != 1000 {
		r.t.Error("1,000 questions got fewer than 1,000 answers")
	}
}
