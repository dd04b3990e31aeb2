package api_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

const (
	mePath     = "/api/auth/me"
	shopSecret = "0123456789abcdef0123456789abcdef-shop"
	bankSecret = "0123456789abcdef0123456789abcdef-bank"
	tokenError = `Bearer error="invalid_token"`
)

// startAuth serves the projects shop (11) and bank (12), which have tokens, and others that have not.
func startAuth(t testing.TB, change ...func(*api.Options)) *house {
	return startSigned(t, signers()[0], change...)
}

// startSigned is startAuth with the keys of a signer in the place of secrets; those of HS256 stay.
func startSigned(t testing.TB, s *signer, change ...func(*api.Options)) *house {
	h := start(t, change...)
	d := &catalog.Declared{}
	add := func(id int64, slug, secret string, change func(*catalog.ProjectConfig), domains ...string) {
		p := project(id, slug, slug, catalog.StatusActive, domains...)
		if secret != "" {
			p.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: secret}
			if text := s.public(t, secret); text != "" {
				p.Auth.Rules = catalog.TokenRules{Algorithms: []string{s.name}, Keys: []string{text}}
			}
		}
		if change != nil {
			change(&p)
		}
		d.Projects = append(d.Projects, p)
	}
	add(11, "shop", shopSecret, nil, "shop.example", "*.shop.example", "!off.shop.example", "xn--bcher-kva.shop.example")
	add(12, "bank", bankSecret, nil, "bank.example")
	add(13, "twin", shopSecret, nil, "twin.example") // the secret of shop
	add(14, "none", "", nil, "none.example")
	add(15, "disabled", shopSecret, func(p *catalog.ProjectConfig) { p.Auth.Token.JWTEnabled = false }, "disabled.example")
	add(16, "suspended", shopSecret, func(p *catalog.ProjectConfig) { p.Project.Status = catalog.StatusSuspended }, "suspended.example")
	h.apply("auth.hcl", d)
	return h
}

// claims are those of a good token for a project, changed by "name", value pairs; the value drop takes one out.
func claims(project any, changes ...any) jwt.MapClaims {
	now := time.Now().Unix()
	c := jwt.MapClaims{"iss": "auth-service", "sub": "u-1", "email": "ada@example.com", "projectId": project, "iat": now, "exp": now + 600}
	for i := 0; i < len(changes); i += 2 {
		if name := changes[i].(string); changes[i+1] == drop {
			delete(c, name)
		} else {
			c[name] = changes[i+1]
		}
	}
	return c
}

var drop = new(int)

// sign makes a token; the header fields are added to alg and typ.
func sign(t testing.TB, method jwt.SigningMethod, key any, c jwt.Claims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	maps.Copy(token.Header, header)
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func hs256(t testing.TB, secret string, c jwt.Claims) string {
	return sign(t, jwt.SigningMethodHS256, []byte(secret), c, nil)
}

// signText makes a token of any header and claims, signed with HS256.
func signText(t testing.TB, secret, header, payload string) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	signature, err := jwt.SigningMethodHS256.Sign(text, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func bearer(token string) string { return "Authorization: Bearer " + token }

// refusedToken checks for the one 401 that all bad tokens get.
func refusedToken(t testing.TB, name string, a *answer) {
	t.Helper()
	e, _ := a.json["error"].(map[string]any)
	if a.StatusCode != 401 || a.code() != "UNAUTHORIZED" || e["message"] != "a valid token is required" || e["details"] != nil ||
		a.Header.Get("WWW-Authenticate") != tokenError || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-User-Id") != "" {
		t.Errorf("%s: %d %v %s, want the 401 of a bad token", name, a.StatusCode, a.Header, a.body)
	}
}

func TestAuthMe(t *testing.T) {
	h := startAuth(t)
	now := time.Now().Unix()
	for _, c := range []struct {
		claims jwt.MapClaims
		data   string
		header string // slug, id, user, e-mail
	}{
		{claims(11, "iat", now, "exp", now+60), fmt.Sprintf(`{"sub":"u-1","email":"ada@example.com","projectId":11,"iat":%d,"exp":%d}`, now, now+60), "shop 11 u-1 ada@example.com"},
		{claims("11", "iat", drop, "exp", now+60), fmt.Sprintf(`{"sub":"u-1","email":"ada@example.com","projectId":11,"iat":null,"exp":%d}`, now+60), "shop 11 u-1 ada@example.com"},
		{claims(11, "sub", drop, "email", nil, "iat", drop, "exp", now+60, "roles", []string{"a"}, "aud", "x"), fmt.Sprintf(`{"sub":null,"email":null,"projectId":11,"iat":null,"exp":%d}`, now+60), "shop 11  "},
		{claims(11, "sub", " ü%\"\x01 b ", "email", "bücher@exämple.com", "iat", drop, "exp", now+60),
			fmt.Sprintf(`{"sub":" ü%%\"\u0001 b ","email":"bücher@exämple.com","projectId":11,"iat":null,"exp":%d}`, now+60),
			`shop 11 %20%C3%BC%25"%01 b%20 b%C3%BCcher@ex%C3%A4mple.com`},
	} {
		a := h.ask("GET", mePath+"?domain=shop.example", "", bearer(hs256(t, shopSecret, c.claims)))
		a.check(t, 200, "")
		if !strings.Contains(string(a.body), `"data":`+c.data+`,"timestamp"`) {
			t.Errorf("%s, want data %s", a.body, c.data)
		}
		if a.Header["X-User-Id"] == nil || a.Header["X-User-Email"] == nil { // Caddy needs them, see setIdentity
			t.Errorf("headers %v, want both of the user's", a.Header)
		}
		got := strings.Join([]string{a.Header.Get("X-Project-Slug"), a.Header.Get("X-Project-Id"), a.Header.Get("X-User-Id"), a.Header.Get("X-User-Email")}, " ")
		if got != c.header || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("headers %q %v, want %q", got, a.Header, c.header)
		}
	}
	good := bearer(hs256(t, shopSecret, claims(11)))
	head := h.ask("HEAD", mePath+"?domain=shop.example", "", good)
	if head.StatusCode != 200 || len(head.body) != 0 || head.Header.Get("X-User-Id") != "u-1" {
		t.Errorf("HEAD: %d %v %q", head.StatusCode, head.Header, head.body)
	}
	head = h.ask("HEAD", mePath+"?domain=shop.example", "")
	if head.StatusCode != 401 || len(head.body) != 0 || head.Header.Get("WWW-Authenticate") != tokenError {
		t.Errorf("HEAD without a token: %d %v %q", head.StatusCode, head.Header, head.body)
	}
	h.ask("POST", mePath+"?domain=shop.example", "", good).check(t, 405, "METHOD_NOT_ALLOWED")
	// A platform key is no token.
	refusedToken(t, "a key", h.ask("GET", mePath+"?domain=shop.example", h.all))
	h.ask("GET", mePath+"?domain=shop.example", h.revoked, good).check(t, 200, "")
	if log := h.log.String(); strings.Contains(log, "eyJ") || strings.Contains(log, "ada@") || !strings.Contains(log, mePath) {
		t.Errorf("the log has the token or no request: %s", log)
	}
}

// The domain comes from the query, else from X-Forwarded-Host, else from Host.
func TestAuthMeDomain(t *testing.T) {
	h := startAuth(t)
	shop, bank := bearer(hs256(t, shopSecret, claims(11))), bearer(hs256(t, bankSecret, claims(12)))
	for _, c := range []struct {
		host, query, headers string // of the request
		token                string
		status               int
		code                 string
	}{
		{"shop.example", "", "", shop, 200, ""},
		{"Shop.Example.:8443", "", "", shop, 200, ""},
		{"a.b.shop.example:80", "", "", shop, 200, ""},
		{"shop.example", "", "", bank, 401, "UNAUTHORIZED"},
		{"bank.example", "", "", bank, 200, ""},
		{"bank.example", "", "X-Forwarded-Host: shop.example", shop, 200, ""},
		{"bank.example", "", "X-Forwarded-Host: shop.example:8443 , bank.example", shop, 200, ""},
		{"bank.example", "", "X-Forwarded-Host: shop.example\r\nX-Forwarded-Host: bank.example", shop, 200, ""},
		{"shop.example", "", "X-Forwarded-Host:", shop, 200, ""},
		{"shop.example", "", "X-Forwarded-Host: bank.example", shop, 401, "UNAUTHORIZED"},
		{"bank.example", "", "X-Forwarded-Host: *.shop.example", shop, 400, "VALIDATION_ERROR"},
		{"bank.example", "", "X-Forwarded-Host: 127.0.0.1", shop, 400, "VALIDATION_ERROR"},
		{"bank.example", "?domain=shop.example", "X-Forwarded-Host: bank.example", shop, 200, ""},
		{"bank.example", "?form=flat&domain=%73hop.example:1", "", shop, 200, ""},
		{"shop.example", "?domain=", "", shop, 400, "VALIDATION_ERROR"},
		{"shop.example", "?domain=shop.example&domain=shop.example", "", shop, 400, "VALIDATION_ERROR"},
		{"shop.example", "?domain=%zz", "", shop, 400, "VALIDATION_ERROR"},
		{"127.0.0.1:8080", "", "", shop, 400, "VALIDATION_ERROR"},
		{"[::1]:8080", "", "", shop, 400, "VALIDATION_ERROR"},
		{"unknown.example", "", "", shop, 404, "NOT_FOUND"},
		{"off.shop.example", "", "", shop, 403, "DOMAIN_NOT_VERIFIED"},
		{"suspended.example", "", "", shop, 403, "PROJECT_SUSPENDED"},
		{"disabled.example", "", "", shop, 403, "AUTH_DISABLED"},
		{"none.example", "", "", shop, 503, "UNAVAILABLE"},
	} {
		w := h.dial()
		headers := c.headers
		if headers != "" {
			headers += "\r\n"
		}
		w.send("GET " + mePath + c.query + " HTTP/1.1\r\nHost: " + c.host + "\r\n" + headers + c.token + "\r\n\r\n")
		a := w.answer("GET")
		if a.StatusCode != c.status || a.code() != c.code {
			t.Errorf("%+v: %d %s", c, a.StatusCode, a.body)
		}
		if c.status == 400 && strings.Join(a.fields(), " ") != "domain" {
			t.Errorf("%+v: fields %v", c, a.fields())
		}
		if c.status == 503 && a.Header.Get("Retry-After") == "" {
			t.Errorf("503 without Retry-After")
		}
		w.Close()
	}
}

// A malformed token is refused before the domain is checked: the same 401 for a domain that is fine, unknown or
// malformed.
func TestAuthMeMalformed(t *testing.T) {
	good := hs256(t, shopSecret, claims(11))
	parts := strings.Split(good, ".")
	long := good + strings.Repeat("a", 8<<10-len(good)+1)
	for name, headers := range map[string][]string{
		"none":                {},
		"empty":               {"Authorization:"},
		"scheme alone":        {"Authorization: Bearer"},
		"twice":               {bearer(good), bearer(good)},
		"twice, other case":   {bearer(good), "authorization: Bearer " + good},
		"good and empty":      {bearer(good), "Authorization:"},
		"list":                {bearer(good) + ", Bearer " + good},
		"no scheme":           {"Authorization: " + good},
		"basic":               {"Authorization: Basic dTpw"},
		"basic with token":    {"Authorization: Basic " + good},
		"other scheme":        {"Authorization: Bearerr " + good},
		"scheme with colon":   {"Authorization: Bearer: " + good},
		"quoted":              {`Authorization: Bearer "` + good + `"`},
		"one part":            {bearer(parts[0])},
		"two parts":           {bearer(parts[0] + "." + parts[1])},
		"four parts":          {bearer(good + ".x")},
		"five parts":          {bearer(good + ".x.y")},
		"no header":           {bearer("." + parts[1] + "." + parts[2])},
		"no claims":           {bearer(parts[0] + ".." + parts[2])},
		"padding":             {bearer(parts[0] + "." + parts[1] + "." + parts[2] + "=")},
		"not base64url":       {bearer(parts[0] + "." + parts[1] + "." + strings.Repeat("+", len(parts[2])))},
		"trailing bits":       {bearer(good[:len(good)-1] + string(good[len(good)-1]+1))},
		"header no JSON":      {bearer(signText(t, shopSecret, "alg", "{}"))},
		"claims no JSON":      {bearer(signText(t, shopSecret, `{"alg":"HS256"}`, "x"))},
		"claims no object":    {bearer(signText(t, shopSecret, `{"alg":"HS256"}`, "[]"))},
		"claims not UTF-8":    {bearer(signText(t, shopSecret, `{"alg":"HS256"}`, "{\"sub\":\"\xff\"}"))},
		"claims twice":        {bearer(signText(t, shopSecret, `{"alg":"HS256"}`, fmt.Sprintf(`{"iss":"auth-service","projectId":12,"exp":%d,"projectId":11}`, time.Now().Unix()+60)))},
		"in a cookie":         {"Cookie: Authorization=" + good},
		"proxy's header":      {"Proxy-Authorization: Bearer " + good},
		"more than 8 KiB":     {bearer(long)},
		"tab after scheme":    {"Authorization: Bearer\t" + good},
		"the text in front":   {"Authorization: x Bearer " + good},
		"blank in the middle": {bearer(parts[0] + ". " + parts[1] + "." + parts[2])},
	} {
		h := startAuth(t) // fewer failures than the throttle's burst in each
		for _, query := range []string{"shop.example", "unknown.example", "%zz", "disabled.example", "none.example"} {
			refusedToken(t, name+", "+query, h.ask("GET", mePath+"?domain="+query, "", headers...))
		}
		h.ask("GET", mePath+"?domain=shop.example", "", bearer(good)).check(t, 200, "")
	}
	// A scheme has no case (RFC 9110, 11.1).
	h := startAuth(t)
	for _, scheme := range []string{"bearer", "BEARER", "Bearer "} {
		h.ask("GET", mePath+"?domain=shop.example", "", "Authorization: "+scheme+" "+good).check(t, 200, "")
	}
}

// A well-formed token is verified after the domain is checked, with each algorithm.
func TestAuthMeRefused(t *testing.T) {
	for _, s := range signers() {
		t.Run(s.name, func(t *testing.T) {
			if s.name != "HS256" && s.name != "ES256" { // a secret, and a pair of keys
				testrig.Thorough(t)
			}
			refuseForged(t, s)
		})
	}
}

func refuseForged(t *testing.T, s *signer) {
	others := map[string]*signer{}
	for _, o := range signers() {
		others[o.name] = o
	}
	now := time.Now().Unix()
	secret := []byte(shopSecret)
	payload, _ := json.Marshal(claims(11))
	with := func(header string) string {
		return s.text(t, shopSecret, strings.ReplaceAll(header, "ALG", s.name), string(payload))
	}
	good := s.sign(t, shopSecret, claims(11), nil)
	parts := strings.Split(good, ".")
	changed := func(changes ...any) string { return s.sign(t, shopSecret, claims(11, changes...), nil) }
	text := func(format string, args ...any) string {
		return s.text(t, shopSecret, `{"alg":"`+s.name+`"}`, fmt.Sprintf(format, args...))
	}
	cases := map[string]string{
		"alg none":                 sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(11), nil),
		"alg none, signed":         with(`{"alg":"none"}`),
		"alg None":                 with(`{"alg":"None"}`),
		"no signature":             parts[0] + "." + parts[1] + ".",
		"alg HS384":                sign(t, jwt.SigningMethodHS384, secret, claims(11), nil),
		"alg HS512":                sign(t, jwt.SigningMethodHS512, secret, claims(11), nil),
		"alg PS256":                sign(t, jwt.SigningMethodPS256, others["RS256"].key(shopSecret), claims(11), nil),
		"alg in another case":      with(`{"alg":"` + strings.ToLower(s.name) + `"}`),
		"alg with a blank":         with(`{"alg":"ALG "}`),
		"alg missing":              with(`{"typ":"JWT"}`),
		"alg null":                 with(`{"alg":null}`),
		"alg a list":               with(`{"alg":["ALG"]}`),
		"alg twice":                with(`{"alg":"ALG","alg":"none"}`),
		"crit":                     with(`{"alg":"ALG","crit":["exp"]}`),
		"crit, empty":              with(`{"alg":"ALG","crit":[]}`),
		"crit and b64":             with(`{"alg":"ALG","b64":false,"crit":["b64"]}`),
		"jwk with another key":     sign(t, jwt.SigningMethodHS256, []byte("attacker"), claims(11), map[string]any{"jwk": map[string]any{"kty": "oct", "k": "YXR0YWNrZXI"}}),
		"kid of a file":            sign(t, jwt.SigningMethodHS256, []byte(""), claims(11), map[string]any{"kid": "../../dev/null"}),
		"another key":              s.sign(t, bankSecret, claims(11), nil),
		"empty secret":             hs256(t, "", claims(11)),
		"signature changed":        parts[0] + "." + parts[1] + "." + "AA" + parts[2][2:],
		"claims changed":           parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(payload), "u-1", "u-2", 1))) + "." + parts[2],
		"header changed":           base64.RawURLEncoding.EncodeToString([]byte(`{"typ": "JWT","alg":"`+s.name+`"}`)) + "." + parts[1] + "." + parts[2],
		"issuer missing":           changed("iss", drop),
		"issuer empty":             changed("iss", ""),
		"issuer other":             changed("iss", "auth-service2"),
		"issuer in capitals":       changed("iss", "Auth-Service"),
		"issuer a list":            changed("iss", []string{"auth-service"}),
		"project missing":          changed("projectId", drop),
		"project other":            changed("projectId", 12),
		"project other, text":      changed("projectId", "12"),
		"project float":            text(`{"iss":"auth-service","projectId":11.0,"exp":%d}`, now+60),
		"project exponent":         text(`{"iss":"auth-service","projectId":1.1e1,"exp":%d}`, now+60),
		"project negative":         changed("projectId", -11),
		"project negative, text":   changed("projectId", "-11"),
		"project with plus":        changed("projectId", "+11"),
		"project with zero":        changed("projectId", "011"),
		"project with blank":       changed("projectId", " 11"),
		"project float, text":      changed("projectId", "11.0"),
		"project hexadecimal":      changed("projectId", "0xb"),
		"project null":             changed("projectId", nil),
		"project true":             changed("projectId", true),
		"project a list":           changed("projectId", []int{11}),
		"project beyond 2^64":      text(`{"iss":"auth-service","projectId":18446744073709551627,"exp":%d}`, now+60),
		"project in another case":  changed("projectId", drop, "projectid", 11),
		"project its slug":         changed("projectId", "shop"),
		"exp missing":              changed("exp", drop),
		"exp null":                 changed("exp", nil),
		"exp zero":                 changed("exp", 0),
		"exp text":                 changed("exp", fmt.Sprint(now+60)),
		"exp in another case":      changed("exp", drop, "EXP", now+60),
		"exp past":                 changed("exp", now-60),
		"exp negative":             changed("exp", -1),
		"exp beyond float64":       text(`{"iss":"auth-service","projectId":11,"exp":1e400}`),
		"exp beyond 2^53":          text(`{"iss":"auth-service","projectId":11,"exp":1e17}`),
		"iat in the future":        changed("iat", now+90),
		"iat text":                 changed("iat", fmt.Sprint(now)),
		"nbf in the future":        changed("nbf", now+90),
		"nbf text":                 changed("nbf", "now"),
		"nbf beyond float64":       text(`{"iss":"auth-service","projectId":11,"exp":%d,"nbf":1e400}`, now+60),
		"sub a number":             changed("sub", 5),
		"email a list":             changed("email", []string{"ada@example.com"}),
		"another project's token":  s.sign(t, bankSecret, claims(12), nil),
		"twin's token, one secret": s.sign(t, shopSecret, claims(13), nil),
	}
	for name, o := range others {
		if name == s.name {
			continue
		}
		cases["alg "+name] = o.sign(t, shopSecret, claims(11), nil)
		cases["alg "+name+", signed with "+s.name] = with(`{"alg":"` + name + `"}`)
		cases["alg ALG, signed with "+name] = o.text(t, shopSecret, `{"alg":"`+s.name+`"}`, string(payload))
	}
	if text := s.public(t, shopSecret); text != "" { // the public key as the secret of HS256
		block, _ := pem.Decode([]byte(text))
		for name, confused := range map[string]string{"PEM": text, "PEM without its end": strings.TrimSpace(text), "DER": string(block.Bytes)} {
			cases["HS256 with the "+name] = hs256(t, confused, claims(11))
			cases["ALG by HS256 with the "+name] = signText(t, confused, `{"alg":"`+s.name+`"}`, string(payload))
		}
		cases["kid a number"] = s.sign(t, shopSecret, claims(11), map[string]any{"kid": 1})
		cases["kid a list"] = s.sign(t, shopSecret, claims(11), map[string]any{"kid": []string{"k1"}})
	}
	if len(cases) < 65 {
		t.Errorf("only %d cases", len(cases))
	}
	h := startSigned(t, s)
	n := 0
	for name, token := range cases {
		if n++; n%8 == 0 {
			h = startSigned(t, s) // fewer failures than the throttle's burst in each
		}
		refusedToken(t, name, h.ask("GET", mePath+"?domain=shop.example", "", bearer(token)))
		h.ask("GET", mePath+"?domain=unknown.example", "", bearer(token)).check(t, 404, "NOT_FOUND")
		h.ask("GET", mePath+"?domain=disabled.example", "", bearer(token)).check(t, 403, "AUTH_DISABLED")
		h.ask("GET", mePath+"?domain=none.example", "", bearer(token)).check(t, 503, "UNAVAILABLE")
	}
	h = startSigned(t, s)
	// Claims that say nothing about the key are ignored, and times may differ by the leeway.
	for name, token := range map[string]string{
		"kid, jwk, jku":  s.sign(t, shopSecret, claims(11), map[string]any{"kid": "k1", "jwk": map[string]any{"kty": "oct", "k": "AA"}, "jku": "http://127.0.0.1/"}),
		"no typ":         with(`{"alg":"ALG"}`),
		"exp 20 s ago":   changed("exp", now-20),
		"iat in 20 s":    changed("iat", now+20),
		"nbf in 20 s":    changed("nbf", now+20),
		"exp a fraction": text(`{"iss":"auth-service","projectId":11,"exp":%d.5}`, now+60),
	} {
		if a := h.ask("GET", mePath+"?domain=shop.example", "", bearer(token)); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	if s.name == "HS256" {
		h.ask("GET", mePath+"?domain=shop.example", "", bearer(padded(t, 8<<10))).check(t, 200, "")
	}
	// projectId alone distinguishes two projects with the same secret.
	h.ask("GET", mePath+"?domain=twin.example", "", bearer(s.sign(t, shopSecret, claims(13), nil))).check(t, 200, "")
	// Beyond what a header may have.
	w := h.dial()
	w.send("GET " + mePath + "?domain=shop.example HTTP/1.1\r\nHost: test\r\n" + bearer(strings.Repeat("a", 17<<10)) + "\r\n\r\n")
	w.answer("GET").check(t, 431, "HEADERS_TOO_LARGE")
	w.Close()
}

// padded makes a good token of exactly n bytes.
func padded(t testing.TB, n int) string {
	t.Helper()
	for fill := n * 3 / 4; fill > 0; fill-- {
		if token := hs256(t, shopSecret, claims(11, "pad", strings.Repeat("a", fill))); len(token) <= n {
			if len(token) < n-2 {
				t.Fatalf("%d bytes, want about %d", len(token), n)
			}
			return token
		}
	}
	panic("unreachable")
}

func TestAuthMeIssuer(t *testing.T) {
	h := startAuth(t, func(o *api.Options) { o.Gateway.Issuer = "https://login.example" })
	h.ask("GET", mePath+"?domain=shop.example", "", bearer(hs256(t, shopSecret, claims(11, "iss", "https://login.example")))).check(t, 200, "")
	refusedToken(t, "default issuer", h.ask("GET", mePath+"?domain=shop.example", "", bearer(hs256(t, shopSecret, claims(11)))))
}

// A secret that a reload has changed counts at once, on a connection that was open before.
func TestAuthMeSecretChanges(t *testing.T) {
	h := startAuth(t)
	w := h.dial()
	defer w.Close()
	ask := func(domain, token string, status int, code string) {
		t.Helper()
		w.send("GET " + mePath + "?domain=" + domain + " HTTP/1.1\r\nHost: test\r\n" + bearer(token) + "\r\n\r\n")
		w.answer("GET").check(t, status, code)
	}
	project := project(21, "moving", "Moving", catalog.StatusActive, "moving.example", "*.moving.example")
	for i := range 20 {
		secret, old := fmt.Sprintf("%s-%d", shopSecret, i), fmt.Sprintf("%s-%d", shopSecret, i-1)
		project.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: secret}
		project.Auth.Token.JWTEnabled = true
		h.apply("moving.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{project}})
		ask("moving.example", hs256(t, secret, claims(21)), 200, "")
		ask("x.moving.example", hs256(t, secret, claims(21)), 200, "")
		if i < 9 { // fewer failures than the throttle's burst
			ask("moving.example", hs256(t, old, claims(21)), 401, "UNAUTHORIZED")
			ask("x.moving.example", hs256(t, old, claims(21)), 401, "UNAUTHORIZED")
		}
		ask("shop.example", hs256(t, shopSecret, claims(11)), 200, "")
		project.Auth.Token.JWTEnabled = false
		h.apply("moving.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{project}})
		ask("moving.example", hs256(t, secret, claims(21)), 403, "AUTH_DISABLED")
	}
	project.Auth.Token.JWTSecret = catalog.Secret{}
	project.Auth.Token.JWTEnabled = true
	h.apply("moving.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{project}})
	ask("moving.example", hs256(t, shopSecret+"-19", claims(21)), 503, "UNAVAILABLE")
	h.apply("moving.hcl", &catalog.Declared{})
	ask("moving.example", hs256(t, shopSecret+"-19", claims(21)), 404, "NOT_FOUND")
}

// Failed tokens are throttled like failed keys: further failing ones only.
func TestAuthMeThrottle(t *testing.T) {
	h := startAuth(t)
	good, bad := bearer(hs256(t, shopSecret, claims(11))), bearer(hs256(t, bankSecret, claims(11)))
	path := mePath + "?domain=shop.example"
	for range 40 { // neither guesses anything
		refusedToken(t, "no token", h.ask("GET", path, ""))
		h.ask("GET", mePath+"?domain=unknown.example", "", bad).check(t, 404, "NOT_FOUND")
	}
	limited := 0
	for range 30 {
		switch a := h.ask("GET", path, "", bad); a.StatusCode {
		case 401:
			refusedToken(t, "bad token", a)
		case 429:
			limited++
			if a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("429 with %v", a.Header)
			}
		default:
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		h.ask("GET", path, "", good).check(t, 200, "")
	}
	if limited < 5 || limited > 10 {
		t.Errorf("%d of 30 bad tokens were answered 429, want those beyond a burst of 20", limited)
	}
	refusedToken(t, "no token", h.ask("GET", path, ""))
}

func BenchmarkAuthMe(b *testing.B) {
	h := startAuth(b)
	w := h.dial()
	defer w.Close()
	w.SetDeadline(time.Time{})
	text := "GET " + mePath + "?domain=shop.example HTTP/1.1\r\nHost: test\r\n" + bearer(hs256(b, shopSecret, claims(11))) + "\r\n\r\n"
	for b.Loop() {
		w.send(text)
		if a, err := w.read("GET"); err != nil || a.StatusCode != 200 {
			b.Fatal(err)
		}
	}
}
