package api_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

const healthURL = "/api/platform/health"

// smuggled follows every malformed message: an answer to it would be the second one.
const smuggled = "GET /api/mail/health HTTP/1.1\r\nHost: x\r\n\r\n"

// Every malformed message gets exactly one answer, an error envelope, and then the end of the connection.
func TestMalformedFraming(t *testing.T) {
	t.Parallel()
	h := start(t)
	key := "X-PLATFORM-KEY: " + h.all + "\r\n"
	post := func(headers, body string) string {
		return "POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + headers + "\r\n" + body
	}
	get := func(headers string) string { return "GET " + healthURL + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" }
	const body = `{"domains":["globex.example"]}`
	chunked := "Transfer-Encoding: chunked\r\n"
	length := "Content-Length: 30\r\n"
	for name, message := range map[string]string{
		// length
		"CL then TE":            post(length+chunked, "0\r\n\r\n"),
		"TE then CL":            post(chunked+length, "0\r\n\r\n"),
		"CL 0 then TE":          post("Content-Length: 0\r\n"+chunked, "0\r\n\r\n"),
		"TE and CL on GET":      get(chunked + "Content-Length: 4\r\n"),
		"two equal lengths":     post(length+length, body),
		"two lengths":           post(length+"Content-Length: 0\r\n", body),
		"two lengths, one case": post(length+"content-LENGTH: 30\r\n", body),
		"length list":           post("Content-Length: 30, 30\r\n", body),
		"length +":              post("Content-Length: +30\r\n", body),
		"length -":              post("Content-Length: -1\r\n", body),
		"length hex":            post("Content-Length: 0x1e\r\n", body),
		"length with tail":      post("Content-Length: 30 30\r\n", body),
		"length empty":          post("Content-Length:\r\n", body),
		"length letters":        post("Content-Length: thirty\r\n", body),
		"length point":          post("Content-Length: 30.0\r\n", body),
		"length underscore":     post("Content-Length: 3_0\r\n", body),
		"length overflow":       post("Content-Length: 18446744073709551616\r\n", body),
		"length 20 digits":      post("Content-Length: 99999999999999999999\r\n", body),
		"length NUL":            post("Content-Length: 30\x00\r\n", body),
		"length VT":             post("Content-Length: \v30\r\n", body),
		"space before colon":    post("Content-Length : 30\r\n", body),
		"tab before colon":      post("Content-Length\t: 30\r\n", body),
		// transfer coding
		"TE twice":         post(chunked+chunked, "0\r\n\r\n"),
		"TE list":          post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
		"TE gzip, chunked": post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
		"TE gzip":          post("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"),
		"TE identity":      post("Transfer-Encoding: identity\r\n", body),
		"TE identity, CL":  post("Transfer-Encoding: identity\r\n"+length, body),
		"TE empty":         post("Transfer-Encoding:\r\n", "0\r\n\r\n"),
		"TE xchunked":      post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
		"TE VT":            post("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"),
		"TE quoted":        post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"),
		"TE on 1.0":        "POST " + resolveURL + " HTTP/1.0\r\nHost: x\r\n" + key + chunked + "\r\n0\r\n\r\n",
		"TE on 1.0, CL":    "POST " + resolveURL + " HTTP/1.0\r\nHost: x\r\n" + key + chunked + length + "\r\n" + body,
		"TE, space":        post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
		// chunks
		"chunk size -":           post(chunked, "-1\r\n\r\n"),
		"chunk size +":           post(chunked, "+1e\r\n"+body+"\r\n0\r\n\r\n"),
		"chunk size 0x":          post(chunked, "0x1e\r\n"+body+"\r\n0\r\n\r\n"),
		"chunk size empty":       post(chunked, "\r\n\r\n"),
		"chunk size letters":     post(chunked, "zz\r\n\r\n"),
		"chunk size overflow":    post(chunked, "10000000000000000\r\n"),
		"chunk size space":       post(chunked, "1e \r\n"+body+"\r\n0\r\n\r\n"),
		"chunk size LF":          post(chunked, "1e\n"+body+"\r\n0\r\n\r\n"),
		"chunk size CR":          post(chunked, "1e\r"+body+"\r\n0\r\n\r\n"),
		"chunk extension":        post(chunked, "1e;a=b\r\n"+body+"\r\n0\r\n\r\n"),
		"chunk extension LF":     post(chunked, "1e;a\n"+body+"\r\n0\r\n\r\n"),
		"chunk too long":         post(chunked, "1e\r\n"+body+"x\r\n0\r\n\r\n"),
		"chunk too short":        post(chunked, "1d\r\n"+body+"\r\n0\r\n\r\n"),
		"chunk end LF":           post(chunked, "1e\r\n"+body+"\n0\r\n\r\n"),
		"chunk trailer":          post(chunked, "1e\r\n"+body+"\r\n0\r\nX-Platform-Key: x\r\n\r\n"),
		"chunk trailer declared": post(chunked+"Trailer: X-A\r\n", "1e\r\n"+body+"\r\n0\r\nX-A: x\r\n\r\n"),
		"last chunk LF":          post(chunked, "1e\r\n"+body+"\r\n0\n\n"),
		"last chunk, end LF":     post(chunked, "1e\r\n"+body+"\r\n0\r\n\n"),
		// lines
		"fold":                get("X-A: b\r\n c\r\n"),
		"fold with tab":       get("X-A: b\r\n\tc\r\n"),
		"fold first":          "GET " + healthURL + " HTTP/1.1\r\n Host: x\r\n\r\n",
		"fold, tab, colon":    get("X-A: b\r\n\tX-C: d\r\n"),
		"fold of CL":          post("Content-Length:\r\n 30\r\n", body),
		"bare LF in header":   get("X-A: b\nX-C: d\r\n"),
		"bare LF ends header": get("X-A: b\n"),
		"bare LF everywhere":  "GET " + healthURL + " HTTP/1.1\nHost: x\n\n",
		"bare LF, request":    "GET " + healthURL + " HTTP/1.1\nHost: x\r\n\r\n",
		"bare LF, last line":  "GET " + healthURL + " HTTP/1.1\r\nHost: x\r\n\n",
		"bare CR in value":    get("X-A: b\rX-C: d\r\n"),
		"bare CR in name":     get("X\rA: b\r\n"),
		"bare CR in request":  "GET " + healthURL + "\r HTTP/1.1\r\nHost: x\r\n\r\n",
		"CR CR LF":            get("X-A: b\r\r\n"),
		"CR LF CR CR LF":      "GET " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\r\n",
		"NUL in value":        get("X-A: b\x00c\r\n"),
		"NUL in name":         get("X\x00A: b\r\n"),
		"NUL in target":       "GET " + healthURL + "\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
		"control in value":    get("X-A: b\x01c\r\n"),
		"no colon":            get("X-A\r\n"),
		"no name":             get(": b\r\n"),
		"space in name":       get("X A: b\r\n"),
		"name with brace":     get("X{A}: b\r\n"),
		"name in UTF-8":       get("X-Ä: b\r\n"),
		// request line
		"HTTP/9.9":           "GET " + healthURL + " HTTP/9.9\r\nHost: x\r\n\r\n",
		"HTTP/2.0":           "GET " + healthURL + " HTTP/2.0\r\nHost: x\r\n\r\n",
		"HTTP/1.2":           "GET " + healthURL + " HTTP/1.2\r\nHost: x\r\n\r\n",
		"HTTP/1.":            "GET " + healthURL + " HTTP/1.\r\nHost: x\r\n\r\n",
		"HTTP/1.1x":          "GET " + healthURL + " HTTP/1.1x\r\nHost: x\r\n\r\n",
		"http/1.1":           "GET " + healthURL + " http/1.1\r\nHost: x\r\n\r\n",
		"HTTP/0.9":           "GET " + healthURL + "\r\n\r\n",
		"space at end":       "GET " + healthURL + " HTTP/1.1 \r\nHost: x\r\n\r\n",
		"two spaces":         "GET  " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"two spaces, later":  "GET " + healthURL + "  HTTP/1.1\r\nHost: x\r\n\r\n",
		"tab for space":      "GET\t" + healthURL + "\tHTTP/1.1\r\nHost: x\r\n\r\n",
		"space in target":    "GET /api/platform/ health HTTP/1.1\r\nHost: x\r\n\r\n",
		"no target":          "GET HTTP/1.1\r\nHost: x\r\n\r\n",
		"relative target":    "GET api/platform/health HTTP/1.1\r\nHost: x\r\n\r\n",
		"no method":          " " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"lower-case method":  "get " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"odd method":         "GE(T " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"h2 preface":         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS hello":          "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"garbage":            "\x00\x01\x02\x03\r\n\r\n",
		"three empty lines":  "\r\n\r\n\r\nGET " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"empty line with LF": "\nGET " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
		// host
		"no host":        "GET " + healthURL + " HTTP/1.1\r\n\r\n",
		"empty host":     "GET " + healthURL + " HTTP/1.1\r\nHost:\r\n\r\n",
		"two hosts":      get("Host: y\r\n"),
		"same host":      get("hOST: x\r\n"),
		"two hosts, 1.0": "GET " + healthURL + " HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			// As the first message, after a good one, and byte by byte: the result is the same.
			for _, mode := range []string{"first", "pipelined", "dripped"} {
				w := h.in(t).dial()
				switch mode {
				case "first":
					w.send(message + smuggled)
				case "pipelined":
					w.send("GET " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n" + message + smuggled)
					w.answer("GET").check(t, 200, "")
				case "dripped":
					for i := range len(message) {
						// The server may have refused and closed by now.
						if _, err := w.Write([]byte{message[i]}); err != nil {
							break
						}
					}
				}
				a := w.answer("POST")
				a.check(t, 400, "VALIDATION_ERROR")
				if !a.Close || a.Header.Get("X-Request-Id") == "" || a.Header.Get("Content-Type") != "application/json; charset=utf-8" {
					t.Errorf("%s: headers %v, close %v", mode, a.Header, a.Close)
				}
				w.closed()
				w.Close()
			}
		})
	}
}

// Unusual but unambiguous messages are served.
func TestGoodFraming(t *testing.T) {
	h := start(t)
	key := "X-PLATFORM-KEY: " + h.all + "\r\n"
	const body = `{"domains":["globex.example"]}`
	for name, message := range map[string]string{
		"plain":               "GET " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"empty line before":   "\r\nGET " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"no space in header":  "GET " + healthURL + " HTTP/1.1\r\nHost:x\r\nA:\r\n\r\n",
		"spaces around value": "POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: \t 30 \t\r\n\r\n" + body,
		"leading zeros":       "POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 0030\r\n\r\n" + body,
		"length on GET":       "GET " + healthURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 3\r\n\r\nabc",
		"length 0 on GET":     "GET " + healthURL + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"chunked":             "POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Transfer-Encoding: Chunked\r\n\r\n1\r\n{\r\n1D\r\n" + body[1:] + "\r\n0\r\n\r\n",
		"chunked on GET":      "GET " + healthURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"chunk zeros":         "POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "transfer-encoding: chunked\r\n\r\n0000001e\r\n" + body + "\r\n000\r\n\r\n",
		"lines in the body":   "POST " + resolveURL + " HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 37\r\n\r\n{\n\"domains\":\r[\r\n\n\"globex.example\"\r\n]}",
		"absolute target":     "GET http://x" + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := h.in(t).dial()
			defer w.Close()
			// Three times in a row, then in pieces: a message must not affect the next one.
			w.send(strings.Repeat(message, 3))
			for range 3 {
				w.answer("GET").check(t, 200, "")
			}
			for i := range len(message) {
				w.send(message[i : i+1])
			}
			w.answer("GET").check(t, 200, "")
			w.send(strings.Replace(message, healthURL, "/none", 1))
			w.answer("GET")
		})
	}
}

func TestPipelineIsAnsweredInOrder(t *testing.T) {
	h := start(t)
	w := h.in(t).dial()
	defer w.Close()
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "GET %s?i=%d HTTP/1.1\r\nHost: x\r\nX-Request-Id: n%d\r\n\r\n", healthURL, i, i)
	}
	w.send(b.String() + "GET / HTTP/9.9\r\n\r\n" + smuggled)
	for i := range 100 {
		a := w.answer("GET")
		a.check(t, 200, "")
		if got := a.Header.Get("X-Request-Id"); got != fmt.Sprintf("n%d", i) {
			t.Fatalf("answer %d is %s", i, got)
		}
	}
	w.answer("GET").check(t, 400, "VALIDATION_ERROR")
	w.closed()
}

// Refusals have the caller's request id and the service's form of errors.
func TestRefusalKeepsIDAndForm(t *testing.T) {
	h := start(t)
	for path, mail := range map[string]bool{"/api/mail/health": true, healthURL: false} {
		w := h.in(t).dial()
		w.send("GET " + path + "?x=1 HTTP/1.1\r\nHost: x\r\nx-request-id: mine-1\r\nX A: b\r\n\r\n")
		a := w.answer("GET")
		a.check(t, 400, "VALIDATION_ERROR")
		if a.Header.Get("X-Request-Id") != "mine-1" {
			t.Errorf("%s: id %q", path, a.Header.Get("X-Request-Id"))
		}
		if got, _ := a.json["path"].(string); mail != (got == path) {
			t.Errorf("%s: mail form %v: %s", path, mail, a.body)
		}
		w.Close()
	}
}

// TestHeadOfStreams: the answer to HEAD ends with its header even if GET has a body of unknown length. Anything after
// it would become part of the next answer.
func TestHeadOfStreams(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/api/platform/projects", "/api/platform/events"} {
		for _, version := range []string{"1.1", "1.0"} {
			w := h.dial()
			w.send("HEAD " + path + " HTTP/" + version + "\r\nHost: x\r\nConnection: close\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\n")
			raw, err := io.ReadAll(w.Conn)
			w.Close()
			head, rest, _ := strings.Cut(string(raw), "\r\n\r\n")
			if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") || rest != "" || strings.Contains(head, "Content-Length") {
				t.Errorf("HEAD %s, HTTP/%s: %q, then %q, %v", path, version, head, rest, err)
			}
		}
		w := h.dial()
		w.send("HEAD " + path + " HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\nGET " + healthURL + " HTTP/1.1\r\nHost: x\r\n\r\n")
		w.answer("HEAD")
		if next, err := w.r.Peek(8); string(next) != "HTTP/1.1" {
			t.Errorf("behind HEAD %s comes %q, %v", path, next, err)
		}
		w.Close()
	}
}
