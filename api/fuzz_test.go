package api

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"fingerpost/api/web"
)

// FuzzRequest decodes a body and a query string. An accepted body means the same to encoding/json; an accepted query
// means the same to net/url.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"domains":["globex.example"]}`, "domain=globex.example"},
		{`{"a":{"b":[1,2.5e3,null,true,"\ud83d\ude00"]}}`, "form=flat&domain=a%2Eb"},
		{`{"a":1,"a":2}`, "domain=a&domain=b"},
		{`{"a":"\ud800"}`, "domain=%zz&form=%00"},
		{"{\"a\":\"\xff\"}", "%64omain=x&&=&;&+"},
		{`[[[[`, "domain"},
		{` { "a" : [ ] , "b" : { } , "c" : "\"\\\/\b\f\n\r\t\u00e9\u0041" , "d" : [ -0 , 0.10E+1 , 12e-3 , false ] } `, ""},
		{`{"a":01}`, ""}, {`{"a":"\ud800\u0041"}`, ""}, {`{"a":-}`, ""}, {`{"a":1.}`, ""}, {`{"a":"\u12g4"}`, ""}, {`{"a":[1,]}`, ""}, {`{"a":tru}`, ""},
		{strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32), ""}, {strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33), ""},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, body, query []byte) {
		if o, err := web.DecodeBody(body); err == nil {
			var want map[string]any
			d := json.NewDecoder(bytes.NewReader(body))
			d.UseNumber()
			if err := d.Decode(&want); err != nil {
				t.Fatalf("accepted %q, which encoding/json refuses: %v", body, err)
			}
			if got := plain(o); !reflect.DeepEqual(got, any(want)) {
				t.Fatalf("%q became %v, want %v", body, got, want)
			}
		}
		hot, cold := parseResolveQuery(query), web.ParseQuery(query, "domain", "form", "labels")
		if (len(hot.problems()) > 0) != (hot.domains != 1 || hot.domainBad || hot.forms > 1 || hot.formBad || hot.forms == 1 && string(hot.form) != "flat" ||
			hot.labels > 1 || hot.labelBad || hot.labels == 1 && string(hot.label) != "1") {
			t.Fatalf("%q: problems %v", query, hot.problems())
		}
		if bytes.IndexByte(query, ';') >= 0 || bytes.IndexByte(query, '+') >= 0 {
			return // net/url refuses the first; resolve keeps the second as it is
		}
		for name, n := range map[string]int{"domain": hot.domains, "form": hot.forms, "labels": hot.labels} {
			values, err := url.ParseQuery(string(query))
			if err == nil && len(values[name]) != n {
				t.Fatalf("%q: %d of %s, want %q", query, n, name, values[name])
			}
			if err == nil && n == 1 && cold.Values[name] != values[name][0] {
				t.Fatalf("%q: %s is %q, want %q", query, name, cold.Values[name], values[name][0])
			}
		}
		if hot.domains == 1 && !hot.domainBad && cold.Values["domain"] != string(hot.domain) {
			t.Fatalf("%q: %q and %q", query, hot.domain, cold.Values["domain"])
		}
	})
}

// plain turns a decoded body into what encoding/json makes.
func plain(v any) any {
	switch v := v.(type) {
	case *web.Object:
		m := map[string]any{}
		for name, value := range v.Values {
			m[name] = plain(value)
		}
		return m
	case []any:
		list := []any{}
		for _, value := range v {
			list = append(list, plain(value))
		}
		return list
	}
	return v
}
