package catalog

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// The algorithms of tokens.
const (
	AlgorithmHS256 = "HS256"
	AlgorithmRS256 = "RS256"
	AlgorithmES256 = "ES256"
	AlgorithmEdDSA = "EdDSA"
)

// TokenAlgorithms are the algorithms of the tokens that are verified.
var TokenAlgorithms = []string{AlgorithmHS256, AlgorithmRS256, AlgorithmES256, AlgorithmEdDSA}

// Bounds of public keys.
const (
	MaxPublicKeys   = 64        // of a project, and of a key set
	MaxKeySetBytes  = 256 << 10 // of a key set
	minRSABits      = 2048
	maxRSABits      = 8192
	maxRSAExponent  = 1<<31 - 1
	maxPublicKeyLen = 64 << 10 // bytes of the text of one key
)

// A PublicKey verifies tokens. It is shared and must not be changed.
type PublicKey struct {
	ID        string           // the kid of a JWK; "": it has none
	Algorithm string           // the one of TokenAlgorithms that the key is for
	Key       crypto.PublicKey // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

var errPrivateKey = errors.New("is a private key: put the public one there, and replace the pair if others can read this")

// ParsePublicKey reads one public key: a PEM public key or certificate, or a JWK in JSON. The error completes a sentence
// about the text and never quotes it.
func ParsePublicKey(text string) (*PublicKey, error) {
	if len(text) > maxPublicKeyLen {
		return nil, fmt.Errorf("has more than %d bytes", maxPublicKeyLen)
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		var jwk map[string]any
		if json.Unmarshal([]byte(text), &jwk) != nil {
			return nil, errors.New("is no JSON")
		}
		if _, set := jwk["keys"]; set {
			return nil, errors.New("is a key set: put each of its keys there, or use jwks_url")
		}
		return parseJWK(jwk)
	}
	block, rest := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return nil, errors.New("is neither PEM nor a JWK")
	case strings.Contains(block.Type, "PRIVATE KEY"), strings.Contains(string(rest), "PRIVATE KEY-----"):
		return nil, errPrivateKey
	case strings.Contains(string(rest), "-----BEGIN"):
		return nil, errors.New("has more than one block of PEM: each key is an entry of its own")
	}
	key, err := parseBlock(block)
	if err != nil {
		return nil, err
	}
	return fitKey(key, "")
}

func parseBlock(block *pem.Block) (key crypto.PublicKey, err error) {
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var c *x509.Certificate
		if c, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = c.PublicKey
		}
	default:
		return nil, errors.New("is PEM of another kind: a PUBLIC KEY or a CERTIFICATE is needed")
	}
	if err != nil {
		return nil, errors.New("is a damaged PEM block")
	}
	return key, nil
}

// fitKey returns a key if it is one of those that verify tokens.
func fitKey(key crypto.PublicKey, id string) (*PublicKey, error) {
	k := &PublicKey{ID: id, Key: key}
	switch key := key.(type) {
	case *rsa.PublicKey:
		k.Algorithm = AlgorithmRS256
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil, fmt.Errorf("is an RSA key of %d bits; %d to %d are allowed", bits, minRSABits, maxRSABits)
		}
		if key.E < 3 || key.E%2 == 0 {
			return nil, errors.New("is an RSA key with an exponent that is not allowed")
		}
	case *ecdsa.PublicKey:
		k.Algorithm = AlgorithmES256
		if key.Curve != elliptic.P256() {
			return nil, errors.New("is an elliptic key of another curve; ES256 needs P-256")
		}
	case ed25519.PublicKey:
		k.Algorithm = AlgorithmEdDSA
	default:
		return nil, errors.New("is a key of another kind: RSA, P-256 and Ed25519 are allowed")
	}
	return k, nil
}

// parseJWK reads a JSON Web Key (RFC 7517, RFC 8037).
func parseJWK(jwk map[string]any) (*PublicKey, error) {
	text := func(name string) string { s, _ := jwk[name].(string); return s }
	number := func(name string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text(name))
		if err != nil {
			return nil
		}
		return b
	}
	if _, private := jwk["d"]; private || text("kty") == "oct" {
		return nil, errPrivateKey
	}
	if use, given := jwk["use"]; given && use != "sig" {
		return nil, errors.New(`is not for signatures: its "use" is not "sig"`)
	}
	if ops, given := jwk["key_ops"]; given {
		if list, _ := ops.([]any); !slices.Contains(list, any("verify")) {
			return nil, errors.New(`is not for signatures: its "key_ops" lack "verify"`)
		}
	}
	var key crypto.PublicKey
	switch kind := text("kty") + " " + text("crv"); kind {
	case "RSA ":
		e := new(big.Int).SetBytes(number("e"))
		if !e.IsInt64() || e.Int64() > maxRSAExponent {
			return nil, errors.New("is an RSA key with an exponent that is not allowed")
		}
		key = &rsa.PublicKey{N: new(big.Int).SetBytes(number("n")), E: int(e.Int64())}
	case "EC P-256":
		point, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, number("x"), number("y")))
		if err != nil {
			return nil, errors.New("is no point of P-256")
		}
		key = point
	case "OKP Ed25519":
		x := number("x")
		if len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("is an Ed25519 key of %d bytes; it has %d", len(x), ed25519.PublicKeySize)
		}
		key = ed25519.PublicKey(x)
	default:
		return nil, errors.New("is a JWK of another kind: RSA, EC with P-256 and OKP with Ed25519 are allowed")
	}
	k, err := fitKey(key, text("kid"))
	if alg, given := jwk["alg"]; err == nil && given && alg != k.Algorithm {
		return nil, fmt.Errorf(`is for another algorithm than %s: see its "alg"`, k.Algorithm)
	}
	return k, err
}

// ParseKeySet reads a JWK set. Keys that cannot verify tokens are left out, and counted.
func ParseKeySet(text []byte) (keys []*PublicKey, unfit int, err error) {
	if len(text) > MaxKeySetBytes {
		return nil, 0, fmt.Errorf("the key set has more than %d bytes", MaxKeySetBytes)
	}
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, 0, errors.New(`the answer is no key set: a JSON object with "keys" is needed`)
	}
	if n := len(*set.Keys); n > MaxPublicKeys {
		return nil, 0, fmt.Errorf("the key set has %d keys, %d are allowed", n, MaxPublicKeys)
	}
	for _, raw := range *set.Keys {
		var jwk map[string]any
		if json.Unmarshal(raw, &jwk) == nil {
			if k, err := parseJWK(jwk); err == nil {
				keys = append(keys, k)
				continue
			}
		}
		unfit++
	}
	return keys, unfit, nil
}
