package webhook

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"fingerpost/resolver/publicnet"
)

// onWire is how many requests a webhook has on the wire at most, and sharedPlaces how many all have, next to one of
// each.
const (
	onWire       = 4
	sharedPlaces = 64
)

// Bounds of one attempt.
const (
	attemptTime = 15 * time.Second
	maxRead     = 64 << 10 // bytes of an answer
	maxKept     = 1 << 10  // of them
	longestWait = time.Hour
)

// An Outcome is what has become of an attempt.
type Outcome struct {
	Delivered bool
	Status    int // of HTTP; 0: none came
	Took      time.Duration
	Answer    string // its beginning
	Error     string // "" if it was delivered

	timedOut   bool
	retryAfter time.Duration // 0: the receiver names none
	cutOff     bool          // the engine ends: it was no attempt
}

// A sender makes requests.
type sender struct {
	client  *publicnet.Client
	agent   string
	timeout time.Duration
}

func newSender(o *Options) *sender {
	return &sender{
		agent:   publicnet.UserAgent(o.Version),
		timeout: o.Timeout,
		client: publicnet.NewClient(publicnet.ClientOptions{Guard: publicnet.New(o.Allow), Resolver: o.Resolver,
			Idle: sharedPlaces, IdleOfOne: onWire, HeaderBytes: maxRead}),
	}
}

func (s *sender) close() { s.client.Close() }

// send makes one attempt. The status line decides; what follows it may take what is left of the time.
func (s *sender) send(ctx context.Context, h *Hook, id string, body []byte, now time.Time) (out Outcome) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	res, none := s.post(limited, h, id, body, now)
	if none == nil {
		out = s.read(res, now)
	} else {
		out.Error = none.Sentence(s.timeout)
		out.timedOut = limited.Err() != nil || none.Timeout()
		out.cutOff = ctx.Err() != nil
	}
	out.Took = time.Since(began)
	return out
}

func (s *sender) post(ctx context.Context, h *Hook, id string, body []byte,
	now time.Time) (*http.Response, *publicnet.NoAnswer) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, strings.NewReader(string(body)))
	if err != nil {
		return nil, &publicnet.NoAnswer{Cause: err}
	}
	req.Header = s.header(id)
	req.Header["Webhook-Timestamp"] = []string{strconv.FormatInt(now.Unix(), 10)}
	req.Header["Webhook-Signature"] = []string{signature(h.Secrets, id, now, body)}
	return s.client.Do(req)
}

// header returns the headers that are the same at each attempt of a delivery.
func (s *sender) header(id string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "User-Agent": {s.agent}, "Webhook-Id": {id}}
}

// read reads an answer whose status line has come.
func (s *sender) read(res *http.Response, now time.Time) (out Outcome) {
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxKept))              // an answer that breaks off is one
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxRead-maxKept)) // so that the connection can be used again
	out.Status, out.Answer = res.StatusCode, strings.ToValidUTF8(string(text), "\uFFFD")
	out.Delivered = res.StatusCode/100 == 2
	if !out.Delivered {
		out.Error = "the receiver answered " + strconv.Itoa(res.StatusCode)
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		out.retryAfter = retryAfter(res.Header.Get("Retry-After"), now)
	}
	return out
}

// retryAfter returns how long a receiver wants to be left alone, an hour at most; 0 if it does not say so.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31); err == nil {
		return min(max(time.Duration(seconds)*time.Second, time.Second), longestWait)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), time.Second), longestWait)
	}
	return 0
}
