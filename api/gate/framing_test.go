package gate

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"testing"
)

const benchHead = "GET /api/platform/projects/resolve?domain=shop.acme.example HTTP/1.1\r\nHost: localhost:8080\r\n" +
	"X-PLATFORM-KEY: fpk_abcdefgh_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZab\r\nUser-Agent: gateway/1.0\r\nAccept: */*\r\n\r\n"

func TestFramingAllocatesNothing(t *testing.T) {
	head := []byte(benchHead)
	if n := testing.AllocsPerRun(1000, func() {
		var scan headScan
		if end, bad := scan.feed(head); end != len(head) || bad != nil {
			t.Fatal(end, bad)
		}
	}); n != 0 {
		t.Errorf("checking a head allocates %v times", n)
	}
}

func BenchmarkFraming(b *testing.B) {
	head := []byte(benchHead)
	b.ReportAllocs()
	for b.Loop() {
		var scan headScan
		scan.feed(head)
	}
}

// FuzzFraming cuts a message at two places. The gate's result does not depend on the cuts, and a head that it accepts
// means the same to net/http.
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
		var cutBad *Refusal
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

// fuzzChunks compares the data and the end of a chunked body that the gate accepts with net/http's.
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
