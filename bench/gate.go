package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/bench/wire"
	"fingerpost/resolver/catalog"
)

// tokenSecret signs the tokens of every project of a corpus.
const tokenSecret = "a secret of the bench, of 32 bytes or more"

// checking is the question of a gateway whether a request for a name may pass, with a token unless tokens is nil.
func (c *corpus) checking(tokens []string) question {
	var host []byte
	return question{
		ask: func(r *fasthttp.Request, name int) {
			host = c.appendHost(host[:0], name)
			r.SetRequestURI("/check")
			r.Header.SetHostBytes(host)
			if tokens != nil {
				r.SetRequestURI("/check?auth=required")
				r.Header.Set("Authorization", tokens[name/c.perProject()])
			}
		},
		judge: func(a wire.Answer, name int) error {
			slug := c.slugs[name/c.perProject()]
			if a.Status != 200 || len(a.Body) > 0 || string(a.Head.Peek("X-Project-Slug")) != slug ||
				tokens != nil && string(a.Head.Peek("X-User-Id")) != "user" {
				return fmt.Errorf("a check of %s: %s%s", slug, a.Head, a.Body)
			}
			return nil
		},
	}
}

// whoIs is the question which user's token a request carries.
func (c *corpus) whoIs(tokens []string) question {
	var uri []byte
	return question{
		ask: func(r *fasthttp.Request, name int) {
			uri = c.appendHost(append(uri[:0], "/api/auth/me?domain="...), name)
			r.SetRequestURIBytes(uri)
			r.Header.Set("Authorization", tokens[name/c.perProject()])
		},
		judge: func(a wire.Answer, name int) error {
			if a.Status != 200 || !bytes.Contains(a.Body, []byte(`"user@customer.example"`)) {
				return fmt.Errorf("the user of %s: %s%s", c.slugs[name/c.perProject()], a.Head, a.Body)
			}
			return nil
		},
	}
}

// tokensOf returns the value of Authorization for each project.
func tokensOf(c *corpus) []string {
	lines := make([]string, len(c.slugs))
	for i, slug := range c.slugs {
		id := catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug))
		lines[i] = "Bearer " + token(id)
	}
	return lines
}

// token returns a JSON Web Token (RFC 7519) for a user of a project, signed with HS256.
func token(project int64) string {
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(fmt.Appendf(nil,
		`{"iss":"auth-service","sub":"user","email":"user@customer.example","projectId":%d,"exp":%d}`,
		project, time.Now().Add(24*time.Hour).Unix()))
	mac := hmac.New(sha256.New, []byte(tokenSecret))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// runGate compares the checks of a gateway, and the question whose token it is, with resolve hits of the same names, and
// with the floor.
func runGate(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openCorpus("corpus-", b.corpus)
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, c.String(), c.config, "--gate-listen", addr)
	if err != nil {
		return nil, err
	}
	sides, _, err := b.withFloor(ctx, s, c)
	if err != nil {
		return nil, err
	}
	gate := *s
	gate.addr = addr
	check := func(tokens []string) *side {
		return asks(&gate, c.zipf(), func() question { return c.checking(tokens) })
	}
	var turns []*turn
	names := []string{"resolve hits", floorCommand, "checks", "checks with a token", "users of tokens"}
	known := tokensOf(c)
	users := asks(s, c.zipf(), func() question { return c.whoIs(known) })
	for i, one := range append(sides, check(nil), check(known), users) {
		one.name = names[i]
		turns = append(turns, b.fullSpeed(one))
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return nil, err
	}
	resolved, base, checks, tokens := turns[0], turns[1], turns[2], turns[3]
	var beyond []float64
	for i, v := range tokens.figures[cpuEach] {
		beyond = append(beyond, v-checks.figures[cpuEach][i])
	}
	rep := &report{Parameters: b.parameters(c, nil)}
	rep.add(
		checks.against(resolved, cpuEach, "server CPU of a check", "µs/request").ratioAtMost(1.15),
		checks.against(resolved, perSecond, "checks", "requests/s"),
		checks.against(base, cpuEach, "server CPU of a check, against the floor", "µs/request"),
		checks.against(base, perSecond, "checks, against the floor", "requests/s"),
		measured("CPU of a token beyond a check", "µs", beyond...).atMost(25),
		tokens.against(resolved, cpuEach, "server CPU of a check with a token", "µs/request").ratioAtMost(1.5),
		turns[4].against(resolved, cpuEach, "server CPU of /api/auth/me", "µs/request").ratioAtMost(1.5),
		tokens.against(checks, perSecond, "checks with a token", "requests/s"),
	)
	rep.note("Every check was 200 with the headers of the right project, and with a token also of its user. " +
		"An answer of a check has no body; those of a resolve hit and of the floor have one.")
	return rep, nil
}
