package catalog_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"fingerpost/resolver/catalog"
)

// pairs are the keys of the tests, by algorithm.
var pairs = sync.OnceValue(func() map[string]crypto.Signer {
	r, err1 := rsa.GenerateKey(rand.Reader, 2048)
	e, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, d, err3 := ed25519.GenerateKey(rand.Reader)
	if err1 != nil || err2 != nil || err3 != nil {
		panic("no keys")
	}
	return map[string]crypto.Signer{"RS256": r, "ES256": e, "EdDSA": d}
})

func pemOf(typ string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
}

func publicPEM(t *testing.T, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("PUBLIC KEY", der)
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwkOf returns a public key as a JWK, changed by "name", value pairs; nil takes a member out.
func jwkOf(t *testing.T, key crypto.PublicKey, changes ...any) string {
	t.Helper()
	var jwk map[string]any
	switch k := key.(type) {
	case *rsa.PublicKey:
		jwk = map[string]any{"kty": "RSA", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		jwk = map[string]any{"kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])}
	case ed25519.PublicKey:
		jwk = map[string]any{"kty": "OKP", "crv": "Ed25519", "x": b64(k)}
	}
	for i := 0; i < len(changes); i += 2 {
		if jwk[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(jwk, changes[i].(string))
		}
	}
	text, err := json.Marshal(jwk)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestParsePublicKey: every form of a public key is read, with the algorithm of its type.
func TestParsePublicKey(t *testing.T) {
	t.Parallel()
	f := func(text, algorithm, id string) {
		t.Helper()
		k, err := catalog.ParsePublicKey(text)
		if err != nil || k.Algorithm != algorithm || k.ID != id {
			t.Fatalf("%+v %v, want %s %q", k, err, algorithm, id)
		}
		if same, is := k.Key.(interface{ Equal(crypto.PublicKey) bool }); !is || !same.Equal(pairs()[algorithm].Public()) {
			t.Errorf("another key was read: %T", k.Key)
		}
	}
	for algorithm, pair := range pairs() {
		public := pair.Public()
		text := publicPEM(t, public)
		f(text, algorithm, "")
		f("\n  # a comment\n"+text+"\n", algorithm, "")
		f(strings.ReplaceAll(text, "\n", "\r\n"), algorithm, "")
		f(jwkOf(t, public), algorithm, "")
		f(" \n"+jwkOf(t, public, "kid", "2026", "use", "sig", "alg", algorithm, "key_ops", []string{"verify"}), algorithm, "2026")
		template := &x509.Certificate{SerialNumber: big.NewInt(1)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, public, pair)
		if err != nil {
			t.Fatal(err)
		}
		f(pemOf("CERTIFICATE", der), algorithm, "")
	}
	r := pairs()["RS256"].Public().(*rsa.PublicKey)
	f(pemOf("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(r)), "RS256", "")
	large := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 8191, 1), E: 3}
	if k, err := catalog.ParsePublicKey(jwkOf(t, large)); err != nil || k.Algorithm != "RS256" {
		t.Errorf("8,192 bits: %v", err)
	}
}

// TestUnfitPublicKey: what is no public key for tokens is refused in words, which never quote it.
func TestUnfitPublicKey(t *testing.T) {
	t.Parallel()
	r, e, d := pairs()["RS256"].(*rsa.PrivateKey), pairs()["ES256"].(*ecdsa.PrivateKey), pairs()["EdDSA"].(ed25519.PrivateKey)
	f := func(text, want string) {
		t.Helper()
		k, err := catalog.ParsePublicKey(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v, want an error with %q", k, err, want)
		}
		if err != nil && len(text) > 40 && strings.Contains(err.Error(), text[len(text)/2:len(text)/2+16]) {
			t.Errorf("the error quotes the key: %v", err)
		}
	}
	for algorithm, pair := range pairs() {
		der, err := x509.MarshalPKCS8PrivateKey(pair)
		if err != nil {
			t.Fatal(err)
		}
		f(pemOf("PRIVATE KEY", der), "is a private key")
		f(publicPEM(t, pair.Public())+pemOf("PRIVATE KEY", der), "is a private key")
		f(publicPEM(t, pair.Public())+publicPEM(t, pair.Public()), "more than one")
		f(jwkOf(t, pair.Public(), "d", "AQAB"), "is a private key")
		f(jwkOf(t, pair.Public(), "use", "enc"), `"use"`)
		f(jwkOf(t, pair.Public(), "use", nil, "key_ops", []string{"encrypt"}), `"key_ops"`)
		f(jwkOf(t, pair.Public(), "alg", "PS256"), "another algorithm than "+algorithm)
		f(jwkOf(t, pair.Public(), "kty", "xyz"), "another kind")
	}
	f(pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r)), "is a private key")
	f(`{"kty":"oct","k":"YXR0YWNrZXI"}`, "is a private key")
	f("", "neither PEM nor a JWK")
	f("hunter2hunter2hunter2hunter2", "neither PEM nor a JWK")
	f(`{"kty":`, "no JSON")
	f(`{"keys":[]}`, "key set")
	f(pemOf("PUBLIC KEY", []byte("x")), "damaged")
	f(pemOf("CERTIFICATE REQUEST", []byte("x")), "another kind")
	f(strings.Repeat(" ", 65<<10), "more than")
	f(jwkOf(t, &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 2046, 1), E: 3}), "2047 bits")
	f(jwkOf(t, &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 8192, 1), E: 3}), "8193 bits")
	f(jwkOf(t, &rsa.PublicKey{N: r.N, E: 1}), "exponent")
	f(jwkOf(t, &rsa.PublicKey{N: r.N, E: 4}), "exponent")
	f(jwkOf(t, &r.PublicKey, "e", b64(bytes.Repeat([]byte{255}, 9))), "exponent")
	f(jwkOf(t, &r.PublicKey, "n", "!"), "0 bits")
	f(jwkOf(t, &e.PublicKey, "y", "AQAB"), "no point")
	f(jwkOf(t, &e.PublicKey, "crv", "P-384"), "another kind")
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f(publicPEM(t, &p384.PublicKey), "another curve")
	f(jwkOf(t, d.Public(), "x", "AQAB"), "3 bytes")
}

// TestParseKeySet: over the bounds a set is refused whole; unfit keys are left out one by one.
func TestParseKeySet(t *testing.T) {
	t.Parallel()
	f := func(text string, fit, unfit int, bad bool) {
		t.Helper()
		keys, out, err := catalog.ParseKeySet([]byte(text))
		if len(keys) != fit || out != unfit || (err != nil) != bad {
			t.Errorf("%d keys, %d unfit, %v; want %d, %d", len(keys), out, err, fit, unfit)
		}
	}
	good := jwkOf(t, pairs()["EdDSA"].Public())
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	f(set(good, `{"kty":"oct","k":"AQAB"}`, jwkOf(t, pairs()["RS256"].Public(), "use", "enc"), `7`, `null`, good), 2, 4, false)
	f(set(), 0, 0, false)
	f(set(slices.Repeat([]string{good}, 64)...), 64, 0, false)
	f(set(slices.Repeat([]string{good}, 65)...), 0, 0, true)
	f(set(good)+strings.Repeat(" ", catalog.MaxKeySetBytes), 0, 0, true)
	for _, bad := range []string{"", "[]", "{}", "null", `{"keys":{}}`, `{"keys":null}`, "<html>", set(good) + "x"} {
		f(bad, 0, 0, true)
	}
}
