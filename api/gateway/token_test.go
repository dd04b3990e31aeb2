package gateway

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// The leeway is 30 s on both sides, to the millisecond, also for a token that was verified before.
func TestTokenLeeway(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	rules := catalog.NewTokenRules()
	v := &verifier{TokenKeys: &resolver.TokenKeys{ProjectID: 7, Rules: &rules, Secret: secret}, issuer: "i"}
	at := time.Unix(1_800_000_000, 0)
	far := at.Add(24 * time.Hour).Unix()
	for _, c := range []struct {
		claim string
		by    time.Duration // the clock is ahead of the claim by
		good  bool
	}{
		{"exp", -time.Hour, true}, {"exp", 0, true}, {"exp", 30*time.Second - time.Millisecond, true}, {"exp", 30 * time.Second, false}, {"exp", time.Hour, false},
		{"iat", time.Hour, true}, {"iat", 0, true}, {"iat", -30 * time.Second, true}, {"iat", -30*time.Second - time.Millisecond, false}, {"iat", -time.Hour, false},
		{"nbf", time.Hour, true}, {"nbf", 0, true}, {"nbf", -30 * time.Second, true}, {"nbf", -30*time.Second - time.Millisecond, false}, {"nbf", -time.Hour, false},
	} {
		claims := jwt.MapClaims{"iss": "i", "projectId": 7, "exp": far}
		claims[c.claim] = at.Unix()
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.verify(token, at.Add(c.by)); (err == nil) != c.good {
			t.Errorf("%s with the clock %s ahead: %v, want good: %t", c.claim, c.by, err, c.good)
		}
		before := map[string]time.Duration{"exp": -time.Hour, "iat": time.Hour, "nbf": time.Hour}[c.claim]
		user, err := v.verify(token, at.Add(before))
		if err != nil || user.validAt(at.Add(c.by)) != c.good {
			t.Errorf("%s verified before, with the clock %s ahead: %v, want good: %t", c.claim, c.by, err, c.good)
		}
	}
}
