package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// FuzzRequest decodes a body and a query string. An accepted body means the same to encoding/json; an accepted query means
// the same to net/url.
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
		if o, err := decodeBody(body); err == nil {
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
		hot, cold := parseResolveQuery(query), parseQuery(query, "domain", "form")
		if (len(hot.problems()) > 0) != (hot.domains != 1 || hot.domainBad || hot.forms > 1 || hot.formBad || hot.forms == 1 && string(hot.form) != "flat") {
			t.Fatalf("%q: problems %v", query, hot.problems())
		}
		if bytes.IndexByte(query, ';') >= 0 || bytes.IndexByte(query, '+') >= 0 {
			return // net/url refuses the first; resolve keeps the second as it is
		}
		for name, n := range map[string]int{"domain": hot.domains, "form": hot.forms} {
			values, err := url.ParseQuery(string(query))
			if err == nil && len(values[name]) != n {
				t.Fatalf("%q: %d of %s, want %q", query, n, name, values[name])
			}
			if err == nil && n == 1 && cold.values[name] != values[name][0] {
				t.Fatalf("%q: %s is %q, want %q", query, name, cold.values[name], values[name][0])
			}
		}
		if hot.domains == 1 && !hot.domainBad && cold.values["domain"] != string(hot.domain) {
			t.Fatalf("%q: %q and %q", query, hot.domain, cold.values["domain"])
		}
	})
}

// plain turns a decoded body into what encoding/json makes.
func plain(v any) any {
	switch v := v.(type) {
	case *object:
		m := map[string]any{}
		for name, value := range v.values {
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

// FuzzFraming cuts a message at two places. What the gate makes of it does not depend on where it was cut, and a head
// that it accepts means the same to net/http.
func FuzzFraming(f *testing.F) {
	for _, seed := range []string{
		benchHead,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"\r\nGET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\n\n",
	} {
		f.Add([]byte(seed), uint16(5), uint16(20))
	}
	f.Fuzz(func(t *testing.T, message []byte, cut1, cut2 uint16) {
		var whole, cut headScan
		end, bad := whole.feed(message)
		var cutEnd int
		var cutBad *refusal
		for _, n := range []int{min(int(cut1), len(message)), min(max(int(cut1), int(cut2)), len(message)), len(message)} {
			if cutEnd == 0 && cutBad == nil {
				cutEnd, cutBad = cut.feed(message[:n])
			}
		}
		if end != cutEnd || bad != cutBad {
			t.Fatalf("%q: whole %d %v, cut %d %v", message, end, bad, cutEnd, cutBad)
		}
		if end == 0 {
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(message)))
		if err != nil {
			return // the HTTP library has rules of its own for names, values and targets
		}
		if chunked := len(req.TransferEncoding) > 0; chunked != whole.chunked || !chunked && max(whole.length, 0) != req.ContentLength {
			t.Fatalf("%q: length %d, chunked %v; net/http has %d, %v", message, whole.length, whole.chunked, req.ContentLength, req.TransferEncoding)
		}
		if whole.chunked {
			fuzzChunks(t, message[end:], int(cut1))
		}
	})
}

// fuzzChunks compares the data and the end of a chunked body that the gate accepts with what net/http makes of it.
func fuzzChunks(t *testing.T, body []byte, cut int) {
	cut = min(cut, len(body))
	var whole, parts chunkScan
	var data []byte
	n, done, bad := whole.feed(body, &data)
	n1, done1, bad1 := parts.feed(body[:cut], nil)
	if !done1 && bad1 == nil {
		var more int
		more, done1, bad1 = parts.feed(body[n1:], nil)
		n1 += more
	}
	if n != n1 || done != done1 || bad != bad1 {
		t.Fatalf("%q cut at %d: %d %v %v, %d %v %v", body, cut, n, done, bad, n1, done1, bad1)
	}
	if !done {
		return
	}
	rest := bytes.NewReader(body)
	buffered := bufio.NewReaderSize(rest, 16)
	want, err := io.ReadAll(httputil.NewChunkedReader(buffered))
	if err != nil {
		t.Fatalf("accepted %q, which net/http refuses: %v", body[:n], err)
	}
	if !bytes.Equal(data, want) {
		t.Fatalf("%q: the gate decodes %q, net/http %q", body[:n], data, want)
	}
	// net/http leaves the empty line at the end to its caller.
	if left := rest.Len() + buffered.Buffered(); left != len(body)-n+2 {
		t.Fatalf("%q: the gate sees the end at %d, net/http at %d", body, n, len(body)-left+2)
	}
}
