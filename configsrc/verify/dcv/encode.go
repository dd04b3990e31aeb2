package dcv

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// stateVersion is the first byte of an encoded State. Another meaning of the rest gets another byte.
const stateVersion = 1

// Encode returns st as it is kept: a byte for the version, and JSON.
func (st State) Encode() ([]byte, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encode the state of a domain: %w", err)
	}
	return append([]byte{stateVersion}, b...), nil
}

// DecodeState reads what Encode has returned. Without a state that it can read, a domain is checked as a new one.
func DecodeState(b []byte) (st State, err error) {
	if len(b) == 0 || b[0] != stateVersion {
		return State{}, fmt.Errorf("decode the state of a domain: not of version %d", stateVersion)
	}
	if err := json.Unmarshal(b[1:], &st); err != nil {
		return State{}, fmt.Errorf("decode the state of a domain: %w", err)
	}
	return st, nil
}

// The bounds of what a State keeps of Facts.
const (
	maxValues   = 20       // of an answer, and of every list
	maxValue    = 512      // bytes of a value
	maxFindings = 24       // of a list
	maxKept     = 32 << 10 // bytes of all values together
)

// bounded returns a copy of f that is small enough to keep. What is cut is only shown; decisions are made before.
func (f Facts) bounded() Facts {
	left := maxKept
	f.Proofs = boundFindings(f.Proofs, &left)
	p, z := &f.Pointing, &f.Zone
	p.Findings = boundFindings(p.Findings, &left)
	p.Addresses = slices.Clone(cut(p.Addresses, maxValues))
	p.TargetAddresses = slices.Clone(cut(p.TargetAddresses, maxValues))
	p.TargetError = short(p.TargetError)
	f.TLS.Tried = slices.Clone(cut(f.TLS.Tried, maxValues))
	f.TLS.Error, f.TLS.Issuer = short(f.TLS.Error), short(f.TLS.Issuer)
	z.NameServers = boundValues(z.NameServers, &left)
	z.CAA = boundValues(z.CAA, &left)
	z.Doubled = boundValues(z.Doubled, &left)
	z.Strays = slices.Clone(z.Strays[:min(len(z.Strays), maxFindings)])
	for i := range z.Strays {
		z.Strays[i].Values = boundValues(z.Strays[i].Values, &left)
	}
	z.Resolver = boundAnswer(z.Resolver, &left)
	return f
}

func boundFindings(findings []Finding, left *int) []Finding {
	findings = slices.Clone(cut(findings, maxFindings))
	for i := range findings {
		f := &findings[i]
		f.Error = short(f.Error)
		f.Answers = slices.Clone(cut(f.Answers, maxValues))
		for j := range f.Answers {
			f.Answers[j] = boundAnswer(f.Answers[j], left)
		}
	}
	return findings
}

func boundAnswer(a Answer, left *int) Answer {
	a.Error = short(a.Error)
	a.Values = boundValues(a.Values, left)
	return a
}

// boundValues keeps values with a token before others, and cuts what is more than *left bytes, from which it takes. "…"
// stands for values of which none has room: they are not the same as none.
func boundValues(values []string, left *int) (kept []string) {
	for _, token := range []bool{true, false} {
		for _, value := range values {
			if len(kept) == maxValues || strings.Contains(value, "token=") != token {
				continue
			}
			if value = short(value); len(value) > *left {
				return append(kept, "…")
			}
			*left -= len(value)
			kept = append(kept, value)
		}
	}
	return kept
}

// short returns a text of bounded length that JSON can hold.
func short(s string) string {
	if len(s) > maxValue {
		s = s[:maxValue-len("…")] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

func cut[T any](list []T, n int) []T { return list[:min(len(list), n)] }
